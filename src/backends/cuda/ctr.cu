// SPDX-License-Identifier: Apache-2.0
// CTR: a kernel for anything, and the fast one for a long message, with counter caching.
#include "backends/cuda/blocks.cuh"
#include "kernels/counter_cache.hpp"

namespace dael::cuda {
namespace {

// Each lane keeps the state after round 2 for kHeld values of the counter's low byte in registers;
// two warps share a group of 256 counters. Measured on an H200: 4 values and as many warps as the
// registers allow beat 8 values.
constexpr int kHeld = 4;
constexpr unsigned kParts = 256 / (kernels::kLanes * kHeld);

template <int kRounds, int kTables, int kThreads>
__global__ void __launch_bounds__(kThreads, 1)
    ctr_stream(const __grid_constant__ StreamWork work, const __grid_constant__ RoundKeys keys) {
    const auto tables = fill_tables<kTables, false>();
    const unsigned lane = threadIdx.x % kernels::kLanes;
    constexpr unsigned kTeamsHere = kThreads / kernels::kLanes / kParts;
    const unsigned part = threadIdx.x / kernels::kLanes % kParts;
    const std::uint64_t team = blockIdx.x * kTeamsHere + threadIdx.x / kernels::kLanes / kParts;
    const std::uint64_t teams = std::uint64_t{gridDim.x} * kTeamsHere;

    // Groups are aligned in the counter, not in the data: the message starts at `skew` of the first
    // one.
    const std::uint32_t counter = kernels::byte_swap(work.iv.w), skew = counter & 255;
    const std::uint64_t end = skew + (work.size + 15) / 16, whole_end = skew + work.size / 16;
    const std::uint64_t groups = (end + 255) / 256;
    const std::uint64_t from = groups * team / teams, to = groups * (team + 1) / teams;
    if (from == to) return;

    const kernels::CounterCache<kTables> cache(tables, keys, work.iv);
    const std::uint32_t position =
        part * (kernels::kLanes * kHeld) + lane;  // the lane's first low byte
    Words4 low[kHeld];
#pragma unroll
    for (int k = 0; k < kHeld; ++k) low[k] = cache.low(position + kernels::kLanes * k);

    Words4 high{};
    bool have_high = false;
    for (std::uint64_t g = from; g < to; ++g) {
        const std::uint32_t group_counter = (counter & ~255u) + static_cast<std::uint32_t>(g << 8);
        if (!have_high || (group_counter & 0xff00) == 0) {  // bytes 12 and 13 are new
            high = cache.high(group_counter);
            have_high = true;
        }
        const Words4 base = high ^ cache.middle(group_counter);
        const std::int64_t at = (static_cast<std::int64_t>(g * 256 + position) - skew) * 16;
        const unsigned char* in = work.in + at;
        unsigned char* out = work.out + at;
        if (g * 256 >= skew && (g + 1) * 256 <= whole_end) {
#pragma unroll
            for (int k = 0; k < kHeld; ++k) {
                const Words4 x = load_aligned(in + 512 * k);
                store_aligned(out + 512 * k,
                              kernels::finish_masked<kRounds, 3>(tables, keys, base ^ low[k], x));
            }
        } else {  // the message's first or last group
#pragma unroll 1
            for (int k = 0; k < kHeld; ++k) {
                const std::uint64_t index = g * 256 + position + kernels::kLanes * k;
                if (index < skew || index >= end) continue;
                const int to_byte = index < whole_end ? 16 : static_cast<int>(work.size % 16);
                const Words4 x = load_part(in + 512 * k, 0, to_byte);
                const Words4 state = base ^ cache.low(position + kernels::kLanes * k);
                store_part(out + 512 * k,
                           kernels::finish_masked<kRounds, 3>(tables, keys, state, x), 0, to_byte);
            }
        }
    }
}

}  // namespace

Kernel ctr_kernel(int rounds, int tables) {
    return find_blocks_kernel<Ctr>(rounds, tables);
}

Kernel ctr_stream_kernel(int rounds, int tables) {
    return find_kernel(rounds, tables, [](auto r, auto t) {
        constexpr int kThreads = r.value == 10 ? 896 : 1024;
        return Kernel{reinterpret_cast<const void*>(&ctr_stream<r.value, t.value, kThreads>),
                      kThreads, kernels::Tables<t.value, false>::kBytes};
    });
}

}  // namespace dael::cuda
