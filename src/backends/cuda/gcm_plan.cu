// SPDX-License-Identifier: Apache-2.0
// Counts the tiles of a batch: where each message's begin. One block of threads, each with a
// contiguous run of the messages.
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_work.hpp"

namespace dael::cuda {
namespace {

constexpr std::uint32_t kThreads = 1024;

__global__ void __launch_bounds__(kThreads) gcm_plan(const __grid_constant__ GcmBatch batch) {
    __shared__ std::uint64_t sums[kThreads];
    const std::uint32_t thread = threadIdx.x;
    const std::uint64_t run = (std::uint64_t{batch.count} + kThreads - 1) / kThreads;
    const std::uint64_t from = min(run * thread, std::uint64_t{batch.count}),
                        to = min(from + run, std::uint64_t{batch.count});
    for (const Part part : {Part::aad, Part::data}) {
        std::uint64_t sum = 0;
        for (std::uint64_t i = from; i < to; ++i) sum += tiles_of(batch, part, i);
        sums[thread] = sum;
        __syncthreads();
        for (std::uint32_t distance = 1; distance < kThreads; distance *= 2) {
            const std::uint64_t before = thread >= distance ? sums[thread - distance] : 0;
            __syncthreads();
            sums[thread] += before;
            __syncthreads();
        }
        std::uint64_t* starts = batch.tiles(part).starts;
        std::uint64_t at = sums[thread] - sum;
        for (std::uint64_t i = from; i < to; ++i) {
            starts[i] = at;
            at += tiles_of(batch, part, i);
        }
        if (thread == kThreads - 1) starts[batch.count] = sums[thread];
        __syncthreads();
    }
}

}  // namespace

Kernel gcm_plan_kernel() {
    return {reinterpret_cast<const void*>(&gcm_plan), kThreads, 0};
}

}  // namespace dael::cuda
