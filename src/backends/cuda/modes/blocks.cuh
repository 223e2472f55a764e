// SPDX-License-Identifier: Apache-2.0
// The kernel for every mode whose blocks are independent: a warp takes 32 neighbouring blocks at a
// time, one to a lane, from a contiguous share of the work. One segment or many, any alignment, any
// length.
//
// In place and chained (CBC and CFB decryption need the ciphertext block before each of their own):
// - within its share a warp goes from the end to the beginning, so that what it needs still stands;
// - the block before its share belongs to another warp: every warp reads that one first, then the
//   whole grid synchronises (a cooperative launch), then writing may begin.
#pragma once

#include <cooperative_groups.h>

#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/memory_access.cuh"

namespace dael::cuda {

// What a mode does with a block: `kInverse` picks the cipher's direction; `kChained` asks for the
// block before.
struct EcbEncrypt {
    static constexpr bool kInverse = false, kChained = false;
};
struct EcbDecrypt {
    static constexpr bool kInverse = true, kChained = false;
};
struct CbcDecrypt {  // P[i] = D(C[i]) ^ C[i-1]   (SP 800-38A 6.2)
    static constexpr bool kInverse = true, kChained = true;
};
struct CfbDecrypt {  // P[i] = E(C[i-1]) ^ C[i]   (SP 800-38A 6.3)
    static constexpr bool kInverse = false, kChained = true;
};

template <class Op, int kRounds, int kTables>
__device__ __forceinline__ Words4 transform(const kernels::Tables<kTables, Op::kInverse>& tables,
                                            const RoundKeys& keys, const Words4& x,
                                            const Words4& previous) {
    if constexpr (Op::kChained && Op::kInverse)
        return kernels::crypt_masked<kRounds>(tables, keys, x, previous);
    else if constexpr (Op::kChained)
        return kernels::crypt_masked<kRounds>(tables, keys, previous, x);
    else
        return kernels::crypt_masked<kRounds>(tables, keys, x, Words4{});
}

// Blocks `begin` to `end` of a segment, from the end to the beginning; `before` is the ciphertext
// block before `begin`, or the IV.
template <class Op, int kRounds, int kTables>
__device__ __forceinline__ void process(const kernels::Tables<kTables, Op::kInverse>& tables,
                                        const RoundKeys& keys, const DeviceSegment& segment,
                                        std::uint64_t begin, std::uint64_t end, Words4 before) {
    const unsigned lane = threadIdx.x % kernels::kLanes;
    const std::uint64_t whole_blocks = aligned16(segment.in, segment.out) ? segment.size / 16 : 0;

    // What is ragged or unaligned: byte by byte where it must be.
    std::uint64_t top = begin + (end - begin - 1) / 32 * 32;
    for (; top + 32 > whole_blocks; top -= 32) {
        const std::uint64_t block = top + lane;
        const bool active = block < end;
        const std::uint64_t rest = segment.size - block * 16;
        const int size = !active ? 0 : rest < 16 ? static_cast<int>(rest) : 16;
        const unsigned char* const in = segment.in + block * 16;
        const Words4 x = load_part(in, 0, size);
        Words4 previous = before;
        if (Op::kChained && active && block != begin) previous = load_part(in - 16, 0, 16);
        if (Op::kChained) __syncwarp();  // all have read before one writes
        store_part(segment.out + block * 16, transform<Op, kRounds>(tables, keys, x, previous), 0,
                   size);
        if (top == begin) return;
    }

    // Whole and aligned.
    const unsigned char* in = segment.in + (top + lane) * 16;
    unsigned char* out = segment.out + (top + lane) * 16;
#pragma unroll 1
    for (auto left = static_cast<std::uint32_t>((top - begin) / 32 + 1); left != 0; --left) {
        const Words4 x = load_aligned(in);
        Words4 previous = before;
        if (Op::kChained && (left != 1 || lane != 0)) previous = load_aligned(in - 16);
        if (Op::kChained) __syncwarp();  // all have read before one writes
        store_aligned(out, transform<Op, kRounds>(tables, keys, x, previous));
        in -= 512;
        out -= 512;
    }
}

template <class Op, int kRounds, int kTables>
__global__ void __launch_bounds__(1024, 1)
    blocks_kernel(const __grid_constant__ BlocksWork work, const __grid_constant__ RoundKeys keys) {
    const auto tables = fill_tables<kTables, Op::kInverse>();
    const unsigned warps_here = blockDim.x / kernels::kLanes;
    const std::uint64_t warp =
        std::uint64_t{blockIdx.x} * warps_here + threadIdx.x / kernels::kLanes;

    WarpStart from, to;
    if (work.list) {
        from = work.starts[warp];
        to = work.starts[warp + 1];
    } else {
        const std::uint64_t warps = std::uint64_t{gridDim.x} * warps_here,
                            blocks = work.one.blocks();
        const std::uint64_t units = (blocks + 31) / 32;
        from = {units * warp / warps * 32, 0};
        to = {min(units * (warp + 1) / warps * 32, blocks), 0};
    }

    Words4 before{};
    if (Op::kChained) {
        if (from.block != 0) {
            const unsigned char* in = work.list ? work.list[from.segment].in : work.one.in;
            before = load_part(in + from.block * 16 - 16, 0, 16);
        }
        if (work.synchronise) cooperative_groups::this_grid().sync();
    }

    for (std::uint32_t s = from.segment; s < to.segment || (s == to.segment && to.block != 0);
         ++s) {
        const DeviceSegment segment = work.list ? work.list[s] : work.one;
        const std::uint64_t begin = s == from.segment ? from.block : 0;
        const std::uint64_t end = s == to.segment ? to.block : segment.blocks();
        if (s != from.segment || begin == 0) before = segment.iv;
        if (begin < end) process<Op, kRounds>(tables, keys, segment, begin, end, before);
    }
}

template <class Op, int kRounds, int kTables>
Kernel make_blocks_kernel() {
    return {reinterpret_cast<const void*>(&blocks_kernel<Op, kRounds, kTables>),
            shapes::blocks(kTables, Op::kInverse)};
}

template <class Op>
Kernel find_blocks_kernel(int rounds, int tables) {
    return find_kernel(rounds, tables,
                       [](auto r, auto t) { return make_blocks_kernel<Op, r.value, t.value>(); });
}

}  // namespace dael::cuda
