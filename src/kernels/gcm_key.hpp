// SPDX-License-Identifier: Apache-2.0
// What a GCM key takes to be made ready: squares of H, which are linear, so that many at once are
// one matrix; products with powers of x, which are shifts; and the matrices of GHASH's tiles
// (ghash_tile.hpp) from those.
#pragma once

#include <array>
#include <cstdint>
#ifndef __CUDA_ARCH__
#include <bit>
#endif

#include "kernels/ghash_tile.hpp"

namespace dael::kernels {

// Squares H^(2^j) of a key: the field's 128, after which they come again.
inline constexpr std::uint32_t kFieldBits = 128;
// Squarings that one matrix does at once.
inline constexpr std::uint32_t kLeapSquares = 8;

// Bits 15 to 0 of two bytes, one after the other in memory, to every other bit: 31, 29, ..., 1.
// `pick` says for byte_perm which bytes of a word they are.
DAEL_HD std::uint32_t spread_bits(std::uint32_t word, std::uint32_t pick) {
    std::uint32_t v = byte_perm(word, 0, pick);
    v = (v ^ v << 4) & 0x0f0f0f0f;
    v = (v ^ v << 2) & 0x33333333;
    return (v << 1 ^ v << 2) & 0xaaaaaaaa;
}

// a^2, which only moves the coefficient of x^i to x^2i.
DAEL_HD Words4 gf_square(const Words4& a) {
    const auto spread = [](std::uint32_t word) {
        return std::uint64_t{spread_bits(word, 0x4041)} << 32 | spread_bits(word, 0x4243);
    };
    return gf_reduce(spread(a.x), spread(a.y), spread(a.z), spread(a.w));
}

// a * x^exponent, exponent 0 to 127.
DAEL_HD Words4 gf_shift(const Words4& a, std::uint32_t exponent) {
    const std::uint64_t high = std::uint64_t{byte_swap(a.x)} << 32 | byte_swap(a.y),
                        low = std::uint64_t{byte_swap(a.z)} << 32 | byte_swap(a.w);
    const bool far = exponent >= 64;
    const std::uint32_t near = exponent % 64;
    const std::uint64_t v3 = far ? 0 : high, v2 = far ? high : low, v1 = far ? low : 0;
    const auto falls = [near](std::uint64_t v) { return v << 1 << (63 - near); };
    return gf_reduce(v3 >> near, v2 >> near | falls(v3), v1 >> near | falls(v2), falls(v1));
}

// a * the block whose only bit is `bit` (gf_basis): in memory the lowest power of a byte is its
// highest bit.
DAEL_HD Words4 gf_times_basis(const Words4& a, std::uint32_t bit) {
    return gf_shift(a, bit ^ 7);
}

// kLeapSquares squarings as a matrix: four words for each bit of the outcome, of the bits that are
// summed up in it.
using LeapRows = std::array<std::uint32_t, kFieldBits * 4>;
// By plain steps, since a GPU's compiler takes no byte_perm() where it makes constants: multiplying
// by x shifts right. In memory the lowest power of a byte is its highest bit, so that bit b is
// x^(b ^ 7).
constexpr LeapRows make_leap_rows() {
    LeapRows rows{};
    std::uint64_t high = std::uint64_t{1} << 63, low = 0;  // x^(2^kLeapSquares * power)
    for (std::uint32_t power = 0; power < kFieldBits; ++power) {
        for (std::uint32_t b = 0; b < kFieldBits; ++b) {
            const std::uint32_t to = b ^ 7, from = power ^ 7;
            const std::uint64_t bit = b < 64 ? high >> (63 - b) & 1 : low >> (127 - b) & 1;
            rows[to * 4 + from / 32] |= static_cast<std::uint32_t>(bit) << from % 32;
        }
        for (std::uint32_t i = 0; i < 1u << kLeapSquares; ++i) {
            const std::uint64_t out = low & 1;
            low = low >> 1 | high << 63;
            high = high >> 1 ^ out * 0xe100000000000000;
        }
    }
    return rows;
}

// One bit of the outcome: the sum of those bits that its row has.
DAEL_HD bool leap_bit(const Words4& row, const Words4& a) {
    const std::uint32_t bits = (row.x & a.x) ^ (row.y & a.y) ^ (row.z & a.z) ^ (row.w & a.w);
#ifdef __CUDA_ARCH__
    return (__popc(bits) & 1) != 0;
#else
    return std::popcount(bits) % 2 != 0;
#endif
}

// Where the fragments have bits `output` of the columns 32 word to 32 word + 31 of the matrix for
// the `block`-th block of a tile's column: the inverse of fragment_word().
DAEL_HD constexpr std::uint32_t fragment_place(std::uint32_t block, std::uint32_t output,
                                               std::uint32_t word) {
    const std::uint32_t bit = output % 32;
    const std::uint32_t group = (bit >> 2 & 1) | bit >> 3 << 1;
    return fragment_index(bit >> 1 & 1, block / 2, block % 2 * 2 + bit % 2,
                          output / 32 * 32 + group * 4 + word);
}

// 32 lanes have a word each, and get one in which bit l is what lane l had at the bit of their own
// number. `shuffle_xor(value, distance)` is the value of the lane that far apart.
template <class Shuffle>
DAEL_HD std::uint32_t transpose_bits(std::uint32_t word, std::uint32_t lane, Shuffle shuffle_xor) {
    constexpr std::uint32_t kLow[5] = {0x55555555, 0x33333333, 0x0f0f0f0f, 0x00ff00ff, 0x0000ffff};
    DAEL_UNROLL(5)
    for (int i = 4; i >= 0; --i) {
        const std::uint32_t distance = 1u << i,
                            other = shuffle_xor(word, static_cast<int>(distance));
        const bool upper = (lane & distance) != 0;
        const std::uint32_t kept = upper ? ~kLow[i] : kLow[i];
        word = (word & kept) | ((upper ? other >> distance : other << distance) & ~kept);
    }
    return word;
}

}  // namespace dael::kernels
