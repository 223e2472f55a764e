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

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael::sealed {

// Bytes of a ciphertext segment with its tag, in Tink's templates ..._4KB and ..._1MB.
inline constexpr std::uint32_t kSmallSegment = 4096;
inline constexpr std::uint32_t kLargeSegment = 1 << 20;
inline constexpr std::uint32_t kMaxSegment = 64 << 20;  // that is taken: who opens needs the memory

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

// Keysets of Tink's that are made and changed, for the rotation of keys: one is added and spread,
// then promoted, so that it seals; what the old one sealed is sealed anew, and then the old one is
// disabled. Keys::from_keyset(), above, takes what comes out, and so does Tink.
//
// Safety: a keyset's text holds its keys as they are. It lies here in memory that is wiped; where
// it comes from and where it goes is up to the caller, as is that nobody else changes the same file
// meanwhile. Every change is done whole or not at all.
//
// Threads: one at a time. Closing during use: destroy one when no call on it is running. Children
// of fork() have a copy of their own, whose changes the parent does not see.

namespace dael::sealed {

// Tink's templates of streaming keys: the size of the key, and of a ciphertext segment.
inline constexpr std::array<std::string_view, 4> kTemplates{
    "AES256_GCM_HKDF_1MB", "AES256_GCM_HKDF_4KB", "AES128_GCM_HKDF_1MB", "AES128_GCM_HKDF_4KB"};

class DAEL_API Keyset {
  public:
    // In Tink's numbers; others may come from a later Tink.
    enum class Status : std::int32_t { unknown, enabled, disabled, destroyed };
    // What may be shown of a key.
    struct Entry {
        std::uint32_t id = 0;
        Status status = Status::unknown;
        bool primary = false;  // it seals
        std::string type;      // "AesGcmHkdfStreamingKey", or what it is instead
        std::string shape;     // a template's name, or the numbers; empty where it cannot be read
    };

    Keyset();  // without a key: nothing takes one before one was added
    // As Keys::from_keyset() does, but keys of other types, keys that cannot be read and a primary
    // key that is none are let pass, to be listed and mended. Errors: bad_format, unsupported,
    // limit, out_of_memory.
    static Result<Keyset> parse(HostIn json);
    Keyset(Keyset&&) noexcept;
    Keyset& operator=(Keyset&&) noexcept;
    ~Keyset();

    std::size_t size() const noexcept;  // keys
    std::vector<Entry> entries() const;

    // A new random key, enabled; the primary one if there was none before. Returns its number.
    // Errors: invalid_argument for a template that is none; limit.
    Result<std::uint32_t> add(std::string_view name = kTemplates[0]);
    // Changes to the key of this number. The primary key can be neither disabled nor removed, and
    // what is disabled not be promoted. What it is already is no error. Errors: invalid_argument,
    // naming the number; a failure changes nothing.
    Result<> promote(std::uint32_t id);
    Result<> enable(std::uint32_t id);
    Result<> disable(std::uint32_t id);
    Result<> remove(std::uint32_t id);

    // Its text, as Tink writes it: secret. `out` has json_size() bytes (invalid_argument).
    std::size_t json_size() const;
    Result<> write_json(HostOut out) const;

  private:
    struct DAEL_HIDDEN State;
    std::unique_ptr<State> state_;
};

}  // namespace dael::sealed
