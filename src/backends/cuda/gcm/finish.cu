// SPDX-License-Identifier: Apache-2.0
// The tags of long messages, joined from what the workers hashed: a lane to each.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/tag.cuh"

namespace dael::cuda {
namespace {

using kernels::kLanes;

// The sum of a message's partials.
__device__ Words4 join(const TileList& list, std::uint32_t count, std::uint64_t message) {
    const std::uint64_t from = list.starts[message], to = list.starts[message + 1],
                        tiles = list.starts[count];
    if (from == to) return {};
    const std::uint32_t workers = busy_workers(list.workers, tiles);
    const std::uint32_t last = worker_of(tiles, workers, to - 1);
    Words4 sum{};
    for (std::uint32_t w = worker_of(tiles, workers, from) + threadIdx.x % kLanes; w <= last;
         w += kLanes)
        sum = sum ^ list.partials[w + message];
    return warp_sum(sum);
}

// A message in pieces: one more piece, the only message of the batch, into the hash so far. One
// warp.
__global__ void gcm_absorb(const __grid_constant__ GcmBatch batch, Words4* hash) {
    const Message& m = batch.messages[0];
    const GcmKey& key = batch.keys[m.key];
    const Words4 piece =
        is_long(m) ? join(batch.data, batch.count, 0) : hash_bytes(m.in, m.size, key);
    const Words4 sum = times_power<kSquares>(*hash, key.squares, blocks_of(m.size)) ^ piece;
    if (threadIdx.x == 0) *hash = sum;
}

// Its tag, of which `message` has the start, the key and the sizes of all. One warp.
template <int kRounds>
__global__ void gcm_stream_tag(const __grid_constant__ GcmBatch batch,
                               const __grid_constant__ Message message, Words4* hash) {
    const auto tables = fill_tables<1, false>();
    const GcmKey& key = batch.keys[message.key];
    const Words4 tag = kernels::gf_multiply(*hash, key.powers[1]) ^
                       tag_mask<kRounds>(tables, key, start_of(message), message);
    if (threadIdx.x == 0) *hash = tag;
}

constexpr std::uint32_t kWarps = shapes::kGcmFinishWarps;

// What follows is by one lane for its own message, if there is little of it.
constexpr std::uint64_t kLittleAad = 64;

// The sum of its partials.
__device__ __forceinline__ bool join_few(const TileList& list, std::uint32_t count,
                                         std::uint64_t message, Words4& sum) {
    constexpr std::uint32_t kFew = 16;
    const std::uint64_t from = list.starts[message], to = list.starts[message + 1],
                        tiles = list.starts[count];
    if (from == to) return true;
    const std::uint32_t workers = busy_workers(list.workers, tiles),
                        first = worker_of(tiles, workers, from),
                        last = worker_of(tiles, workers, to - 1);
    if (last - first >= kFew) return false;
    for (std::uint32_t w = first; w <= last; ++w) sum = sum ^ list.partials[w + message];
    return true;
}

// The hash of its AAD, times the power of H that its data is worth. The time depends on the sizes.
__device__ __forceinline__ Words4 hash_little_aad(const Message& m, const GcmKey& key) {
    Words4 hash{};
#pragma unroll 1
    for (std::uint64_t at = 0; at < m.aad_size; at += 16) {
        const std::uint64_t left = m.aad_size - at;
        const Words4 x = load_part(m.aad + at, 0, left < 16 ? static_cast<int>(left) : 16);
        hash = kernels::gf_multiply(hash ^ x, key.powers[1]);
    }
    std::uint64_t exponent = blocks_of(m.size);
#pragma unroll 1
    for (std::uint32_t j = 0; exponent != 0; ++j, exponent >>= 1)
        if ((exponent & 1) != 0) hash = kernels::gf_multiply(hash, key.squares[j]);
    return hash;
}

// Its tag is written or compared.
template <int kRounds>
__device__ __forceinline__ void finish(const GcmBatch& batch,
                                       const kernels::Tables<1, false>& tables, const Message& m,
                                       std::uint64_t index, const Words4& hash) {
    const GcmKey& key = batch.keys[m.key];
    const Words4 tag = kernels::crypt_masked<kRounds>(
        tables, key.encrypt, start_of(m),
        kernels::gf_multiply(hash ^ lengths_block(m), key.powers[1]));
    if (batch.opening)
        check_tag(batch, index, tag);
    else
        write_tag(batch, index, tag);
}

// A warp to at most 32 messages, fewer if there are warps for all, and a lane to each; those with
// more AAD or many partials are first hashed by the whole warp.
template <int kRounds>
__global__ void __launch_bounds__(kWarps* kLanes)
    gcm_finish(const __grid_constant__ GcmBatch batch) {
    let_the_next_begin();
    // While others work, unless it would mostly be for nothing.
    const bool early = batch.plan_later == 0;
    if (early) fill_tables<1, false>();
    wait_for_those_before();
    // None is long, of a list that only the device knows: whatever is has data or much AAD.
    if (batch.aad.starts[batch.count] == 0 && batch.data.starts[batch.count] == 0) return;
    if (!early) fill_tables<1, false>();
    const kernels::Tables<1, false> tables(table_image, threadIdx.x % kLanes);
    const std::uint32_t count = number_of(batch.number, batch.count), lane = threadIdx.x % kLanes;
    const std::uint32_t warps = gridDim.x * kWarps,
                        share = min(std::uint32_t{kLanes}, (count - 1) / warps + 1);
    for (std::uint64_t first = std::uint64_t{blockIdx.x * kWarps + threadIdx.x / kLanes} * share;
         first < count; first += std::uint64_t{warps} * share) {
        const std::uint64_t own = first + lane;
        bool ours = false, joined = false;
        Words4 hash{};
        if (lane < share && own < count) {
            const Message& m = batch.messages[own];
            const bool valid = validity(batch, m) == Code::ok && is_long(m);
            ours = valid && is_for(batch, batch.keys[m.key], kRounds);
            if (batch.reset && valid && !ours) batch.results[own] = kNotRun;
            joined =
                ours && m.aad_size <= kLittleAad && join_few(batch.data, batch.count, own, hash);
            if (joined && m.aad_size != 0) hash = hash ^ hash_little_aad(m, batch.keys[m.key]);
        }
#pragma unroll 1
        for (std::uint32_t left = __ballot_sync(~0u, ours && !joined); left != 0;
             left &= left - 1) {
            const std::uint32_t i = __ffs(static_cast<int>(left)) - 1;
            const std::uint64_t index = first + i;
            const Message& m = batch.messages[index];
            const GcmKey& key = batch.keys[m.key];
            Words4 sum = join(batch.data, batch.count, index);
            if (m.aad_size != 0) {
                const Words4 aad = m.aad_size > kShortAad ? join(batch.aad, batch.count, index)
                                                          : hash_bytes(m.aad, m.aad_size, key);
                sum = sum ^ times_power<kSquares>(aad, key.squares, blocks_of(m.size));
            }
            hash = choose(lane == i, sum, hash);
        }
        if (ours) finish<kRounds>(batch, tables, batch.messages[own], own, hash);
    }
}

}  // namespace

Kernel gcm_absorb_kernel() {
    return {reinterpret_cast<const void*>(&gcm_absorb), shapes::gcm_absorb()};
}

Kernel gcm_stream_tag_kernel(int rounds) {
    return find_kernel(rounds, 1, [](auto r, auto) {
        return Kernel{reinterpret_cast<const void*>(&gcm_stream_tag<r.value>),
                      shapes::gcm_stream_tag()};
    });
}

Kernel gcm_finish_kernel(int rounds) {
    return find_kernel(rounds, 1, [](auto r, auto) {
        return Kernel{reinterpret_cast<const void*>(&gcm_finish<r.value>), shapes::gcm_finish(),
                      true};
    });
}

}  // namespace dael::cuda
