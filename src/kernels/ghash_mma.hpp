// SPDX-License-Identifier: Apache-2.0
// GHASH by binary matrices, a warp by itself: what the tensor cores of sm_80 to sm_90 are given
// (mma.sync, b1) and how their output is read. kernels/ghash_tile.hpp has the idea, for a larger
// instruction that sm_90a alone has.
//
// A row is 32 blocks, seen as 8 columns of four: lane 4 n + t has block 4 n + t, which is
// multiplied by H^(4 - t). What column n came to in the row before, its state, is multiplied by
// H^32 and added: 8 Horner streams. At the end column n owes H^(28 - 4 n).
//
// The instruction takes 16 rows of a matrix by 8 columns of up to 256 bits, and counts the ones of
// each dot product; the count's lowest bit is the product's. Eight tiles of 16 rows are the 128
// bits of a product, each with three instructions: for words x and y of a block, for z and w, and
// for the state, which takes half of one. Row r of the matrix is bit r % 32 of word r / 32. A
// product's bits come out spread over the lanes; two shuffles leave 32 of them, of column n, in
// lane 4 n + t, in an order of their own (mma_state_bit) that the state's matrix is made for.
#pragma once

#include <cstdint>

#include "kernels/gf128.hpp"

namespace dael::kernels {

inline constexpr std::uint32_t kMmaTiles = 8;
inline constexpr std::uint32_t kMmaRegisters = 10;  // of a tile: 4 for x and y, 4 for z and w, 2
inline constexpr std::uint32_t kMmaWords = kMmaTiles * kMmaRegisters * kLanes;  // a key's

// Where a lane's register of a tile lies among a key's words.
DAEL_HD constexpr std::uint32_t mma_index(std::uint32_t tile, std::uint32_t r, std::uint32_t lane) {
    return (tile * kMmaRegisters + r) * kLanes + lane;
}

// Which bit of a product bit `bit` of the state's word in lane 4 n + `quad` is.
DAEL_HD constexpr std::uint32_t mma_state_bit(std::uint32_t quad, std::uint32_t bit) {
    return 16 * (bit % 8) + 8 * (bit / 8 % 2) + 2 * quad + bit / 16;
}

// What a word of the matrices holds: of the matrix of H^power the row `output`, and of that the
// columns input(0) to input(31). (PTX ISA, fragments of mma.m16n8k256 and of m16n8k128.)
struct MmaWord {
    std::uint32_t power, output;
    std::uint32_t quad, word;  // word: of a block, or 4 for the state
    DAEL_HD constexpr std::uint32_t input(std::uint32_t bit) const {
        return word == 4 ? mma_state_bit(quad, bit) : 32 * word + bit;
    }
};
DAEL_HD constexpr MmaWord mma_word(std::uint32_t index) {
    const std::uint32_t lane = index % kLanes, r = index / kLanes % kMmaRegisters,
                        tile = index / (kLanes * kMmaRegisters), quad = lane % 4;
    const std::uint32_t output = 16 * tile + 8 * (r % 2) + lane / 4;
    if (r < 8) return {4 - quad, output, quad, r / 2};
    return {kLanes, output, quad, 4};
}

// A lane's counts of a tile are of two columns in two rows: (row, column), (row, column + 1),
// (row + 8, column), (row + 8, column + 1). Their lowest bits go to bit `tile` of four bytes.
DAEL_HD std::uint32_t mma_pack(const std::uint32_t (&counts)[4], std::uint32_t tile) {
    const std::uint32_t first = byte_perm(counts[0], counts[2], 0x0040),
                        second = byte_perm(counts[1], counts[3], 0x0040);
    return (byte_perm(first, second, 0x5410) << tile) & (0x01010101u << tile);
}

// A row: the lane's block and its word of the state so far give its word of the next state. The
// whole warp takes part. `multiply(counts, tile, block, state)` is a tile's three instructions;
// `shuffle(value, lane)` is another lane's value.
template <class Multiply, class Shuffle>
DAEL_HD std::uint32_t mma_row(const Words4& block, std::uint32_t state, std::uint32_t lane,
                              Multiply multiply, Shuffle shuffle) {
    std::uint32_t packed = 0;
    DAEL_UNROLL(8)
    for (std::uint32_t tile = 0; tile < kMmaTiles; ++tile) {
        std::uint32_t counts[4];
        multiply(counts, tile, block, state);
        packed |= mma_pack(counts, tile);
    }
    // Column n = lane / 4 has been counted by lanes n / 2 of every quad of lanes.
    const std::uint32_t from = lane % 4 * 8 + lane / 8;
    const std::uint32_t low = shuffle(packed, from), high = shuffle(packed, from + 4);
    return byte_perm(low, high, lane / 4 % 2 != 0 ? 0x7632 : 0x5410);
}

// The bits of a column that a lane's word of the state has, in their places: the sum over the four
// lanes of a column is the column.
DAEL_HD Words4 mma_column_part(std::uint32_t state, std::uint32_t quad) {
    std::uint32_t words[4] = {};
    DAEL_UNROLL(32)
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
        // Of the 128, mma_state_bit(0, bit) and 2 quad more: in the same word.
        const std::uint32_t at = mma_state_bit(0, bit);
        words[at / 32] |= (state >> bit & 1) << (at % 32 + 2 * quad);
    }
    return {words[0], words[1], words[2], words[3]};
}
// The power of H that a column owes.
DAEL_HD constexpr std::uint32_t mma_owed(std::uint32_t column) {
    return 28 - 4 * column;
}

}  // namespace dael::kernels
