// SPDX-License-Identifier: Apache-2.0
// Lists in device memory, which nobody on the host has looked at, ordered by size: messages side by
// side in a warp wait for the longest of them. Each thread block orders the share of the list that
// the one of the same number takes then.
#pragma once

#include "backends/cuda/aegis/kernels.hpp"
#include "backends/cuda/dependent_launch.cuh"

namespace dael::cuda {

// Bins of what messages cost in steps, those with the most first: each number of steps to 255, and
// eight to every doubling then.
struct AegisBins {
    static constexpr std::uint32_t kFine = 256, kBins = kernels::kLanes * 22;
    std::uint32_t of[kBins];
    std::uint32_t differ;  // whether any message of the share costs more than another
};
static_assert(sizeof(AegisBins) == shapes::aegis_order().fixed);

DAEL_HD std::uint32_t aegis_bin(std::uint64_t size, std::uint64_t aad_size, std::uint32_t step) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 61;  // bytes, which no message has
    const std::uint64_t steps =
        ((size < kMost ? size : kMost) + (aad_size < kMost ? aad_size : kMost)) / step;
    if (steps < AegisBins::kFine) return static_cast<std::uint32_t>(steps);
    std::uint32_t doublings = 0;
    while (steps >> doublings >= 2 * AegisBins::kFine) ++doublings;
    return AegisBins::kFine + doublings * 8 +
           static_cast<std::uint32_t>(steps >> doublings) % AegisBins::kFine /
               (AegisBins::kFine / 8);
}

// A block's share is every gridDim-th group of neighbours, so that lists that have an order of
// their own are spread, and one whose messages are alike stays as it is.
struct AegisShare {
    const AegisOrdering& work;
    std::uint32_t count;

    __device__ AegisShare(const AegisOrdering& its_work, std::uint32_t listed)
        : work(its_work), count(0) {
        const std::uint32_t groups = listed / work.together, rest = listed % work.together;
        count = groups / gridDim.x * work.together;
        if (blockIdx.x < groups % gridDim.x) count += work.together;
        if (blockIdx.x == groups % gridDim.x) count += rest;
    }
    __device__ std::uint32_t message(std::uint32_t i) const {
        return (i / work.together * gridDim.x + blockIdx.x) * work.together + i % work.together;
    }
    __device__ std::uint32_t bin(std::uint32_t i) const {
        const Message& m = work.messages[message(i)];
        return aegis_bin(m.size, m.aad_size, work.step);
    }
    // Where the one of rank `r` comes in the order, that a warp of this block finds it: groups go
    // to warps there and back (aegis_messages).
    __device__ std::uint64_t place(std::uint32_t r) const {
        const std::uint32_t group = r / work.together, turn = group / work.warps,
                            k = group % work.warps, all = work.warps * gridDim.x,
                            warp =
                                (turn % 2 == 0 ? k : work.warps - 1 - k) * gridDim.x + blockIdx.x;
        const std::uint64_t at =
            std::uint64_t{turn} * all + (turn % 2 == 0 ? warp : all - 1 - warp);
        return at * work.together + r % work.together;
    }
};

// call(i, bin) for each message of a thread's, several of which are asked for at once.
template <class Call>
__device__ __forceinline__ void for_each_bin(const AegisShare& share, Call call) {
    constexpr std::uint32_t kAtOnce = 4, kThreads = shapes::aegis_order().threads;
    for (std::uint32_t from = threadIdx.x; from < share.count; from += kAtOnce * kThreads) {
        std::uint32_t bins[kAtOnce] = {};
#pragma unroll
        for (std::uint32_t k = 0; k < kAtOnce; ++k)
            if (from + k * kThreads < share.count) bins[k] = share.bin(from + k * kThreads);
#pragma unroll
        for (std::uint32_t k = 0; k < kAtOnce; ++k)
            if (from + k * kThreads < share.count) call(from + k * kThreads, bins[k]);
    }
}

__device__ __forceinline__ void order_share(AegisBins& bins, const AegisOrdering& work) {
    const std::uint32_t thread = threadIdx.x, threads = shapes::aegis_order().threads;
    const AegisShare share(work, number_of(work.number, work.count));
    for (std::uint32_t i = thread; i < AegisBins::kBins; i += threads) bins.of[i] = 0;
    if (thread == 0) bins.differ = 0;
    __syncthreads();
    const std::uint32_t usual = share.count != 0 ? share.bin(0) : 0;
    bool same = true;
    for_each_bin(share, [&](std::uint32_t, std::uint32_t bin) {
        same = same && bin == usual;
        atomicAdd(&bins.of[bin], 1u);
    });
    if (!same) bins.differ = 1;
    // Places that have no message.
    for (std::uint32_t r = share.count + thread; r < work.turns * work.warps * work.together;
         r += threads)
        work.order[share.place(r)] = kNoMessage;
    __syncthreads();
    if (bins.differ == 0) {
        for (std::uint32_t i = thread; i < share.count; i += threads)
            work.order[share.place(i)] = share.message(i);
        return;
    }
    if (thread < kernels::kLanes) {  // from a bin's size to how many are before it
        constexpr std::uint32_t kOwn = AegisBins::kBins / kernels::kLanes;
        const auto bin = [&](std::uint32_t k) -> std::uint32_t& {
            return bins.of[AegisBins::kBins - 1 - (thread * kOwn + k)];
        };
        std::uint32_t sum = 0;
        for (std::uint32_t k = 0; k < kOwn; ++k) {
            sum += bin(k);
        }
        std::uint32_t before = sum;
        for (std::uint32_t distance = 1; distance < kernels::kLanes; distance *= 2) {
            const std::uint32_t other =
                __shfl_sync(~0u, before, thread >= distance ? thread - distance : thread);
            if (thread >= distance) before += other;
        }
        before -= sum;
        for (std::uint32_t k = 0; k < kOwn; ++k) {
            const std::uint32_t its = bin(k);
            bin(k) = before;
            before += its;
        }
    }
    __syncthreads();
    for_each_bin(share, [&](std::uint32_t i, std::uint32_t bin) {
        work.order[share.place(atomicAdd(&bins.of[bin], 1u))] = share.message(i);
    });
}

// (AegisOrdering), of as many blocks as the batch's.
static __global__ void __launch_bounds__(shapes::aegis_order().threads)
    aegis_order(const __grid_constant__ AegisOrdering work) {
    __shared__ AegisBins bins;
    let_the_next_begin();
    wait_for_those_before();
    order_share(bins, work);
}

}  // namespace dael::cuda
