// SPDX-License-Identifier: Apache-2.0
// AES-GCM and GMAC (NIST SP 800-38D): encryption that also authenticates.
//
// Safety: a nonce must never repeat under one key, else the plaintexts' XOR and the authentication
// key are lost. Use a counter for it (NonceCounter), or at most 2^32 messages with random 96-bit
// nonces under a key (SP 800-38D 8.3). Tags shorter than 16 bytes authenticate less (appendix C).
// Opening releases no plaintext before its tag is verified: on failure the output holds zeros or
// what it held before, never a byte of the forgery. A message without data is GMAC.
//
// Batches: Engine::run with a key set, and Engine::prepare in device memory, of messages whose
// `start` these functions fill. Pieces: Engine::begin.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/engine.hpp>

namespace dael::gcm {

inline constexpr std::size_t kTagSize = 16;    // bytes of a whole tag
inline constexpr std::size_t kNonceSize = 12;  // bytes of the usual IV
using Nonce = std::array<std::uint8_t, kNonceSize>;
// The most that one (key, IV) may encrypt, and the most AAD and IV: 2^39 - 256 bits, and 2^61 - 1
// bytes (SP 800-38D 5.2.1.1).
inline constexpr std::uint64_t kMaxData = (std::uint64_t{1} << 36) - 32;
inline constexpr std::uint64_t kMaxAad = (std::uint64_t{1} << 61) - 1;

constexpr bool valid_tag_size(std::size_t size) noexcept {  // SP 800-38D 5.2.1.2
    return size == 4 || size == 8 || (size >= 12 && size <= 16);
}

constexpr Cipher sealing(std::size_t tag_size = kTagSize) noexcept {
    return {Mode::gcm, Direction::encrypt, static_cast<std::uint8_t>(tag_size)};
}
constexpr Cipher opening(std::size_t tag_size = kTagSize) noexcept {
    return {Mode::gcm, Direction::decrypt, static_cast<std::uint8_t>(tag_size)};
}

// A message's start: the pre-counter block J0 of a nonce (7.1, step 2), the nonce and a 32-bit 1.
constexpr Block start(const Nonce& nonce) noexcept {
    Block j0{};
    for (std::size_t i = 0; i < kNonceSize; ++i) j0[i] = nonce[i];
    j0[15] = 1;
    return j0;
}
// The same in kernels, which make lists of messages: `nonce` has 12 bytes. For mode gcm_ctr, as
// Parquet's AES_GCM_CTR_V1 has it, the start is the same: a 32-bit counter from 1.
DAEL_HD void set_start(Message& message, const std::uint8_t* nonce) noexcept {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&message.start);
    for (int i = 0; i < 12; ++i) bytes[i] = nonce[i];
    for (int i = 12; i < 16; ++i) bytes[i] = i == 15;
}
// Of an IV of any length from 1 byte, which takes the key. Errors: iv_size, limit.
DAEL_API Result<Block> start(const Key& key, std::span<const std::uint8_t> iv);

// One message in host memory, with an IV of any length from 1 byte (12 is the fast and usual one);
// tag.size() is the tag's size. Errors: as Engine::run; iv_size; open: authentication.
DAEL_API Result<Ran> seal(Engine& engine, const Key& key, std::span<const std::uint8_t> iv,
                          HostIn aad, HostIn in, HostOut out, std::span<std::uint8_t> tag);
DAEL_API Result<Ran> open(Engine& engine, const Key& key, std::span<const std::uint8_t> iv,
                          HostIn aad, HostIn in, HostOut out, std::span<const std::uint8_t> tag);

}  // namespace dael::gcm

// Nonces that never repeat: a counter hands out each once (SP 800-38D 8.2.1). For those that count
// on a device, in the launch itself, see DeviceNonces in message.hpp.
//
// Safety: as long as the process lives; not over fork(), a copy of the process by clone() or by a
// snapshot of its machine, each of which makes a second counter that counts the same. Who seals
// under one key in several processes or machines, or again after a restart, gives each a `fixed`
// field of its own, or keeps the counter.

namespace dael {

// Four bytes that stay and a big-endian counter of eight. Threads: any number at once. Closing: not
// during a call. fork(): the child's counts the same numbers again; give it a `fixed` of its own.
// Cannot be copied.
class DAEL_API NonceCounter {
  public:
    // Counts from `first`, which is 0 for a new key.
    explicit NonceCounter(const std::array<std::uint8_t, 4>& fixed,
                          std::uint64_t first = 0) noexcept
        : fixed_(fixed), next_(first) {}
    NonceCounter(const NonceCounter&) = delete;
    NonceCounter& operator=(const NonceCounter&) = delete;

    // Errors: limit, when all up to 2^64 - 2 are used up; the last is kept, so that unused() never
    // wraps.
    Result<gcm::Nonce> next();
    // Fills the starts of messages for gcm or gcm_ctr with as many nonces, one after another: all
    // of them, or none and Code::limit.
    Result<> number(std::span<Message> messages);
    // The first that has not been handed out, to be kept by who goes on later.
    std::uint64_t unused() const noexcept { return next_.load(); }

  private:
    Result<std::uint64_t> take(std::uint64_t count);
    const std::array<std::uint8_t, 4> fixed_;
    std::atomic<std::uint64_t> next_;
};

}  // namespace dael
