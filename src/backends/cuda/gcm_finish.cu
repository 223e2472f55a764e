// SPDX-License-Identifier: Apache-2.0
// A warp to a message: the tags of long ones, joined from what the workers hashed, and counters
// from IVs.
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_tag.cuh"

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

// J0 of an IV that is not 96 bits (SP 800-38D 7.1): its hash, zeros to a whole block, and its
// length in bits.
__global__ void __launch_bounds__(256)
    gcm_hash_ivs(const __grid_constant__ GcmBatch batch, const IvList ivs, Words4* counters) {
    for (std::uint64_t index = blockIdx.x * 8 + threadIdx.x / kLanes; index < batch.count;
         index += gridDim.x * 8) {
        const std::uint64_t from = ivs.starts[index], size = ivs.starts[index + 1] - from;
        const unsigned char* iv = ivs.bytes + from;
        const GcmKey& key = batch.keys[batch.messages[index].key];
        const Words4 bits{0, 0, kernels::byte_swap(static_cast<std::uint32_t>(size >> 29)),
                          kernels::byte_swap(static_cast<std::uint32_t>(size << 3))};
        Words4 j0 = kernels::gf_multiply(hash_bytes(iv, size, key) ^ bits, key.powers[1]);
        if (size == kNonceSize) {
            j0 = load_part(iv, 0, kNonceSize);
            j0.w = 0x01000000;
        }
        if (threadIdx.x % kLanes == 0) counters[index] = j0;
    }
}

// A message in pieces: one more piece, the only message of the batch, into the hash so far. One
// warp.
__global__ void gcm_absorb(const __grid_constant__ GcmBatch batch, Words4* hash) {
    const GcmMessage& m = batch.messages[0];
    const GcmKey& key = batch.keys[m.key];
    const Words4 piece =
        is_long(m) ? join(batch.data, batch.count, 0) : hash_bytes(m.in, m.size, key);
    const Words4 sum = times_power<kSquares>(*hash, key.squares, blocks_of(m.size)) ^ piece;
    if (threadIdx.x == 0) *hash = sum;
}

// Its tag, of which `message` has the sizes of all. One warp.
template <int kRounds>
__global__ void gcm_stream_tag(const __grid_constant__ GcmBatch batch,
                               const __grid_constant__ GcmMessage message, Words4* hash) {
    const auto tables = fill_tables<1, false>();
    const GcmKey& key = batch.keys[message.key];
    const Words4 tag = kernels::gf_multiply(*hash, key.powers[1]) ^
                       tag_mask<kRounds>(tables, key, first_counter(batch, 0), message);
    if (threadIdx.x == 0) *hash = tag;
}

constexpr std::uint32_t kWarps = shapes::kGcmFinishWarps;

template <int kRounds>
__global__ void __launch_bounds__(kWarps* kLanes)
    gcm_finish(const __grid_constant__ GcmBatch batch) {
    const auto tables = fill_tables<1, false>();
    for (std::uint64_t index = blockIdx.x * kWarps + threadIdx.x / kLanes; index < batch.count;
         index += gridDim.x * kWarps) {
        const GcmMessage& m = batch.messages[index];
        if (validity(batch, m) != Code::ok || !is_long(m)) continue;
        const GcmKey& key = batch.keys[m.key];
        if (key.rounds != kRounds) continue;
        Words4 hash = join(batch.data, batch.count, index);
        if (m.aad_size != 0) {
            const Words4 aad = m.aad_size > kShortAad ? join(batch.aad, batch.count, index)
                                                      : hash_bytes(m.aad, m.aad_size, key);
            hash = hash ^ times_power<kSquares>(aad, key.squares, blocks_of(m.size));
        }
        const Words4 tag = kernels::gf_multiply(hash, key.powers[1]) ^
                           tag_mask<kRounds>(tables, key, first_counter(batch, index), m);
        if (batch.opening)
            check_tag(batch, index, tag);
        else
            write_tag(batch, index, tag);
    }
}

}  // namespace

Kernel gcm_hash_ivs_kernel() {
    return {reinterpret_cast<const void*>(&gcm_hash_ivs), shapes::gcm_hash_ivs()};
}

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
        return Kernel{reinterpret_cast<const void*>(&gcm_finish<r.value>), shapes::gcm_finish()};
    });
}

}  // namespace dael::cuda
