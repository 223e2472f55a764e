// SPDX-License-Identifier: Apache-2.0
// One warpgroup that hashes tiles of shared memory with the tensor cores (kernels/ghash_tile.hpp).
// Needs sm_90a.
#pragma once

#include "backends/cuda/gcm/math.cuh"

namespace dael::cuda {

// Describes 128 columns of 256 bits in shared memory to wgmma, without swizzle: core matrices of 8
// columns of 16 bytes; the next 8 columns are 128 bytes on, the other 128 bits a column's next
// block.
__device__ __forceinline__ std::uint64_t tile_descriptor(std::uint32_t shared_address) {
    constexpr std::uint64_t kNextBlock = kernels::kTileColumns * 16, kNextColumns = 128;
    return (shared_address & 0x3ffff) >> 4 | kNextBlock >> 4 << 16 | kNextColumns >> 4 << 32;
}

// counts (+)= the ones of (64 rows AND 64 or 128 columns), over 256 bits; `add` 0 starts from zero.
__device__ __forceinline__ void wgmma_b1(std::uint32_t (&d)[32], const std::uint32_t (&a)[4],
                                         std::uint64_t columns, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k256.s32.b1.b1.and.popc "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, p;\n}"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]),
          "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]),
          "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]),
          "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]),
          "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns), "r"(add));
}
__device__ __forceinline__ void wgmma_b1(std::uint32_t (&d)[64], const std::uint32_t (&a)[4],
                                         std::uint64_t columns, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, "
        "%37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, "
        "%55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, p;\n}"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]),
          "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]),
          "+r"(d[14]), "+r"(d[15]), "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]),
          "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]),
          "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]),
          "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]),
          "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]),
          "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]),
          "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]),
          "+r"(d[63])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns), "r"(add));
}

// For the threads of one warpgroup of several.
__device__ __forceinline__ void warpgroup_barrier(std::uint32_t group) {
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}
// Makes this thread's writes to shared memory visible to wgmma, once a barrier has followed.
__device__ __forceinline__ void async_proxy_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The 128 threads of a warpgroup call every function together. `kColumns` go through the tensor
// cores at once: 128 are faster, 64 take fewer registers.
template <std::uint32_t kColumns>
class TileHasher {
  public:
    // `thread` is 0 to 127.
    __device__ explicit TileHasher(std::uint32_t thread) : thread_(thread) { reset(); }

    __device__ __forceinline__ void load(const std::uint32_t* fragments) {
#pragma unroll
        for (std::uint32_t half = 0; half < 2; ++half)
#pragma unroll
            for (std::uint32_t step = 0; step < kernels::kFragmentSteps; ++step)
#pragma unroll
                for (std::uint32_t r = 0; r < 4; ++r)
                    matrix_[half][step][r] =
                        fragments[kernels::fragment_index(half, step, r, thread_)];
    }

    __device__ __forceinline__ void reset() {
#pragma unroll
        for (int i = 0; i < 4; ++i) state_[i] = 0;
    }

    // Adds the state to the first 128 blocks of a tile. The caller orders this before multiply(),
    // with a fence for the asynchronous proxy.
    __device__ __forceinline__ void add_state(unsigned char* tile) const {
#pragma unroll
        for (std::uint32_t i = 0; i < 4; ++i) *word(tile, i) ^= state_[i];
    }

    // The same as plain values, for the end: word thread / 32 of column state_column(thread, i).
    __device__ __forceinline__ void store_state(unsigned char* columns) const {
#pragma unroll
        for (std::uint32_t i = 0; i < 4; ++i) *word(columns, i) = state_[i];
    }

    // The state becomes the tile's product.
    __device__ __forceinline__ void multiply(std::uint32_t tile_address) {
        std::uint32_t packed[8] = {};
        const std::uint64_t tile = tile_descriptor(tile_address);
#pragma unroll
        for (std::uint32_t first = 0; first < kernels::kTileColumns; first += kColumns)
#pragma unroll
            for (std::uint32_t half = 0; half < kernels::kFragmentHalves; ++half) {
                std::uint32_t counts[kColumns / 2];
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
                for (std::uint32_t step = 0; step < kernels::kFragmentSteps; ++step)
                    wgmma_b1(counts, matrix_[half][step],
                             tile + (first * 16 + step * 2 * kernels::kTileColumns * 16) / 16,
                             step != 0);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                kernels::pack_counts<kColumns>(packed, counts, first, half);
            }
        kernels::exchange_rows(state_, packed, thread_, [](std::uint32_t value, int distance) {
            return __shfl_xor_sync(~0u, value, distance);
        });
    }

  private:
    __device__ __forceinline__ std::uint32_t* word(unsigned char* columns, std::uint32_t i) const {
        return reinterpret_cast<std::uint32_t*>(columns + kernels::state_column(thread_, i) * 16 +
                                                thread_ / 32 * 4);
    }

    std::uint32_t thread_;
    std::uint32_t matrix_[2][kernels::kFragmentSteps][4];
    std::uint32_t state_[4];
};

// The end of a message, or of a share of it, with `after` tiles to come: each column's state by its
// weight, the sum of all, times the power of H that the tiles to come are worth. `scratch`:
// kHashScratch bytes, the columns' states, then the warps' sums.
template <std::uint32_t kColumns>
__device__ __forceinline__ void close_share(TileHasher<kColumns>& hasher, std::uint32_t thread,
                                            std::uint32_t group, unsigned char* scratch,
                                            const GcmKey& key, const GcmMatrices& matrices,
                                            std::uint64_t after, Words4& partial) {
    auto* columns = reinterpret_cast<Words4*>(scratch);
    warpgroup_barrier(group);  // the share before has been read
    hasher.store_state(scratch);
    hasher.reset();
    warpgroup_barrier(group);
    Words4 sum = warp_sum(kernels::gf_multiply(columns[thread], matrices.column_weights[thread]));
    if (thread % kernels::kLanes == 0)
        columns[kernels::kTileColumns + thread / kernels::kLanes] = sum;
    warpgroup_barrier(group);
    if (thread >= kernels::kLanes) return;
    const Words4* sums = columns + kernels::kTileColumns;
    sum = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
    if (after != 0) sum = times_power<kSquares>(sum, key.squares, after * kernels::kTileBlocks);
    if (thread == 0) partial = sum;
}

}  // namespace dael::cuda
