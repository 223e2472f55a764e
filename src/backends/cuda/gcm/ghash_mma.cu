// SPDX-License-Identifier: Apache-2.0
// GHASH of long messages on the tensor cores of sm_80 to sm_90: a warp takes tiles of its own, row
// by row (kernels/ghash_mma.hpp), and keeps the matrices of a key in registers.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/error.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/math.cuh"
#include "kernels/ghash_mma.hpp"

#if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 800 && __CUDA_ARCH__ <= 900)
#define DAEL_MMA_B1 1
#else
#define DAEL_MMA_B1 0
#endif

namespace dael::cuda {
namespace {

using kernels::kLanes;
using kernels::kMmaRegisters;
using kernels::kMmaTiles;
using kernels::kTileBlocks;
using kernels::kTileBytes;

#ifdef __CUDACC__
__device__ const std::uint32_t compiled_with_mma = DAEL_MMA_B1;

// counts (+)= the ones of (16 rows AND 8 columns), over 256 and over 128 bits.
__device__ __forceinline__ void mma_b1(std::uint32_t (&d)[4], const std::uint32_t (&a)[4],
                                       std::uint32_t b0, std::uint32_t b1) {
#if DAEL_MMA_B1
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap();  // nothing is compiled here
#endif
}
__device__ __forceinline__ void mma_b1(std::uint32_t (&d)[4], const std::uint32_t (&a)[2],
                                       std::uint32_t b) {
#if DAEL_MMA_B1
    asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
#else
    __trap();
#endif
}
#endif

// A lane's part of a key's matrices.
struct Matrices {
    std::uint32_t x_y[kMmaTiles][4], z_w[kMmaTiles][4], state[kMmaTiles][2];

    __device__ __forceinline__ void load(const std::uint32_t* words, std::uint32_t lane) {
#pragma unroll
        for (std::uint32_t tile = 0; tile < kMmaTiles; ++tile) {
#pragma unroll
            for (std::uint32_t r = 0; r < kMmaRegisters; ++r) {
                const std::uint32_t word = words[kernels::mma_index(tile, r, lane)];
                (r < 4 ? x_y[tile][r % 4] : r < 8 ? z_w[tile][r % 4] : state[tile][r % 2]) = word;
            }
        }
    }
    __device__ __forceinline__ void multiply(std::uint32_t (&counts)[4], std::uint32_t tile,
                                             const Words4& block, std::uint32_t its_state) const {
#pragma unroll
        for (std::uint32_t& count : counts) count = 0;
        mma_b1(counts, x_y[tile], block.x, block.y);
        mma_b1(counts, z_w[tile], block.z, block.w);
        mma_b1(counts, state[tile], its_state);
    }
};

__global__ void __launch_bounds__(shapes::kMmaWorkers* kLanes, 1)
    ghash_mma(const __grid_constant__ GcmBatch batch, const __grid_constant__ Part asked) {
    let_the_next_begin();
    wait_for_those_before();
    const PartBlock mine(asked);
    const Part part = mine.part;
    const TileList& list = batch.tiles(part);
    const std::uint64_t tiles = list.starts[batch.count];
    const std::uint32_t worker = mine.block * shapes::kMmaWorkers + threadIdx.x / kLanes,
                        workers = busy_workers(list.workers, tiles), lane = threadIdx.x % kLanes;
    if (worker >= workers) return;
    const std::uint64_t to = share_start(tiles, workers, worker + 1);
    std::uint64_t tile = share_start(tiles, workers, worker);
    Walk here(list, batch.count, tile, WarpVotes{});
    Matrices matrices;
    std::uint32_t loaded = ~0u;
#pragma unroll 1
    while (tile < to) {
        here.advance(list, tile);
        const HashItem item = hash_item(batch, part, here.message);
        const std::uint32_t index = batch.messages[here.message].key;
        if (index != loaded) matrices.load(batch.matrices[index].fragments, lane);
        loaded = index;
        const GcmKey& key = batch.keys[index];
        const std::uint64_t last = min(to, here.end);
        auto at = static_cast<std::int64_t>((tile - here.start) * kTileBytes) +
                  (static_cast<std::int64_t>(lane) - item.lead) * 16;
        std::uint32_t state = 0;
        Words4 next = block_at(item, at);
#pragma unroll 1
        for (std::uint64_t rows = (last - tile) * (kTileBlocks / kLanes); rows != 0; --rows) {
            const Words4 block = next;
            at += kLanes * 16;
            next = block_at(item, at);  // zeros, or another's, behind the last
            state = kernels::mma_row(
                block, state, lane,
                [&](std::uint32_t(&counts)[4], std::uint32_t matrix, const Words4& x,
                    std::uint32_t y) { matrices.multiply(counts, matrix, x, y); },
                [](std::uint32_t value, std::uint32_t from) {
                    return __shfl_sync(~0u, value, from);
                });
        }
        Words4 hash = kernels::mma_column_part(state, lane % 4);
        hash = hash ^ shuffle_xor(hash, 1);
        hash = hash ^ shuffle_xor(hash, 2);
        hash = kernels::gf_multiply(hash, key.powers[kernels::mma_owed(lane / 4)]);
#pragma unroll
        for (int distance = 4; distance != kLanes; distance *= 2)
            hash = hash ^ shuffle_xor(hash, distance);
        if (last != here.end)
            hash = times_power<kSquares>(hash, key.squares, (here.end - last) * kTileBlocks);
        if (lane == 0) list.partials[worker + here.message] = hash;
        tile = last;
    }
}

// A block of threads to a key, whose powers are there.
__global__ void __launch_bounds__(shapes::kMmaSetUpThreads)
    ghash_mma_setup(const GcmKey* keys, GcmMatrices* matrices, std::uint32_t count) {
    __shared__ Words4 columns[128];
    static_assert(sizeof columns == shapes::ghash_mma_setup().fixed);
    const std::uint32_t thread = threadIdx.x;
#pragma unroll 1
    for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x)
#pragma unroll 1
        for (std::uint32_t which = 1; which <= 5; ++which) {
            const std::uint32_t power = which <= 4 ? which : kLanes;
            columns[thread] =
                kernels::gf_multiply(keys[i].powers[power], kernels::gf_basis(thread));
            __syncthreads();
#pragma unroll 1
            for (std::uint32_t index = thread; index < kernels::kMmaWords; index += blockDim.x) {
                const kernels::MmaWord w = kernels::mma_word(index);
                if (w.power != power) continue;
                std::uint32_t bits = 0;
#pragma unroll 1
                for (std::uint32_t bit = 0; bit < 32; ++bit) {
                    const auto* column =
                        reinterpret_cast<const std::uint32_t*>(&columns[w.input(bit)]);
                    bits |= (column[w.output / 32] >> (w.output % 32) & 1) << bit;
                }
                matrices[i].fragments[index] = bits;
            }
            __syncthreads();
        }
    wipe_shared<sizeof columns, shapes::kMmaSetUpThreads>(columns, thread);
}

}  // namespace

Kernel ghash_mma_kernel() {
    return {reinterpret_cast<const void*>(&ghash_mma), shapes::ghash_mma(), true};
}

Kernel ghash_mma_setup_kernel() {
    return {reinterpret_cast<const void*>(&ghash_mma_setup), shapes::ghash_mma_setup()};
}

#ifdef __CUDACC__
Result<bool> has_ghash_mma(const SetUp& set_up) {
    std::uint32_t compiled = 0;
    DAEL_TRY(checked(cudaMemcpyFromSymbolAsync(&compiled, compiled_with_mma, sizeof compiled, 0,
                                               cudaMemcpyDeviceToHost, set_up.stream()),
                     "cudaMemcpyFromSymbolAsync"));
    DAEL_TRY(set_up.wait());
    return compiled != 0;
}
#endif

}  // namespace dael::cuda
