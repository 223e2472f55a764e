// SPDX-License-Identifier: Apache-2.0
// CTR of little data, where what counts is how soon a launch is over: a thread takes one block, and
// a thread block has one table, which is filled soonest. Of the host's memory, which is further
// away, a smaller grid takes several in turn.
//
// Launches that follow each other on a stream overlap: the next one may begin, and fill its table,
// while this one works (programmatic dependent launch, from sm_90 on). It touches no data before
// all that was launched ahead of it has ended and can be seen, so that the order of the stream
// holds as ever.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/memory_access.cuh"

namespace dael::cuda {
namespace {

template <int kRounds>
__global__ void __launch_bounds__(shapes::ctr_small().threads)
    ctr_small(const __grid_constant__ DeviceSegment work, const __grid_constant__ RoundKeys keys) {
    let_the_next_begin();
    const auto tables = fill_tables<1, false>();
    constexpr std::uint32_t kThreads = shapes::ctr_small().threads;
    wait_for_those_before();
#pragma unroll 1
    for (std::uint32_t block = blockIdx.x * kThreads + threadIdx.x;;
         block += gridDim.x * kThreads) {
        const std::int64_t at = static_cast<std::int64_t>(block) * 16 - work.skip;
        const std::int64_t rest = static_cast<std::int64_t>(work.size) - at;
        if (rest <= 0) return;
        const int from = at < 0 ? static_cast<int>(-at) : 0,
                  to = rest < 16 ? static_cast<int>(rest) : 16;
        const bool whole = to - from == 16 && aligned16(work.in + at, work.out + at);
        Words4 x{};
        if (work.in) x = whole ? load_aligned(work.in + at) : load_part(work.in + at, from, to);
        x = kernels::crypt_masked<kRounds>(tables, keys, kernels::counter_block(work.iv, block), x);
        if (whole)
            store_aligned(work.out + at, x);
        else
            store_part(work.out + at, x, from, to);
    }
}

}  // namespace

Kernel ctr_small_kernel(int rounds) {
    return find_kernel(rounds, 1, [](auto r, auto) {
        return Kernel{reinterpret_cast<const void*>(&ctr_small<r.value>), shapes::ctr_small(),
                      true};
    });
}

}  // namespace dael::cuda
