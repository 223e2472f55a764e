// SPDX-License-Identifier: Apache-2.0
// GHASH of packets in one pass with the exclusive-or of keystream that is there already, and
// counter mode for little that is not there, which libipsec-mb has in jobs only.
//
// Constant time: no branch and no address depends on anything but sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/key_schedule.hpp"
#include "core/packet_cipher.hpp"

namespace dael::cpu {

// H^kPowers, ..., H^2, H^1, byte-reversed and times x, which is what carry-less products of blocks
// as little-endian numbers want; then zeros, so that four at a time may be read from any place.
// A frame of Ethernet's 1500 bytes with AAD and lengths is 96 blocks: one sum, reduced once.
inline constexpr std::size_t kPowers = 100;
struct alignas(64) Powers {
    std::uint8_t bytes[(kPowers + 4) * kBlockSize];
    // The first of `count` that end with H^1.
    const std::uint8_t* last(std::size_t count) const noexcept {
        return bytes + kBlockSize * (kPowers - count);
    }
};
// Blocks of a sum that others follow: whole vectors, and room for one block before them.
inline constexpr std::size_t kOfMany = kPowers - 4;
static_assert(kOfMany % 4 == 0);

constexpr std::size_t blocks_of(std::size_t size) noexcept {
    return (size + kBlockSize - 1) / kBlockSize;
}

struct XorGhash {
    // All powers of the key's hash subkey.
    void (*expand)(const core::KeySchedule& key, Powers& powers) noexcept;
    // A packet whose keystream is all there, and whose AAD is at most a block.
    void (*seal)(const Powers& powers, const core::CipherPacket& packet) noexcept;
    // False: the tag does not match, and nothing was written.
    bool (*open)(const Powers& powers, const core::CipherPacket& packet) noexcept;
    // GHASH of `size` bytes, filled up with zeros to whole blocks, on top of what `y` has hashed.
    void (*hash)(const Powers& powers, Block& y, const std::uint8_t* bytes,
                 std::size_t size) noexcept;
    void (*exclusive_or)(std::uint8_t* out, const std::uint8_t* in, const std::uint8_t* keystream,
                         std::size_t size) noexcept;
    // The cipher of `blocks` counters of 128 bits from `counter` on.
    void (*keystream)(const core::KeySchedule& key, const Block& counter, std::uint8_t* out,
                      std::size_t blocks) noexcept;
    // A message without any keystream, as gcm_avx512::message has it; null: libipsec-mb's is
    // faster.
    void (*message)(Direction direction, const core::KeySchedule& key, const Powers& powers,
                    const Block& j0, const std::uint8_t* aad, std::size_t aad_size,
                    const std::uint8_t* in, std::uint8_t* out, std::size_t size, std::uint8_t* tag,
                    std::size_t tag_size) noexcept;
};
extern const XorGhash kXorGhashAvx512;  // AVX-512 with VAES and VPCLMULQDQ
extern const XorGhash kXorGhashPclmul;  // AES-NI and PCLMULQDQ

}  // namespace dael::cpu
