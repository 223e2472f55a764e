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

// a * b + c, on the multiplication pipe even where b is a power of two.
DAEL_HD std::uint32_t multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#ifdef __CUDA_ARCH__
    std::uint32_t d;
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    return a * b + c;
#endif
}

// The column whose word a thread ends up with as its i-th, 0 to 3.
DAEL_HD constexpr std::uint32_t state_column(std::uint32_t thread, std::uint32_t i) {
    const std::uint32_t group = thread % 32 / 4, quad = thread % 4;
    return 64 * (group & 1) + 32 * (group >> 1 & 1) + 16 * (i >> 1) + 8 * (i & 1) + 2 * quad +
           (group >> 2);
}

// Gathers the lowest bits of a thread's counts: of rows in this half, for `kColumns` columns from
// `first` on (a multiple of 16). packed[i] gets one bit for each of the four columns 16 i + 8 p + 2
// quad + e, at bit 16 e + 8 p + 2 half + row. By multiplications where they will do: lookups of a
// cipher beside this keep the other pipe busy.
template <std::uint32_t kColumns>
DAEL_HD void pack_counts(std::uint32_t (&packed)[8], const std::uint32_t (&counts)[kColumns / 2],
                         std::uint32_t first, std::uint32_t half) {
    DAEL_UNROLL(8)
    for (std::uint32_t i = 0; i < kColumns / 16; ++i) {
        DAEL_UNROLL(2)
        for (std::uint32_t p = 0; p < 2; ++p) {
            DAEL_UNROLL(2)
            for (std::uint32_t row = 0; row < 2; ++row) {
                const std::uint32_t at = 4 * (2 * i + p) + 2 * row, shift = 8 * p + 2 * half + row;
                const std::uint32_t two = multiply_add(counts[at + 1], 65536, counts[at]);
                packed[first / 16 + i] |= multiply_add(two, 1u << shift, 0) & 0x00010001u << shift;
            }
        }
    }
}

// Lanes 4, 8 and 16 apart hold other rows of the same columns: three exchanges, each giving away
// half of the columns for the other half's missing bits, leave four whole words, word thread / 32
// of state_column(thread, i). `shuffle_xor(value, distance)` is the value of the lane that far
// apart.
template <class Shuffle>
DAEL_HD void exchange_rows(std::uint32_t (&state)[4], const std::uint32_t (&packed)[8],
                           std::uint32_t thread, Shuffle shuffle_xor) {
    const std::uint32_t group = thread % 32 / 4;
    const bool g0 = (group & 1) != 0, g1 = (group & 2) != 0, g2 = (group & 4) != 0;
    const std::uint32_t scale = g0 ? 16 : 1;
    std::uint32_t bytes[4];
    DAEL_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
        const std::uint32_t low = packed[i] * scale, high = packed[i + 4] * scale;
        bytes[i] = (g0 ? high : low) | shuffle_xor(g0 ? low : high, 4);
    }
    std::uint32_t halves[2][2];
    const std::uint32_t first = g1 ? 0x1504 : 0x5140, second = g1 ? 0x3726 : 0x7362;
    DAEL_UNROLL(2)
    for (int i = 0; i < 2; ++i) {
        const std::uint32_t keep = g1 ? bytes[i + 2] : bytes[i],
                            got = shuffle_xor(g1 ? bytes[i] : bytes[i + 2], 8);
        halves[i][0] = byte_perm(keep, got, first);
        halves[i][1] = byte_perm(keep, got, second);
    }
    const std::uint32_t lower = g2 ? 0x1054 : 0x5410, upper = g2 ? 0x3276 : 0x7632;
    DAEL_UNROLL(2)
    for (int i = 0; i < 2; ++i) {
        const std::uint32_t keep = g2 ? halves[i][1] : halves[i][0],
                            got = shuffle_xor(g2 ? halves[i][0] : halves[i][1], 16);
        state[2 * i] = byte_perm(keep, got, lower);
        state[2 * i + 1] = byte_perm(keep, got, upper);
    }
}

}  // namespace dael::kernels
