// SPDX-License-Identifier: Apache-2.0
// Keys made ready for daelstrom, in a small table of locked memory. LibTomCrypt's contexts are
// plain memory that programs copy, and abandon without done(): so nothing hangs on them. A context
// has a number, under which the table may hold its key; where it does not, the key is made again
// from what LibTomCrypt itself keeps in the context.
#pragma once

#include <daelstrom/daelstrom.h>
#include <tomcrypt.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace daelstrom_tomcrypt {

// What daelstrom_aes_desc keeps in a symmetric_key: LibTomCrypt's own expanded key first, so that
// contexts which were set up before it was registered serve as well.
struct Context {
    rijndael_key plain;
    std::uint64_t mark;   // kMark, or whatever was there before
    std::uint64_t id;     // not secret; 0: the key is looked for by its bytes
    std::uint64_t spent;  // blocks, while no key has been made ready
};
static_assert(sizeof(Context) <= sizeof(symmetric_key));
constexpr std::uint64_t kMark = 0x6461656c41455331;
inline Context& context_of(symmetric_key* key) noexcept {
    return *reinterpret_cast<Context*>(key);
}

// A key of 16, 24 or 32 bytes, wiped when it goes.
struct RawKey {
    std::uint8_t bytes[32] = {};
    std::size_t size = 0;

    RawKey() = default;
    explicit RawKey(const Context& context) noexcept;  // size 0: no key is there
    RawKey(const RawKey&) = delete;
    RawKey& operator=(const RawKey&) = delete;
    ~RawKey() { dael_wipe(bytes, sizeof bytes); }
};

struct CachedKey;

// An engine and a key on it, for one call. Without an engine or a key: the caller's own way.
class Ready {
  public:
    Ready() = default;                                          // none
    static Ready of(symmetric_key* key, unsigned long blocks);  // none if it is not worth it yet
    static Ready of(std::span<const std::uint8_t> raw);
    Ready(const Ready&) = delete;
    Ready& operator=(const Ready&) = delete;
    ~Ready();

    explicit operator bool() const noexcept { return key_ != nullptr; }
    dael_engine* engine() const noexcept { return engine_; }
    const dael_key* key() const noexcept { return key_; }
    // One message with the key made ready for its mode, as GCM likes it.
    dael_status run(const dael_cipher& cipher, const dael_message& message) const noexcept;

  private:
    Ready(std::uint64_t id, std::span<const std::uint8_t> raw, bool keep) noexcept;

    dael_engine* engine_ = nullptr;
    dael_key* key_ = nullptr;
    dael_key_set* set_ = nullptr;
    CachedKey* slot_ = nullptr;  // null: key and set are this call's own
};

std::uint64_t next_id() noexcept;
void forget(std::uint64_t id) noexcept;
void forget_all() noexcept;
void use(dael_engine* engine) noexcept;
void close_engine() noexcept;
std::uint64_t served() noexcept;

}  // namespace daelstrom_tomcrypt
