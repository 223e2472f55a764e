// SPDX-License-Identifier: Apache-2.0
// CTR under one key: one message, or a list of them.
#include "backends/cuda/ctr/rows.cuh"
#include "backends/cuda/find_kernel.hpp"

namespace dael::cuda {
namespace {

constexpr std::uint32_t kWarps = shapes::kCtrWarps;

// Of a list in memory a compiler cannot know that all lanes read the same.
__device__ __forceinline__ DeviceSegment listed(const DeviceSegment& s) {
    return {uniform(s.in),
            uniform(s.out),
            uniform(s.size),
            {s.iv.x, s.iv.y, s.iv.z, uniform(s.iv.w)},
            uniform(s.skip)};
}
__device__ __forceinline__ WarpStart listed(const WarpStart& start) {
    return {uniform(start.block), uniform(start.segment)};
}

// Where a warp's share of a message by itself begins: a short one is divided by rows, a long one by
// groups of 256 counters.
__device__ __forceinline__ WarpStart border(const DeviceSegment& message, std::uint64_t warp,
                                            std::uint64_t warps) {
    const std::uint64_t blocks = message.blocks();
    const bool is_long = blocks >= 512 * warps;
    const std::uint32_t unit = is_long ? 256 : kernels::kLanes,
                        lead = is_long ? kernels::byte_swap(message.iv.w) % 256 : 0;
    const std::uint64_t units = (lead + blocks + unit - 1) / unit, at = units * warp / warps * unit;
    return {at <= lead ? 0 : min(at - lead, blocks), 0};
}

template <int kRounds, int kTables>
__global__ void __launch_bounds__(kWarps* kernels::kLanes, 1)
    ctr(const __grid_constant__ BlocksWork work, const __grid_constant__ RoundKeys keys) {
    const auto tables = fill_tables<kTables, false>();
    const std::uint32_t warp = blockIdx.x * kWarps +
                               uniform(std::uint32_t{threadIdx.x / kernels::kLanes}),
                        warps = gridDim.x * kWarps;
    const WarpStart from = work.list ? listed(work.starts[warp]) : border(work.one, warp, warps);
    const WarpStart to =
        work.list ? listed(work.starts[warp + 1]) : border(work.one, warp + 1, warps);
#pragma unroll 1
    for (std::uint32_t s = from.segment; s < to.segment || (s == to.segment && to.block != 0);
         ++s) {
        const DeviceSegment message = work.list ? listed(work.list[s]) : work.one;
        const CounterData data(message.in, message.out, message.size, message.skip, message.iv);
        const std::uint64_t begin = s == from.segment ? from.block : 0,
                            end = s == to.segment ? to.block : data.blocks();
        if (begin < end)
            CounterRows<kRounds, kTables, RoundKeys>(tables, keys, data).crypt(begin, end);
    }
}

}  // namespace

Kernel ctr_kernel(int rounds, int tables) {
    return find_kernel(rounds, tables, [](auto r, auto t) {
        return Kernel{reinterpret_cast<const void*>(&ctr<r.value, t.value>), shapes::ctr(t.value)};
    });
}

}  // namespace dael::cuda
