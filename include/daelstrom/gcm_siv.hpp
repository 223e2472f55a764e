// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV (RFC 8452): authenticated encryption whose nonces may repeat. Two messages that have
// key, nonce, AAD and data alike are then seen to be alike, and nothing else is lost.
//
// Safety: that is no leave to use one nonce for all: section 9 of the RFC reckons how many messages
// a key is good for, by how often nonces come again; with random ones 2^32 of a usual size. At most
// 2^36 bytes of data and of AAD each. Keys have 16 or 32 bytes, nonces 12, tags 16.
//
// Sealing reads the whole message before the first byte of ciphertext: there are no pieces, and it
// takes two passes. Opening decrypts before it knows the tag, which is the plaintext's. When a call
// ends nothing of a forgery's plaintext is left: where the output is apart it holds zeros or what
// it held before, in place the ciphertext. While the call runs others must not look at the output.
//
// Batches: Engine::run with a key set, whose keys are of 16 or 32 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/engine.hpp>
#include <daelstrom/message.hpp>

namespace dael::gcm_siv {

inline constexpr std::size_t kNonceSize = 12, kTagSize = 16;                           // bytes
inline constexpr std::uint64_t kMaxData = std::uint64_t{1} << 36, kMaxAad = kMaxData;  // bytes
inline constexpr Cipher kSealing{Mode::gcm_siv, Direction::encrypt},
    kOpening{Mode::gcm_siv, Direction::decrypt};

// A message's start, of a nonce of 12 bytes; on the host and in kernels.
DAEL_HD void set_start(Message& message, const std::uint8_t* nonce) noexcept {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&message.start);
    for (int i = 0; i < 16; ++i) bytes[i] = i < 12 ? nonce[i] : std::uint8_t{0};
}

// One message in host memory. Errors: as Engine::run; iv_size; invalid_argument (a key or tag of
// another size); open: authentication.
DAEL_API Result<Ran> seal(Engine& engine, const Key& key, std::span<const std::uint8_t> nonce,
                          HostIn aad, HostIn in, HostOut out, std::span<std::uint8_t> tag);
DAEL_API Result<Ran> open(Engine& engine, const Key& key, std::span<const std::uint8_t> nonce,
                          HostIn aad, HostIn in, HostOut out, std::span<const std::uint8_t> tag);

}  // namespace dael::gcm_siv
