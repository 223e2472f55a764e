// SPDX-License-Identifier: Apache-2.0
// CTR: a kernel for anything, and the fast one for a long message, with counter caching.
#include "backends/cuda/blocks.cuh"
#include "kernels/counter_cache.hpp"

namespace dael::cuda {
namespace {

// Each lane keeps the state after round 2 for kHeld values of the counter's low byte in registers,
// and 256 / (32 kHeld) warps share a group of 256 counters. Measured on an H200 (GB/s, AES-128, 128
// KiB tables): kHeld 2, 4, 8 give 930, 948, 946; 768, 896, 1024 threads 936, 948, 946. With rounds
// fully unrolled the loop's code outgrows the instruction cache where rotations make it long: 917
// against 941 with 64 KiB tables, 520 against 641 for AES-256. One table spends so many
// instructions that two values are better.
constexpr int kStreamThreads = shapes::kStreamWarps * kernels::kLanes;
template <int kTables>
constexpr int kHeld = kTables == 1 ? 2 : 4;
template <int kTables, int kRounds>
constexpr int kStreamUnroll = kTables == 1 ? kRounds : 4;

// The message's ends, where a group of 256 is not full: `head` blocks before the whole groups and
// what comes after `tail`, by the plain rounds. The first warp of every thread block takes 32 at a
// time.
template <int kRounds, int kTables>
__device__ __forceinline__ void edges(const kernels::Tables<kTables, false>& tables,
                                      const RoundKeys& keys, const StreamWork& work,
                                      std::uint64_t head, std::uint64_t tail) {
    if (threadIdx.x >= kernels::kLanes) return;
    const std::uint64_t count = head + (work.size + 15) / 16 - tail;
    for (std::uint64_t i = blockIdx.x * kernels::kLanes + threadIdx.x; i < count;
         i += gridDim.x * kernels::kLanes) {
        const std::uint64_t block = i < head ? i : i - head + tail;
        const std::uint64_t rest = work.size - block * 16;
        const int size = rest < 16 ? static_cast<int>(rest) : 16;
        const Words4 x = work.in ? load_part(work.in + block * 16, 0, size) : Words4{};
        const Words4 counter = kernels::counter_block(work.iv, block);
        store_part(work.out + block * 16, kernels::crypt_masked<kRounds>(tables, keys, counter, x),
                   0, size);
    }
}

template <int kRounds, int kTables>
__global__ void __launch_bounds__(kStreamThreads, 1)
    ctr_stream(const __grid_constant__ StreamWork work, const __grid_constant__ RoundKeys keys) {
    const auto tables = fill_tables<kTables, false>();

    // Groups of 256 are aligned in the counter, not in the data: the first whole one starts `head`
    // blocks in.
    const std::uint32_t start = kernels::byte_swap(work.iv.w);
    const std::uint32_t head = -start & 255;
    // No stream is shorter than its head: it is long, or it begins at a wrap, or it goes on to one.
    const std::uint64_t groups = (work.size / 16 - head) / 256;
    edges<kRounds>(tables, keys, work, head, head + groups * 256);

    constexpr int kOwn = kHeld<kTables>;
    constexpr unsigned kParts = 256 / (kernels::kLanes * kOwn);  // warps in a team
    constexpr unsigned kTeamsHere = kStreamThreads / kernels::kLanes / kParts;
    const unsigned warp = threadIdx.x / kernels::kLanes;
    const std::uint64_t team = blockIdx.x * kTeamsHere + warp / kParts;
    const std::uint64_t teams = std::uint64_t{gridDim.x} * kTeamsHere;
    const auto from = static_cast<std::uint32_t>(groups * team / teams);
    const auto to = static_cast<std::uint32_t>(groups * (team + 1) / teams);
    if (from == to) return;

    const kernels::CounterCache<kTables> cache(tables, keys, work.iv);
    const std::uint32_t position =
        warp % kParts * (kernels::kLanes * kOwn) + threadIdx.x % kernels::kLanes;
    Words4 low[kOwn];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) low[k] = cache.low(position + kernels::kLanes * k);

    const std::uint64_t at = (head + from * std::uint64_t{256} + position) * 16;
    const unsigned char* in =
        work.in ? work.in + at : reinterpret_cast<const unsigned char*>(zeros);
    const std::ptrdiff_t step = work.in ? 4096 : 0;
    unsigned char* out = work.out + at;
    std::uint32_t counter = start + head + from * 256;
    const std::uint32_t end = counter + (to - from) * 256;  // may wrap to 0
    Words4 high = cache.high(counter);
    while (true) {
        const Words4 base = high ^ cache.middle(counter);
#pragma unroll
        for (int k = 0; k < kOwn; ++k) {
            const Words4 x = load_aligned(in + 512 * k);
            store_aligned(out + 512 * k,
                          kernels::finish_masked<kRounds, 3, kStreamUnroll<kTables, kRounds>>(
                              tables, keys, base ^ low[k], x));
        }
        counter += 256;
        if (counter == end) break;
        if ((counter & 0xff00) == 0) high = cache.high(counter);  // bytes 12 and 13 are new
        in += step;
        out += 4096;
    }
}

}  // namespace

Kernel ctr_kernel(int rounds, int tables) {
    return find_blocks_kernel<Ctr>(rounds, tables);
}

Kernel ctr_stream_kernel(int rounds, int tables) {
    return find_kernel(rounds, tables, [](auto r, auto t) {
        return Kernel{reinterpret_cast<const void*>(&ctr_stream<r.value, t.value>),
                      shapes::ctr_stream(t.value)};
    });
}

}  // namespace dael::cuda
