// SPDX-License-Identifier: Apache-2.0
// Before the work on a list in device memory: nonces for its messages, and its units of work, that
// is where each message's begin.
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_work.hpp"

namespace dael::cuda {
namespace {

constexpr std::uint32_t kThreads = shapes::gcm_plan().threads;

// A new J0 for every message (SP 800-38D 7.1), from nonces that count.
__global__ void __launch_bounds__(256) gcm_number(const __grid_constant__ GcmBatch batch) {
    const std::uint32_t count = number_of(batch.number, batch.count);
    const std::uint64_t first = batch.nonces->next;
    const std::uint32_t fixed = *reinterpret_cast<const std::uint32_t*>(batch.nonces->fixed);
    for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        const std::uint64_t nonce = first + i;
        auto* const start =
            reinterpret_cast<std::uint32_t*>(const_cast<Block*>(&batch.messages[i].start));
        start[0] = fixed;
        start[1] = kernels::byte_swap(static_cast<std::uint32_t>(nonce >> 32));
        start[2] = kernels::byte_swap(static_cast<std::uint32_t>(nonce));
        start[3] = 0x01000000;
    }
}

// One block of threads, each with a contiguous run of the messages.
__global__ void __launch_bounds__(kThreads) gcm_plan(const __grid_constant__ GcmBatch batch) {
    __shared__ std::uint64_t sums[kThreads];
    static_assert(sizeof sums == shapes::gcm_plan().fixed);
    const std::uint32_t thread = threadIdx.x;
    const std::uint32_t number = number_of(batch.number, batch.count);
    const std::uint64_t run = (std::uint64_t{batch.count} + kThreads - 1) / kThreads;
    const std::uint64_t from = min(run * thread, std::uint64_t{batch.count}),
                        to = min(from + run, std::uint64_t{batch.count});
    const auto fill = [&](std::uint64_t* starts, auto units) {
        std::uint64_t sum = 0;
        for (std::uint64_t i = from; i < to; ++i) sum += i < number ? units(i) : 0;
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
            at += i < number ? units(i) : 0;
        }
        if (thread == kThreads - 1) starts[batch.count] = sums[thread];
        __syncthreads();
    };
    fill(batch.aad.starts, [&](std::uint64_t i) { return tiles_of(batch, Part::aad, i); });
    fill(batch.data.starts, [&](std::uint64_t i) { return tiles_of(batch, Part::data, i); });
    fill(batch.groups.starts, [&](std::uint64_t i) { return groups_of(batch, i); });
    // Places of the list that have no message now.
    for (std::uint64_t i = number + std::uint64_t{thread}; i < batch.count; i += kThreads)
        batch.results[i] = static_cast<std::uint32_t>(Code::internal);
    if (batch.nonces && thread == 0) batch.nonces->next += number;  // which gcm_number has used
}

}  // namespace

Kernel gcm_number_kernel() {
    return {reinterpret_cast<const void*>(&gcm_number), shapes::gcm_number()};
}

Kernel gcm_plan_kernel() {
    return {reinterpret_cast<const void*>(&gcm_plan), shapes::gcm_plan()};
}

}  // namespace dael::cuda
