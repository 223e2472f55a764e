// SPDX-License-Identifier: Apache-2.0
// GHASH of many messages at once by binary matrices, from registers: what a tensor core is given
// and how its output is read.
//
// A message is a row of wgmma's first operand, and a quad of lanes holds four of its blocks. One
// step multiplies them by H^4, H^3, H^2 and H and the state by H^4, and adds all five: Horner by
// H^4. Zeros before the first block change nothing, so that messages of any lengths, beside each
// other, end in the same step: AAD, data, the block of lengths.
//
// The hardware counts the ones of (64 rows AND 128 columns) over 256 bits; a count's lowest bit is
// the product's bit. Three such operands make a step: the state, the first two words of every
// block, and the last two. Lane t of a quad gets the counts of columns 8 j + 2 t and 8 j + 2 t + 1,
// which stand for bits j and 16 + j of word t of the product. So its packed counts are word t of
// the hash as it lies in memory, which is also where the next step wants it: nothing is exchanged
// between lanes.
#pragma once

#include <cstdint>

#include "kernels/ghash_tile.hpp"

namespace dael::kernels {

inline constexpr std::uint32_t kQuadBlocks = 4;
inline constexpr std::uint32_t kQuadRows = 64;      // messages that a warpgroup takes at once
inline constexpr std::uint32_t kQuadWarpRows = 16;  // and a warp: lane 4 g + t has rows g and g + 8
inline constexpr std::uint32_t kQuadColumns = 128, kQuadOperands = 3;
// The matrices in memory: of each operand, each half of its 256 bits and each column four words.
inline constexpr std::uint32_t kQuadWords = kQuadOperands * 2 * kQuadColumns * 4;

DAEL_HD constexpr std::uint32_t quad_index(std::uint32_t operand, std::uint32_t half,
                                           std::uint32_t column, std::uint32_t word) {
    return ((operand * 2 + half) * kQuadColumns + column) * 4 + word;
}
// The column that stands for a bit of the product: bit % 32 of word bit / 32.
DAEL_HD constexpr std::uint32_t quad_column(std::uint32_t bit) {
    return 8 * (bit % 16) + 2 * (bit / 32) + bit / 16 % 2;
}
// Where 32 bits of the matrix of H^power are, power 1 to 4: those of a product's bit `output` for
// word `word` of the factor. The state has one more copy of H^4.
DAEL_HD constexpr std::uint32_t quad_block_index(std::uint32_t power, std::uint32_t output,
                                                 std::uint32_t word) {
    return quad_index(1 + word / 2, word % 2, quad_column(output), kQuadBlocks - power);
}
DAEL_HD constexpr std::uint32_t quad_state_index(std::uint32_t output, std::uint32_t word) {
    return quad_index(0, 0, quad_column(output), word);
}
// What fills the state's operand up.
DAEL_HD constexpr std::uint32_t quad_zero_index(std::uint32_t output, std::uint32_t word) {
    return quad_index(0, 1, quad_column(output), word);
}

// Gathers the lowest bits of a lane's counts into its words of two rows: counts of `first` and the
// columns after it; it is a multiple of eight. By multiplications where they will do: the cipher's
// lookups keep the other pipe busy.
template <std::uint32_t kHalf>
DAEL_HD void pack_parities(std::uint32_t (&words)[2], const std::uint32_t (&counts)[kHalf],
                           std::uint32_t first = 0) {
    DAEL_UNROLL(16)
    for (std::uint32_t j = 0; j < kHalf / 4; ++j) {
        const std::uint32_t bit = first / 8 + j;
        DAEL_UNROLL(2)
        for (std::uint32_t row = 0; row < 2; ++row) {
            const std::uint32_t at = 4 * j + 2 * row;
            const std::uint32_t two = multiply_add(counts[at + 1], 65536, counts[at]);
            words[row] |= multiply_add(two, 1u << bit, 0) & 0x00010001u << bit;
        }
    }
}

// A message's blocks, AAD and data each filled up to whole ones. Of messages of less than 2^32
// bytes.
struct QuadMessage {
    DAEL_HD QuadMessage(std::uint64_t aad_size, std::uint64_t size)
        : aad_blocks(static_cast<std::uint32_t>((aad_size + 15) / 16)),
          data_blocks(static_cast<std::uint32_t>((size + 15) / 16)) {}
    // Steps that its hash takes, with the block of lengths.
    DAEL_HD std::uint32_t steps() const {
        return (aad_blocks + data_blocks + 1 + kQuadBlocks - 1) / kQuadBlocks;
    }
    // The block of data that lane t of a quad has in the first of `steps` steps: less than 0 for
    // AAD, less than -aad_blocks for zeros, data_blocks for the lengths. Four more with each step.
    DAEL_HD std::int32_t first_block(std::uint32_t steps, std::uint32_t t) const {
        return static_cast<std::int32_t>(t + data_blocks + 1 - kQuadBlocks * steps);
    }
    std::uint32_t aad_blocks, data_blocks;
};

}  // namespace dael::kernels
