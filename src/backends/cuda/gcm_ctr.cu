// SPDX-License-Identifier: Apache-2.0
// GCM's counter mode over the data of long messages, with counter caching
// (kernels/counter_cache.hpp). Warps work in teams on groups of 256 counters, each team on a
// contiguous share of all messages' groups; lanes keep the state after round 2 for the values of
// the low byte that they serve, for as long as a message lasts.
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/warp_keys.cuh"
#include "kernels/counter_cache.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;

// As in ctr.cu, where the alternatives were measured.
constexpr std::uint32_t kWarps = shapes::kGcmCtrWarps;
template <int kTables>
constexpr std::uint32_t kHeld = kTables == 1 ? 2 : 4;
template <int kTables, int kRounds>
constexpr int kUnroll = kTables == 1 ? kRounds : 4;
constexpr std::uint32_t kGroupBytes = kGroupBlocks * 16;
constexpr std::uint32_t kStep = kLanes * 16;  // bytes from one of a lane's blocks to the next

// A message as one lane sees it: where its blocks of group 0 would lie, and which groups are whole.
// One without input goes over zeros, at a step of 0.
struct LaneMessage {
    __device__ LaneMessage(const Message& m, std::uint32_t lead, std::uint32_t position)
        : LaneMessage(m, lead, (static_cast<std::int64_t>(position) - lead) * 16 - m.skip,
                      m.in != nullptr) {}
    const unsigned char* in;
    unsigned char* out;
    std::uint32_t in_step;  // from a group to the next
    std::uint32_t whole_from, whole_to;

  private:
    __device__ LaneMessage(const Message& m, std::uint32_t lead, std::int64_t first, bool data)
        : in(data ? m.in + first : reinterpret_cast<const unsigned char*>(zeros)),
          out(m.out + first),
          in_step(data ? kGroupBytes : 0),
          whole_from((lead | m.skip) != 0),
          whole_to(aligned16(in, out)
                       ? static_cast<std::uint32_t>((lead + (m.skip + m.size) / 16) / 256)
                       : 0) {}
};

// One block, of which the message may have a part or nothing; `at` is its first byte there.
template <int kRounds, int kTables>
__device__ __forceinline__ void encrypt_edge(const kernels::Tables<kTables, false>& tables,
                                             const RoundKeys& keys, const Message& message,
                                             std::int64_t at, const Words4& state) {
    const std::int64_t rest = static_cast<std::int64_t>(message.size) - at;
    const int from = at >= 0 ? 0 : at > -16 ? static_cast<int>(-at) : 16;
    const int to = rest <= 0 ? 0 : rest < 16 ? static_cast<int>(rest) : 16;
    const Words4 x = message.in ? load_part(message.in + at, from, to) : Words4{};
    store_part(
        message.out + at,
        kernels::finish_masked<kRounds, 3, kUnroll<kTables, kRounds>>(tables, keys, state, x), from,
        to);
}

template <int kRounds, int kTables, bool kManyKeys>
__global__ void __launch_bounds__(kWarps* kLanes, 1)
    gcm_ctr(const __grid_constant__ GcmBatch batch, const __grid_constant__ RoundKeys only_key) {
    constexpr std::uint32_t kOwn = kHeld<kTables>;
    constexpr std::uint32_t kParts = 256 / (kLanes * kOwn);  // warps in a team
    constexpr std::uint32_t kTeams = kWarps / kParts;
    const std::uint64_t groups = batch.groups.starts[batch.count];
    if (groups == 0) return;  // of a list that only the device knows
    const auto tables = fill_tables<kTables, false>();
    const std::uint32_t warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    const std::uint32_t position = warp % kParts * (kLanes * kOwn) + lane;
    const WarpKeys warp_keys(kernels::Tables<kTables, false>::kBytes, warp);
    const RoundKeys& keys = kManyKeys ? warp_keys.keys() : only_key;

    const std::uint32_t teams = busy_workers(gridDim.x * kTeams, groups),
                        team = blockIdx.x * kTeams + warp / kParts;
    if (team >= teams) return;
    std::uint64_t group = share_start(groups, teams, team);
    const std::uint64_t end = share_start(groups, teams, team + 1);
    Walk walk(batch.groups, batch.count, group);
#pragma unroll 1
    while (group < end) {
        walk.advance(batch.groups, group);
        const std::uint64_t last = min(end, walk.end);
        const Message& m = batch.messages[walk.message];
        // Data that is not authentic is not decrypted; keys of another size are another launch's.
        if ((batch.opening && batch.results[walk.message] != 0) ||
            (kManyKeys && batch.keys[m.key].rounds != kRounds)) {
            group = last;
            continue;
        }
        if (kManyKeys) warp_keys.load(batch.keys[m.key]);
        const Words4 first = data_counter(batch, m);
        const std::uint32_t start = kernels::byte_swap(first.w);
        const LaneMessage message(m, start & 255, position);
        const kernels::CounterCache<kTables> cache(tables, keys, first);
        Words4 low[kOwn];
#pragma unroll
        for (std::uint32_t k = 0; k < kOwn; ++k) low[k] = cache.low(position + kLanes * k);
        auto local = static_cast<std::uint32_t>(group - walk.start);
        const std::uint32_t stop = local + static_cast<std::uint32_t>(last - group);
        std::uint32_t counter = (start & ~255u) + local * 256;
        Words4 high = cache.high(counter);
#pragma unroll 1
        for (; local != stop; ++local, counter += 256) {
            if ((counter & 0xff00) == 0) high = cache.high(counter);  // bytes 12 and 13 are new
            const Words4 base = high ^ cache.middle(counter);
            const unsigned char* in = message.in + std::uint64_t{local} * message.in_step;
            unsigned char* out = message.out + std::uint64_t{local} * kGroupBytes;
            if (local >= message.whole_from && local < message.whole_to) {
#pragma unroll
                for (std::uint32_t k = 0; k < kOwn; ++k)
                    store_aligned(out + k * kStep,
                                  kernels::finish_masked<kRounds, 3, kUnroll<kTables, kRounds>>(
                                      tables, keys, base ^ low[k], load_aligned(in + k * kStep)));
            } else {
#pragma unroll 1
                for (std::uint32_t k = 0; k < kOwn; ++k) {
                    Words4 own = low[0];
#pragma unroll
                    for (std::uint32_t i = 1; i < kOwn; ++i)
                        if (i == k) own = low[i];
                    encrypt_edge<kRounds>(tables, keys, m, out - m.out + k * kStep, base ^ own);
                }
            }
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
        return Kernel{many_keys ? many : one, shapes::gcm_ctr(t.value, many_keys)};
    });
}

}  // namespace dael::cuda
