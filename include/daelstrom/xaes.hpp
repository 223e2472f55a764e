// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM (C2SP, https://c2sp.org/XAES-256-GCM): AES-256-GCM whose nonces of 24 bytes may be
// random for as many messages as anybody has: 2^80 under one key, with a risk of 2^-32 that two are
// alike. A key and a nonce of GCM are derived of each message's by two blocks of AES.
//
// Safety: a nonce must never repeat under one key, else what GCM loses is lost (gcm.hpp); whether a
// key is right is not known before the tag is. Opening releases nothing before its tag is verified.
// Data and AAD as GCM's: 2^36 - 32 and 2^61 - 1 bytes. Keys have 32 bytes, tags 16.
//
// Batches: Engine::run with a key set, whose keys are all of 32 bytes. Pieces: Engine::begin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/engine.hpp>
#include <daelstrom/message.hpp>

namespace dael::xaes {

inline constexpr std::size_t kKeySize = 32, kNonceSize = 24, kTagSize = 16;  // bytes
inline constexpr Cipher kSealing{Mode::xaes256gcm, Direction::encrypt},
    kOpening{Mode::xaes256gcm, Direction::decrypt};

// A message's start and start_rest, of a nonce of 24 bytes; on the host and in kernels.
DAEL_HD void set_start(Message& message, const std::uint8_t* nonce) noexcept {
    auto* const first = reinterpret_cast<std::uint8_t*>(&message.start);
    auto* const rest = reinterpret_cast<std::uint8_t*>(&message.start_rest);
    for (int i = 0; i < 16; ++i) {
        first[i] = nonce[i];
        rest[i] = i < 8 ? nonce[16 + i] : std::uint8_t{0};
    }
}

// One message in host memory. Errors: as Engine::run; iv_size; invalid_argument (a key or tag of
// another size); open: authentication.
DAEL_API Result<Ran> seal(Engine& engine, const Key& key, std::span<const std::uint8_t> nonce,
                          HostIn aad, HostIn in, HostOut out, std::span<std::uint8_t> tag);
DAEL_API Result<Ran> open(Engine& engine, const Key& key, std::span<const std::uint8_t> nonce,
                          HostIn aad, HostIn in, HostOut out, std::span<const std::uint8_t> tag);

}  // namespace dael::xaes
