// SPDX-License-Identifier: Apache-2.0
// Short messages: a warp takes one from its counter to its tag, any key, 32 blocks at a time.
//
// AAD and data are hashed as one sequence of blocks, its end at lane 31: lane l steps with H^32 and
// at last owes H^(33 - l), of which one H is for the block of lengths. What needs one block of
// work a message, E(J0) and the lengths' product, is done for 32 messages at once, a lane each.
//
// Opening hashes first, and decrypts only what it found authentic.
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_math.cuh"
#include "backends/cuda/gcm_tag.cuh"
#include "backends/cuda/warp_keys.cuh"
#include "kernels/counter_cache.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;

// A message's blocks as rows of 32, from the first row on.
struct Rows {
    __device__ explicit Rows(const Message& m)
        : message(m),
          aad_blocks(static_cast<std::uint32_t>((m.aad_size + 15) / 16)),
          blocks(aad_blocks + static_cast<std::uint32_t>((m.skip + m.size + 15) / 16)),
          count((blocks + kLanes - 1) / kLanes) {}

    // Block of the data that this lane has in a row, negative for AAD and before it.
    __device__ std::int32_t data_block(std::uint32_t row) const {
        return sequence(row) - static_cast<std::int32_t>(aad_blocks);
    }
    // AAD block in a row; zeros for what is none.
    __device__ Words4 aad(std::uint32_t row) const {
        const std::int32_t at = sequence(row);
        if (at < 0 || at >= static_cast<std::int32_t>(aad_blocks)) return {};
        return load_part(message.aad + at * 16, 0,
                         part(static_cast<std::uint32_t>(message.aad_size), at));
    }
    // Bytes of a block of the data that there are, 1 to 16.
    __device__ int data_size(std::int32_t block) const {
        return part(static_cast<std::uint32_t>(message.size), block);
    }

    const Message& message;
    std::uint32_t aad_blocks, blocks, count;

  private:
    __device__ std::int32_t sequence(std::uint32_t row) const {
        return static_cast<std::int32_t>(row * kLanes + threadIdx.x % kLanes + blocks -
                                         count * kLanes);
    }
    __device__ static int part(std::uint32_t size, std::int32_t block) {
        return static_cast<int>(min(16u, size - static_cast<std::uint32_t>(block) * 16));
    }
};

// Hashes the message and, if `kCrypt`, encrypts it on the way.
template <int kRounds, int kTables, bool kCrypt>
__device__ __forceinline__ Words4 hash_rows(const kernels::Tables<kTables, false>& tables,
                                            const RoundKeys& keys, const Rows& rows,
                                            const Words4& j0, const GcmKey& key) {
    const Message& m = rows.message;
    const unsigned char* const in = m.in;
    unsigned char* const out = m.out;
    const bool aligned = kCrypt ? aligned16(in, out) : aligned16(in, in);
    kernels::CounterWalk<kTables> counters(tables, keys, j0);
    const std::uint32_t first = kernels::byte_swap(j0.w) + 1;
    const Words4 h32 = key.powers[kLanes];
    Words4 hash{};
#pragma unroll 1
    for (std::uint32_t row = 0; row < rows.count; ++row) {
        Words4 x = rows.aad(row);
        if (const std::int32_t block = rows.data_block(row); block >= 0) {
            const int size = rows.data_size(block);
            const bool whole = aligned && size == 16;
            x = whole ? load_global(in + block * 16) : load_part(in + block * 16, 0, size);
            if (kCrypt) {
                const Words4 state = counters.state(first + static_cast<std::uint32_t>(block));
                x = kernels::finish_masked<kRounds, 3>(tables, keys, state, x);
                if (whole) {
                    store_global(out + block * 16, x);
                } else {
                    x = first_bytes(x, size);
                    store_part(out + block * 16, x, 0, size);
                }
            }
        }
        if (row != 0) hash = kernels::gf_multiply(hash, h32);
        hash = hash ^ x;
    }
    return warp_sum(kernels::gf_multiply(hash, key.powers[kLanes + 1 - threadIdx.x % kLanes]));
}

// `kStream`: counter mode alone, from any byte of a block on, and without input if there is none.
// `first`: the data's first counter.
template <int kRounds, int kTables, bool kStream>
__device__ __forceinline__ void crypt_rows(const kernels::Tables<kTables, false>& tables,
                                           const RoundKeys& keys, const Rows& rows,
                                           const Words4& first) {
    const Message& m = rows.message;
    const bool aligned = aligned16(m.in, m.out) && (!kStream || (m.in && m.skip == 0));
    kernels::CounterWalk<kTables> counters(tables, keys, first);
#pragma unroll 1
    for (std::uint32_t row = 0; row < rows.count; ++row) {
        const std::int32_t block = rows.data_block(row);
        if (block < 0) continue;
        const std::int32_t at = block * 16 - (kStream ? m.skip : 0);
        const int from = kStream && at < 0 ? -at : 0;
        const int to =
            kStream ? min(16, static_cast<std::int32_t>(m.size) - at) : rows.data_size(block);
        const Words4 state =
            counters.state(kernels::byte_swap(first.w) + static_cast<std::uint32_t>(block));
        const bool whole = aligned && to == 16;
        const Words4 x = whole              ? load_global(m.in + at)
                         : kStream && !m.in ? Words4{}
                                            : load_part(m.in + at, from, to);
        const Words4 y = kernels::finish_masked<kRounds, 3>(tables, keys, state, x);
        if (whole)
            store_global(m.out + at, y);
        else
            store_part(m.out + at, y, from, to);
    }
}

constexpr std::uint32_t kWarps = shapes::kGcmShortWarps;

template <int kRounds, int kTables>
__global__ void __launch_bounds__(kWarps* kLanes, 1)
    gcm_short(const __grid_constant__ GcmBatch batch) {
    const auto tables = fill_tables<kTables, false>();
    const std::uint32_t warp = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    const std::uint32_t warps = gridDim.x * kWarps;
    const WarpKeys warp_keys(kernels::Tables<kTables, false>::kBytes, warp);
    const std::uint32_t count = number_of(batch.number, batch.count);
    std::uint32_t loaded = ~0u;

    // A warp takes every warps-th message; 32 of them make a round. First each lane looks at one of
    // them and does what takes one block of work, then all lanes take those one after another.
    for (std::uint64_t first = warp * gridDim.x + blockIdx.x; first < count;
         first += std::uint64_t{warps} * kLanes) {
        bool ours = false;
        Words4 mask{};  // E(J0) ^ lengths * H of this lane's message
        if (const std::uint64_t mine = first + std::uint64_t{lane} * warps; mine < count) {
            const Message& m = batch.messages[mine];
            const Code code = validity(batch, m);
            // Of long ones, the tag comes later; without one there is nothing else to tell.
            if (code != Code::ok || (batch.tag_size == 0 && is_long(m)))
                batch.results[mine] = static_cast<std::uint32_t>(code);
            ours = code == Code::ok && !is_long(m) && batch.keys[m.key].rounds == kRounds;
            if (ours && batch.tag_size != 0)
                mask = tag_mask<kRounds>(tables, batch.keys[m.key], start_of(m), m);
        }
#pragma unroll 1
        for (std::uint32_t left = __ballot_sync(~0u, ours); left != 0; left &= left - 1) {
            const std::uint32_t i = __ffs(left) - 1;
            const std::uint64_t index = first + std::uint64_t{i} * warps;
            const Message& m = batch.messages[index];
            const GcmKey& key = batch.keys[m.key];
            if (m.key != loaded) {
                loaded = m.key;
                warp_keys.load(key);
            }
            const RoundKeys& keys = warp_keys.keys();
            const Words4 j0 = start_of(m);
            const Rows rows(m);
            const Words4 tag_mask = shuffle(mask, i);
            if (batch.tag_size == 0) {
                crypt_rows<kRounds, kTables, true>(tables, keys, rows, j0);
                if (lane == 0) batch.results[index] = static_cast<std::uint32_t>(Code::ok);
            } else if (batch.opening) {
                const Words4 tag =
                    hash_rows<kRounds, kTables, false>(tables, keys, rows, j0, key) ^ tag_mask;
                if (check_tag(batch, index, tag, lane == 0))
                    crypt_rows<kRounds, kTables, false>(tables, keys, rows, add32(j0, 1));
            } else {
                const Words4 tag =
                    hash_rows<kRounds, kTables, true>(tables, keys, rows, j0, key) ^ tag_mask;
                if (lane == 0) write_tag(batch, index, tag);
            }
        }
    }
    warp_keys.wipe();
}

}  // namespace

Kernel gcm_short_kernel(int rounds, int tables) {
    return find_kernel(rounds, tables, [](auto r, auto t) {
        return Kernel{reinterpret_cast<const void*>(&gcm_short<r.value, t.value>),
                      shapes::gcm_short(t.value)};
    });
}

}  // namespace dael::cuda
