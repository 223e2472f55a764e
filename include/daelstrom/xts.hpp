// SPDX-License-Identifier: Apache-2.0
// AES-XTS (IEEE 1619, NIST SP 800-38E): encryption of storage sectors, each as long as before.
//
// Safety: XTS does not authenticate. A changed ciphertext block decrypts to a random one, and an
// old sector put back is not noticed. The same data in the same sector encrypts to the same bytes.
// It is for disks and for files read and written in place; where there is room for a tag, use GCM.
// Its keys are made by Key::import_xts().
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>

namespace dael::xts {

inline constexpr std::size_t kLeast = 16;  // bytes of the shortest sector: one AES block
inline constexpr std::size_t kMax = std::size_t{16} << 20;  // 2^20 AES blocks (SP 800-38E 4)

// Which sectors a call works on: neighbours, numbered one after another from `first` on. The number
// is IEEE 1619's tweak, 128 bits, little-endian: `first_high` has its upper half, which disks leave
// zero. The data is whole sectors, but for the last, which may be shorter, down to 16 bytes.
struct Sectors {
    std::uint64_t first = 0;
    std::uint32_t size = 512;  // bytes of a sector, kLeast to kMax, a multiple of 16 or not
    std::uint64_t first_high = 0;
};

// As a message has them: Cipher{Mode::xts, direction, .sector = size}, and the first one's number.
constexpr Block start(const Sectors& sectors) noexcept {
    Block number{};
    for (std::size_t i = 0; i < 8; ++i) {
        number[i] = static_cast<std::uint8_t>(sectors.first >> (8 * i));
        number[8 + i] = static_cast<std::uint8_t>(sectors.first_high >> (8 * i));
    }
    return number;
}

// Errors: as Engine::run.
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, const Sectors& sectors, HostIn in,
                             HostOut out);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, const Sectors& sectors, HostIn in,
                             HostOut out);
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, const Sectors& sectors, DeviceIn in,
                             DeviceOut out, Stream stream);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, const Sectors& sectors, DeviceIn in,
                             DeviceOut out, Stream stream);

}  // namespace dael::xts
