// SPDX-License-Identifier: Apache-2.0
// The keys of sealed streams (sealed.hpp): bare ones, and Tink's keysets. Recipients and
// passphrases take sealed_recipients.hpp.
//
// Safety: AES-GCM does not commit to its key, so do not try keys that a stranger chose. Keys lie in
// locked memory that wipes itself.
//
// Threads: any number may use one Keys at once. Closing during use: destroy it when no call on it
// is running; what was made with it keeps what it needs. Children of fork() may use what their
// parent made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael::sealed {

// Bytes of a ciphertext segment with its tag, in Tink's templates ..._4KB and ..._1MB.
inline constexpr std::uint32_t kSmallSegment = 4096;
inline constexpr std::uint32_t kLargeSegment = 1 << 20;
inline constexpr std::uint32_t kMostSegment = 64
                                              << 20;  // that is taken: who opens needs the memory

// What seals and what may open: the first key seals, and opening tries every one. In locked memory
// that wipes itself.
class DAEL_API Keys {
  public:
    struct DAEL_HIDDEN State;

    // 16 or 32 bytes: Tink's AES128_GCM_HKDF_... and AES256_GCM_HKDF_..., with SHA-256. Seals with
    // segments of this size and opens both sizes. Errors: key_size, invalid_argument.
    static Result<Keys> from_key(HostIn bytes, std::uint32_t segment = kLargeSegment);
    // A keyset as Tink writes it in JSON, not encrypted, of at most 1,000 keys: the primary key
    // seals, every enabled one opens. Takes and refuses what Tink does (docs/format.md). Errors:
    // bad_format, unsupported, limit. Nothing of the text is kept but the keys; wiping it is up to
    // the caller.
    static Result<Keys> from_keyset(HostIn json);

    Keys(Keys&&) noexcept;
    Keys& operator=(Keys&&) noexcept;
    ~Keys();
    std::uint32_t segment() const noexcept;  // bytes, of what is sealed with these keys
    // The key that seals, alone: what it opens was not sealed with one of the others. Errors:
    // out_of_memory.
    Result<Keys> sealing() const;

    explicit Keys(std::unique_ptr<State> state) noexcept;  // src/formats
    const State& state() const noexcept { return *state_; }

  private:
    std::unique_ptr<State> state_;
};

}  // namespace dael::sealed
