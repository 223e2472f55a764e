// SPDX-License-Identifier: Apache-2.0
// One message in pieces, in every mode: for data that does not fit in memory, or comes bit by bit.
// For messages that do, Engine::run is simpler and faster. Made by Engine::begin.
//
//     encrypt, any mode:   [aad]...  update...  finish
//     decrypt, no tag:               update...  finish
//     decrypt, with a tag: [aad]...  authenticate...  verify  update...  finish     in two passes
//     the same in one:     [aad]...  update_unverified...  verify
//
// Safety: a start must never repeat under one key, so that a message once finished takes nothing
// more; restart() begins another. Decrypting with a tag in two passes, the first finds out whether
// the tag is right, and only then does the second yield plaintext; finish() finds out whether it
// was given the same bytes, so read both passes from where nobody else writes. In one pass, what
// update_unverified() yields may be anybody's forgery until verify() has succeeded: keep it to
// yourself until then, and throw it away if it fails.
//
// For one thread at a time, and on host memory; large updates use the engine's threads, as
// Engine::run does, except in modes with a tag, which stay on the calling one. What is refused
// changes nothing, and the message goes on: a call out of order or with an argument that makes no
// sense (invalid_argument), overlap, ragged_length, limit. Any other error ends it: nothing but
// restart() is taken after that.
//
// Threads: one at a time. Closing: not during a call. fork(): a child has a copy; let one of the
// two go on, else both encrypt from the same start. On a device: Code::device in the child.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/message.hpp>

namespace dael {

class DAEL_API Pieces {
  public:
    Pieces(Pieces&&) noexcept;
    Pieces& operator=(Pieces&&) noexcept;
    ~Pieces();

    // Modes with a tag: additional data, in pieces of any size; all of it before the data. Errors:
    // limit.
    Result<> aad(HostIn bytes);

    // Any number of bytes; returns how many were written. ECB, CBC and XTS hold back what does not
    // fill a block or sector, up to unit() - 1 bytes, so that out.size() has to be
    // in.size() + held(), rounded down to units; the other modes write in.size() bytes. `out` is
    // `in` or apart from it; where something is held back, apart. Errors: invalid_argument (an
    // output that is too small), overlap, limit.
    Result<std::size_t> update(HostIn in, HostOut out);

    // Decryption with a tag, the first of two passes: all of the ciphertext. Errors: limit.
    Result<> authenticate(HostIn ciphertext);
    // The same in one pass, before anything is verified. Errors: as update().
    Result<> update_unverified(HostIn in, HostOut out);
    // Decryption with a tag: whether this is the message's tag, of cipher.tag bytes. Errors:
    // authentication.
    Result<> verify(std::span<const std::uint8_t> tag);
    // The same in one pass, for those who learn the size of gcm's tag at the end only: the end, and
    // the tag that the message should have. Not for ciphers with tags of 32 bytes. Safety:
    // comparing it with the one that came, in constant time, and giving nothing away where they
    // differ, is up to the caller.
    Result<Block> tag();

    // The end; returns how many bytes were written. Encryption with a tag: writes the tag,
    // out.size() bytes of it (gcm: 4, 8, 12 to 16; aegis: cipher.tag). Decryption of that in two
    // passes: whether the second was the whole of the first (authentication). XTS: the last
    // sector's bytes where it was short. Else nothing. Errors: ragged_length where a block or a
    // sector of 16 bytes is not full.
    Result<std::size_t> finish(HostOut out = {});

    std::size_t unit() const noexcept;  // bytes; 1 where nothing is held back
    std::size_t held() const noexcept;  // bytes held back

    // Another one in the same state, which goes its own way. Safety: the two encrypt from the same
    // start. Errors: out_of_memory, device.
    Result<Pieces> clone() const;
    // Begins another message under the same key, wherever this one stands. Allocates nothing.
    Result<> restart(const Start& start);

    struct DAEL_HIDDEN State;  // src/pipeline/pieces.cpp
    explicit Pieces(std::unique_ptr<State> state) noexcept;

  private:
    std::unique_ptr<State> state_;
};

}  // namespace dael
