// SPDX-License-Identifier: Apache-2.0
// AES-GCM and GMAC (NIST SP 800-38D): encryption that also authenticates.
//
// Safety: a nonce must never repeat under one key, else the plaintexts' XOR and the authentication
// key are lost. Use a counter for it (nonce.hpp), or at most 2^32 messages with random 96-bit
// nonces under a key (SP 800-38D 8.3). Tags shorter than 16 bytes authenticate less (appendix C).
// Opening releases no plaintext before its tag is verified: on failure the output holds zeros or
// what it held before, never a byte of the forgery. A message without data is GMAC.
//
// Batches: Engine::run with a key set, and Engine::prepare in device memory, of messages whose
// `start` these functions fill. Pieces: Engine::begin.
#pragma once

#include <array>
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
inline constexpr std::uint64_t kMostData = (std::uint64_t{1} << 36) - 32;
inline constexpr std::uint64_t kMostAad = (std::uint64_t{1} << 61) - 1;

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
