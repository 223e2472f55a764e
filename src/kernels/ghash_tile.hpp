// SPDX-License-Identifier: Apache-2.0
// GHASH by binary matrices: what a tensor core is given and how its output is read.
//
// Multiplying by a fixed element is a 128 x 128 matrix over GF(2). A tile is 1024 blocks, seen as
// 128 columns: column n holds blocks n, n + 128, ..., n + 896. One step multiplies the j-th block
// of every column by H^(128 (8 - j)) and adds the eight products: 128 Horner streams, each with a
// stride of 128 blocks. The product before goes into the next tile's first 128 blocks by XOR. At
// the end column n owes H^-n (its blocks lie n further on than column 0's).
//
// The hardware computes 64 x 128 x 256 bits at once (wgmma, b1) and counts the ones of each dot
// product; the count's lowest bit is the product's bit. Four warps hold the matrices in registers,
// rows divided among their threads, and each thread gets counts of its rows for 32 columns. Which
// bit of the product a row stands for is free to choose; it is chosen so that three exchanges
// between lanes leave whole 32-bit words of the products (row_bit).
#pragma once

#include <cstdint>

#include "kernels/gf128.hpp"

namespace dael::kernels {

inline constexpr std::uint32_t kTileBlocks = 1024;
inline constexpr std::uint32_t kTileBytes = kTileBlocks * 16;
inline constexpr std::uint32_t kTileColumns = 128;
inline constexpr std::uint32_t kTileDepth = kTileBlocks / kTileColumns;  // blocks in a column
inline constexpr std::uint32_t kTileThreads = 128;                       // four warps

// The power of H that the j-th block of a column is multiplied by.
DAEL_HD constexpr std::uint32_t tile_power(std::uint32_t j) {
    return kTileColumns * (kTileDepth - j);
}

// A thread's fragment of the matrices: registers [half][step][r], half 0 and 1 for rows 0 to 63 and
// 64 to 127, each step for two blocks of a column.
inline constexpr std::uint32_t kFragmentHalves = 2, kFragmentSteps = kTileDepth / 2,
                               kFragmentRegisters = 4;
inline constexpr std::uint32_t kFragmentWords =
    kFragmentHalves * kFragmentSteps * kFragmentRegisters * kTileThreads;
DAEL_HD constexpr std::uint32_t fragment_index(std::uint32_t half, std::uint32_t step,
                                               std::uint32_t r, std::uint32_t thread) {
    return ((half * kFragmentSteps + step) * kFragmentRegisters + r) * kTileThreads + thread;
}

// What a word of the fragments holds: bits `output` of the columns 32 word to 32 word + 31 of the
// matrix for the `block`-th block of a tile's column (PTX ISA, wgmma register fragments).
struct FragmentWord {
    std::uint32_t block, output, word;
};
DAEL_HD constexpr FragmentWord fragment_word(std::uint32_t index) {
    const std::uint32_t thread = index % kTileThreads, r = index / kTileThreads % 4,
                        step = index / (kTileThreads * 4) % kFragmentSteps,
                        half = index / (kTileThreads * 4 * kFragmentSteps);
    const std::uint32_t warp = thread / 32, group = thread % 32 / 4, quad = thread % 4;
    // Row 64 half + 16 warp + group + 8 (r & 1) yields this bit of the product: after the
    // exchanges, bit of word `warp`.
    const std::uint32_t bit = 2 * half + (r & 1) + 4 * (group & 1) + 8 * (group >> 1);
    return {2 * step + (r >> 1), 32 * warp + bit, quad};
}

// The column whose word a thread ends up with as its i-th, 0 to 3.
DAEL_HD constexpr std::uint32_t state_column(std::uint32_t thread, std::uint32_t i) {
    const std::uint32_t group = thread % 32 / 4, quad = thread % 4;
    return 64 * (group & 1) + 32 * (group >> 1 & 1) + 16 * (i >> 1) + 8 * (i & 1) + 2 * quad +
           (group >> 2);
}

}  // namespace dael::kernels
