// SPDX-License-Identifier: Apache-2.0
// Counts the units of a batch's work: where each message's begin. One block of threads, each with a
// contiguous run of the messages.
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_work.hpp"

namespace dael::cuda {
namespace {

constexpr std::uint32_t kThreads = shapes::gcm_plan().threads;

__global__ void __launch_bounds__(kThreads) gcm_plan(const __grid_constant__ GcmBatch batch) {
    __shared__ std::uint64_t sums[kThreads];
    static_assert(sizeof sums == shapes::gcm_plan().fixed);
    const std::uint32_t thread = threadIdx.x;
    const std::uint64_t run = (std::uint64_t{batch.count} + kThreads - 1) / kThreads;
    const std::uint64_t from = min(run * thread, std::uint64_t{batch.count}),
                        to = min(from + run, std::uint64_t{batch.count});
    const auto fill = [&](std::uint64_t* starts, auto units) {
        std::uint64_t sum = 0;
        for (std::uint64_t i = from; i < to; ++i) sum += units(i);
        sums[thread] = sum;
        __syncthreads();
        for (std::uint32_t distance = 1; distance < kThreads; distance *= 2) {
            const std::uint64_t before = thread >= distance ? sums[thread - distance] : 0;
            __syncthreads();
            sums[thread] += before;
            __syncthreads();
        }
        std::uint64_t at = sums[thread] - sum;
        for (std::uint64_t i = from; i < to; ++i) {
            starts[i] = at;
            at += units(i);
        }
        if (thread == kThreads - 1) starts[batch.count] = sums[thread];
        __syncthreads();
    };
    fill(batch.aad.starts, [&](std::uint64_t i) { return tiles_of(batch, Part::aad, i); });
    fill(batch.data.starts, [&](std::uint64_t i) { return tiles_of(batch, Part::data, i); });
    fill(batch.groups.starts, [&](std::uint64_t i) { return groups_of(batch, i); });
}

}  // namespace

Kernel gcm_plan_kernel() {
    return {reinterpret_cast<const void*>(&gcm_plan), shapes::gcm_plan()};
}

}  // namespace dael::cuda
