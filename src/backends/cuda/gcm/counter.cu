// SPDX-License-Identifier: Apache-2.0
// GCM's counter mode over the data of long messages (ctr/rows.cuh): each warp takes a
// contiguous share of all messages' groups of 256 counters.
#include "backends/cuda/ctr/rows.cuh"
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/keys/warp_keys.cuh"

namespace dael::cuda {
namespace {

using kernels::kLanes;

constexpr std::uint32_t kWarps = shapes::kGcmCtrWarps;

template <int kRounds, int kTables, bool kManyKeys>
__global__ void __launch_bounds__(kWarps* kLanes, 1)
    gcm_ctr(const __grid_constant__ GcmBatch batch, const __grid_constant__ RoundKeys only_key) {
    let_the_next_begin();
    wait_for_those_before();
    const std::uint64_t groups = uniform(batch.groups.starts[batch.count]);
    if (groups == 0) return;  // of a list that only the device knows
    const auto tables = fill_tables<kTables, false>();
    const std::uint32_t warp = uniform(threadIdx.x / kLanes);
    const WarpKeys warp_keys(kernels::Tables<kTables, false>::kBytes, warp);
    const RoundKeys& keys = kManyKeys ? warp_keys.keys() : only_key;

    const std::uint32_t workers = busy_workers(gridDim.x * kWarps, groups),
                        worker = blockIdx.x * kWarps + warp;
    if (worker >= workers) return;
    std::uint64_t group = share_start(groups, workers, worker);
    const std::uint64_t end = share_start(groups, workers, worker + 1);
    Walk walk(batch.groups, batch.count, group, WarpVotes{});
#pragma unroll 1
    while (group < end) {
        walk.advance(batch.groups, group);
        const std::uint64_t last = min(end, uniform(walk.end)), first = uniform(walk.start);
        const Message& m = batch.messages[walk.message];
        // Data that is not authentic is not decrypted; keys of another size are another launch's.
        const bool wanted = !(batch.opening && batch.results[walk.message] != 0) &&
                            !(kManyKeys && batch.keys[m.key].rounds != kRounds);
        if (uniform(std::uint32_t{wanted}) != 0) {
            if (kManyKeys) warp_keys.load(batch.keys[m.key]);
            Words4 start = data_counter(batch, m);
            start.w = uniform(start.w);
            const CounterData data(uniform(m.in), uniform(m.out), uniform(m.size),
                                   uniform(std::uint32_t{m.skip}), start);
            // Groups are aligned in the counter, not in the data.
            const std::uint32_t lead = kernels::byte_swap(start.w) % kGroupBlocks;
            const auto block = [&](std::uint64_t local) {
                const std::uint64_t at = local * kGroupBlocks;
                return at <= lead ? 0 : min(at - lead, data.blocks());
            };
            CounterRows<kRounds, kTables, RoundKeys>(tables, keys, data)
                .crypt(block(group - first), block(last - first));
        }
        group = last;
    }
    if (kManyKeys) warp_keys.wipe();
}

}  // namespace

Kernel gcm_ctr_kernel(int rounds, int tables, bool many_keys) {
    return find_kernel(rounds, tables, [many_keys](auto r, auto t) {
        const void* one = reinterpret_cast<const void*>(&gcm_ctr<r.value, t.value, false>);
        const void* many = reinterpret_cast<const void*>(&gcm_ctr<r.value, t.value, true>);
        return Kernel{many_keys ? many : one, shapes::gcm_ctr(t.value, many_keys), true};
    });
}

}  // namespace dael::cuda
