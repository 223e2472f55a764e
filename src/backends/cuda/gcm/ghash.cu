// SPDX-License-Identifier: Apache-2.0
// GHASH of long messages' AAD and data as they lie in memory, tile by tile: on tensor cores, three
// warpgroups to a multiprocessor; and on any GPU, a tile to a warp, 32 blocks at a time.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/error.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/math.cuh"
#include "backends/cuda/gcm/tile_hasher.cuh"
#include "backends/cuda/memory_access.cuh"
#include "kernels/realign.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;
using kernels::kTileBlocks;
using kernels::kTileBytes;
using kernels::kTileThreads;

// Three warpgroups take tiles of their own, each from a ring of four.
constexpr std::uint32_t kGroups = shapes::kTileWorkers, kStages = shapes::kTileStages;
[[maybe_unused]] constexpr std::uint32_t kRingBytes = kStages * kTileBytes;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__device__ const std::uint32_t compiled_for_tensor_cores = 1;

__device__ __forceinline__ void copy16(std::uint32_t shared, const void* global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

// Starts the copy of a tile; what is before the data and after it becomes zeros. Of data that
// is not aligned, blocks are cut out of aligned words on their way through registers.
__device__ __forceinline__ void fetch(const HashItem& item, std::uint64_t tile,
                                      unsigned char* stage, std::uint32_t thread) {
    const std::int64_t block = static_cast<std::int64_t>(tile * kTileBlocks + thread) - item.lead;
    const unsigned char* from = item.data + block * 16;
    unsigned char* to = stage + thread * 16;
    const auto shared = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    const std::int64_t left = static_cast<std::int64_t>(item.size) - block * 16;
    constexpr std::uint32_t kDepth = kernels::kTileDepth, kStep = kernels::kTileColumns * 16;
    const std::uint32_t past =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from)) & 15;
    if (past == 0 && block >= 0 && left >= (kDepth - 1) * kStep + 16) {
#pragma unroll
        for (std::uint32_t j = 0; j < kDepth; ++j) copy16(shared + j * kStep, from + j * kStep);
        return;
    }
    // The words at both ends reach beyond the blocks, but not beyond the data.
    if (past != 0 && block > 0 && left >= (kDepth - 1) * kStep + 32) {
        const std::size_t words = global_address(from) - past;
        constexpr std::uint32_t kAtOnce = 2;  // more are slower
#pragma unroll
        for (std::uint32_t first = 0; first < kDepth; first += kAtOnce) {
            Words4 low[kAtOnce], high[kAtOnce];
#pragma unroll
            for (std::uint32_t j = 0; j < kAtOnce; ++j) {
                low[j] = load_global(words + (first + j) * kStep);
                high[j] = load_global(words + (first + j) * kStep + 16);
            }
#pragma unroll
            for (std::uint32_t j = 0; j < kAtOnce; ++j)
                store_aligned(to + (first + j) * kStep, kernels::bytes_from(low[j], high[j], past));
        }
        return;
    }
#pragma unroll 1
    for (std::uint32_t j = 0; j < kDepth; ++j) {
        const std::int64_t here = left - static_cast<std::int64_t>(j) * kStep;
        const int size =
            block + static_cast<std::int64_t>(j) * kernels::kTileColumns < 0 || here <= 0 ? 0
            : here < 16 ? static_cast<int>(here)
                        : 16;
        store_aligned(to + j * kStep, load_part(from + j * kStep, 0, size));
    }
}

#else
__device__ const std::uint32_t compiled_for_tensor_cores = 0;
#endif

__global__ void __launch_bounds__(kGroups* kTileThreads, 1)
    ghash_tiles([[maybe_unused]] const __grid_constant__ GcmBatch batch,
                [[maybe_unused]] const __grid_constant__ Part asked) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    let_the_next_begin();
    wait_for_those_before();
    const PartBlock mine(asked);
    const Part part = mine.part;
    const std::uint32_t group = threadIdx.x / kTileThreads, thread = threadIdx.x % kTileThreads;
    const TileList& list = batch.tiles(part);
    const std::uint64_t tiles = list.starts[batch.count];
    const std::uint32_t worker = mine.block * kGroups + group,
                        workers = busy_workers(list.workers, tiles);
    if (worker >= workers) return;
    const std::uint64_t from = share_start(tiles, workers, worker),
                        to = share_start(tiles, workers, worker + 1);
    unsigned char* ring = table_image + group * kRingBytes;
    unsigned char* scratch = table_image + kGroups * kRingBytes + group * shapes::kHashScratch;

    Walk here(list, batch.count, from, WarpVotes{}), ahead = here;
    HashItem item = hash_item(batch, part, ahead.message);
    std::uint64_t next = from;  // to be fetched
    const auto fetch_next = [&] {
        if (next < to) {
            if (ahead.advance(list, next)) item = hash_item(batch, part, ahead.message);
            fetch(item, next - ahead.start, ring + next % kStages * kTileBytes, thread);
            ++next;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (std::uint32_t i = 0; i + 1 < kStages; ++i) fetch_next();

    TileHasher<128> hasher(thread);
    std::uint32_t key = batch.messages[here.message].key;
    hasher.load(batch.matrices[key].fragments);
#pragma unroll 1
    for (std::uint64_t tile = from; tile < to; ++tile) {
        if (here.advance(list, tile) && batch.messages[here.message].key != key) {
            key = batch.messages[here.message].key;
            hasher.load(batch.matrices[key].fragments);
        }
        unsigned char* stage = ring + tile % kStages * kTileBytes;
        asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
        warpgroup_barrier(group);  // everybody's copies are there; the stage before is free
        fetch_next();
        hasher.add_state(stage);
        async_proxy_fence();
        warpgroup_barrier(group);
        hasher.multiply(static_cast<std::uint32_t>(__cvta_generic_to_shared(stage)));
        const std::uint64_t after = here.end - tile - 1;
        if (after == 0 || tile + 1 == to)
            close_share(hasher, thread, group, scratch, batch.keys[key], batch.matrices[key], after,
                        list.partials[worker + here.message]);
    }
    // Hashes that no tag covers yet tell of H: those in the scratch, and those that were added to
    // the tiles' first blocks.
    warpgroup_barrier(group);
    wipe_shared<shapes::kHashScratch, kTileThreads>(scratch, thread);
#pragma unroll
    for (std::uint32_t stage = 0; stage < kStages; ++stage)
        wipe_shared<kernels::kTileColumns * 16, kTileThreads>(ring + stage * kTileBytes, thread);
#else
    __trap();  // nothing is compiled here
#endif
}

__global__ void __launch_bounds__(shapes::kRowWorkers* kLanes)
    ghash_rows(const __grid_constant__ GcmBatch batch, const __grid_constant__ Part asked) {
    let_the_next_begin();
    wait_for_those_before();
    const PartBlock mine(asked);
    const Part part = mine.part;
    const TileList& list = batch.tiles(part);
    const std::uint64_t tiles = list.starts[batch.count];
    const std::uint32_t worker = mine.block * shapes::kRowWorkers + threadIdx.x / kLanes,
                        workers = busy_workers(list.workers, tiles), lane = threadIdx.x % kLanes;
    if (worker >= workers) return;
    const std::uint64_t to = share_start(tiles, workers, worker + 1);
    std::uint64_t tile = share_start(tiles, workers, worker);
    Walk here(list, batch.count, tile, WarpVotes{});
#pragma unroll 1
    while (tile < to) {
        here.advance(list, tile);
        const HashItem item = hash_item(batch, part, here.message);
        const GcmKey& key = batch.keys[batch.messages[here.message].key];
        const std::uint64_t last = min(to, here.end);
        const Words4 h32 = key.powers[kLanes];
        auto at = static_cast<std::int64_t>((tile - here.start) * kTileBytes) +
                  (static_cast<std::int64_t>(lane) - item.lead) * 16;
        Words4 hash{};
#pragma unroll 1
        for (std::uint64_t rows = (last - tile) * (kTileBlocks / kLanes); rows != 0; --rows) {
            const Words4 x = block_at(item, at);
            hash = kernels::gf_multiply(hash, h32) ^ x;
            at += kLanes * 16;
        }
        hash = warp_sum(kernels::gf_multiply(hash, key.powers[kLanes - lane]));
        if (last != here.end)
            hash = times_power<kSquares>(hash, key.squares, (here.end - last) * kTileBlocks);
        if (lane == 0) list.partials[worker + here.message] = hash;
        tile = last;
    }
}

}  // namespace

Kernel ghash_tiles_kernel() {
    return {reinterpret_cast<const void*>(&ghash_tiles), shapes::ghash_tiles(), true};
}

Kernel ghash_rows_kernel() {
    return {reinterpret_cast<const void*>(&ghash_rows), shapes::ghash_rows(), true};
}

#ifdef __CUDACC__
Result<bool> has_ghash_tiles(const SetUp& set_up) {
    std::uint32_t compiled = 0;
    DAEL_TRY(
        checked(cudaMemcpyFromSymbolAsync(&compiled, compiled_for_tensor_cores, sizeof compiled, 0,
                                          cudaMemcpyDeviceToHost, set_up.stream()),
                "cudaMemcpyFromSymbolAsync"));
    DAEL_TRY(set_up.wait());
    return compiled != 0;
}
#endif

}  // namespace dael::cuda
