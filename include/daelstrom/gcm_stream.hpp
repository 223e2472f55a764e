// SPDX-License-Identifier: Apache-2.0
// GCM of one message in pieces: for data that does not fit in memory. For messages that do, the
// engine's gcm_seal, gcm_open and batches are simpler and faster.
//
// Safety: an IV must never repeat under one key, so a sealer seals one message and refuses all
// else. Opening takes two passes over the ciphertext: the first finds out whether the tag is right,
// and only then does the second yield plaintext.
//
// Both work on the calling thread, for one thread at a time, and on host memory; with an engine on
// a device, through that. They belong to their engine, which must outlive them. A call that comes
// out of order is an error (invalid_argument) and changes nothing.
#pragma once

#include <memory>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/memory.hpp>

namespace dael {

// Made by Engine::gcm_sealer:  aad()...  update()...  finish()
class GcmSealer {
  public:
    GcmSealer(GcmSealer&&) noexcept;
    GcmSealer& operator=(GcmSealer&&) noexcept;
    ~GcmSealer();

    // Additional data, in pieces of any size; all of it before the first update().
    // Errors: limit.
    Result<> aad(HostIn bytes);
    // Encrypts in.size() bytes, any number; `out` is `in` or apart from it.
    // Errors: invalid_argument, overlap, limit.
    Result<> update(HostIn in, HostOut out);
    // Writes the tag: 4, 8, or 12 to 16 bytes. After this the sealer is spent.
    Result<> finish(std::span<std::uint8_t> tag);

  private:
    friend class Engine;
    struct State;
    explicit GcmSealer(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

// Made by Engine::gcm_opener:  aad()...  authenticate()...  verify()  decrypt()...
class GcmOpener {
  public:
    GcmOpener(GcmOpener&&) noexcept;
    GcmOpener& operator=(GcmOpener&&) noexcept;
    ~GcmOpener();

    // Additional data, as in sealing. Errors: limit.
    Result<> aad(HostIn bytes);
    // The first pass: all of the ciphertext, in pieces of any size. Errors: invalid_argument,
    // limit.
    Result<> authenticate(HostIn ciphertext);
    // Whether this is the message's tag. After an `authentication` error the opener is spent.
    Result<> verify(std::span<const std::uint8_t> tag);
    // The second pass, once verify() has succeeded: the same ciphertext again, in pieces of any
    // size. Bytes that differ from those of the first pass are an `authentication` error at the
    // end, so read both passes from where nobody else writes.
    // Errors: invalid_argument (more bytes than were authenticated), overlap, authentication.
    Result<> decrypt(HostIn in, HostOut out);

  private:
    friend class Engine;
    struct State;
    explicit GcmOpener(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael
