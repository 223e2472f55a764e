// SPDX-License-Identifier: Apache-2.0
// Short messages: a warp takes one from its counter to its tag, any key, 32 blocks at a time.
//
// AAD and data are hashed as one sequence of blocks, its end at lane 31: lane l steps with H^32,
// and its last block owes H^(33 - l), of which one H is for the block of lengths, those before it
// H^(65 - l). What needs one block of work a message, E(J0) and the lengths' product, is done for
// 32 messages at once, a lane each. While a warp works, it asks for its next message's key and
// data.
//
// Opening hashes first, and decrypts only what it found authentic.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/math.cuh"
#include "backends/cuda/gcm/tag.cuh"
#include "backends/cuda/keys/warp_keys.cuh"
#include "backends/cuda/warp_values.cuh"
#include "kernels/counter_cache.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;

// A message's blocks as rows of 32, from the first row on. What all lanes have alike is said to be.
struct Rows {
    __device__ explicit Rows(const Message& m)
        : in(uniform(m.in)),
          out(uniform(m.out)),
          aad_bytes(uniform(m.aad)),
          size(uniform(static_cast<std::uint32_t>(m.size))),
          aad_size(uniform(static_cast<std::uint32_t>(m.aad_size))),
          skip(uniform(std::uint32_t{m.skip})),
          aad_blocks((aad_size + 15) / 16),
          blocks(aad_blocks + (skip + size + 15) / 16),
          count((blocks + kLanes - 1) / kLanes) {}

    // Block of the data that this lane has in a row, negative for AAD and before it.
    __device__ std::int32_t data_block(std::uint32_t row) const {
        return sequence(row) - static_cast<std::int32_t>(aad_blocks);
    }
    // AAD block in a row; zeros for what is none.
    __device__ Words4 aad(std::uint32_t row) const {
        const std::int32_t at = sequence(row);
        if (at < 0 || at >= static_cast<std::int32_t>(aad_blocks)) return {};
        return load_part(aad_bytes + at * 16, 0, part(aad_size, at));
    }
    // Bytes of a block of the data that there are, 1 to 16.
    __device__ int data_size(std::int32_t block) const { return part(size, block); }

    const unsigned char* const in;
    unsigned char* const out;
    const unsigned char* const aad_bytes;
    const std::uint32_t size, aad_size, skip, aad_blocks, blocks, count;

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
    if (rows.count == 0) return {};
    const unsigned char* const in = rows.in;
    unsigned char* const out = rows.out;
    const bool aligned = kCrypt ? aligned16(in, out) : aligned16(in, in);
    kernels::CounterWalk<kTables> counters(tables, keys, j0);
    const std::uint32_t first = kernels::byte_swap(j0.w) + 1;
    Words4 hash{}, x;
#pragma unroll 1
    for (std::uint32_t row = 0;; ++row) {
        x = rows.aad(row);
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
        if (row + 1 == rows.count) break;
        if (row != 0) hash = kernels::gf_multiply(hash, key.powers[kLanes]);
        hash = hash ^ x;
    }
    // The last row and those before it in one sum of products.
    const Words4* const owed = &key.powers[kLanes + 1 - threadIdx.x % kLanes];
    return warp_sum(rows.count == 1 ? kernels::gf_multiply(x, owed[0])
                                    : kernels::gf_multiply_add(x, owed[0], hash, owed[kLanes]));
}

// `kStream`: counter mode alone, from any byte of a block on, and without input if there is none.
// `first`: the data's first counter.
template <int kRounds, int kTables, bool kStream>
__device__ __forceinline__ void crypt_rows(const kernels::Tables<kTables, false>& tables,
                                           const RoundKeys& keys, const Rows& rows,
                                           const Words4& first) {
    const unsigned char* const in = rows.in;
    unsigned char* const out = rows.out;
    const bool aligned = aligned16(in, out) && (!kStream || (in && rows.skip == 0));
    kernels::CounterWalk<kTables> counters(tables, keys, first);
#pragma unroll 1
    for (std::uint32_t row = 0; row < rows.count; ++row) {
        const std::int32_t block = rows.data_block(row);
        if (block < 0) continue;
        const std::int32_t at = block * 16 - (kStream ? static_cast<std::int32_t>(rows.skip) : 0);
        const int from = kStream && at < 0 ? -at : 0;
        const int to =
            kStream ? min(16, static_cast<std::int32_t>(rows.size) - at) : rows.data_size(block);
        const Words4 state =
            counters.state(kernels::byte_swap(first.w) + static_cast<std::uint32_t>(block));
        const bool whole = aligned && to == 16;
        const Words4 x = whole            ? load_global(in + at)
                         : kStream && !in ? Words4{}
                                          : load_part(in + at, from, to);
        const Words4 y = kernels::finish_masked<kRounds, 3>(tables, keys, state, x);
        if (whole)
            store_global(out + at, y);
        else
            store_part(out + at, y, from, to);
    }
}

// Asks for what a message begins with, a lane each for 32 bytes: its key and the first of its data.
__device__ __forceinline__ void ask_for(const GcmKey& key, const Message& m, bool new_key) {
    const std::uint32_t lane = threadIdx.x % kLanes;
    if (new_key)
        for (std::uint32_t at = lane * 32; at < sizeof(KeyHead) + sizeof key.powers;
             at += kLanes * 32)
            ask_ahead(reinterpret_cast<const unsigned char*>(&key) + at);
    if (m.in && lane * 32 < m.size) ask_ahead(m.in + lane * 32);
}

constexpr std::uint32_t kWarps = shapes::kGcmShortWarps;

template <int kRounds, int kTables>
__global__ void __launch_bounds__(kWarps* kLanes, 1)
    gcm_short(const __grid_constant__ GcmBatch batch) {
    let_the_next_begin();
    const auto tables = fill_tables<kTables, false>();
    const std::uint32_t warp = uniform(threadIdx.x / kLanes), lane = threadIdx.x % kLanes;
    const std::uint32_t warps = gridDim.x * kWarps;
    const WarpKeys warp_keys(kernels::Tables<kTables, false>::kBytes, warp);
    const std::uint32_t count = number_of(batch.number, batch.count);
    std::uint32_t loaded = ~0u;

    // A warp takes every warps-th message; 32 of them make a round. First each lane looks at one of
    // them and does what takes one block of work, then all lanes take those one after another.
    for (std::uint64_t first = warp * gridDim.x + blockIdx.x; first < count;
         first += std::uint64_t{warps} * kLanes) {
        bool ours = false;
        std::uint32_t its_key = 0;
        Words4 mask{};  // E(J0) ^ lengths * H of this lane's message
        if (const std::uint64_t mine = first + std::uint64_t{lane} * warps; mine < count) {
            const Message& m = batch.messages[mine];
            const Code code = validity(batch, m);
            const bool its = code == Code::ok && is_for(batch, batch.keys[m.key], kRounds);
            ours = its && !is_long(m);
            // Of long ones, the tag comes later; without one there is nothing else to tell.
            if (code != Code::ok || (batch.tag_size == 0 && its && !ours))
                batch.results[mine] = static_cast<std::uint32_t>(code);
            else if (batch.reset && !ours)
                batch.results[mine] = kNotRun;
            if (batch.plan_later && code == Code::ok && is_long(m)) batch.plan->any_long = 1;
            its_key = m.key;
            if (ours && batch.tag_size != 0)
                mask = tag_mask<kRounds>(tables, batch.keys[m.key], start_of(m), m);
        }
#pragma unroll 1
        for (std::uint32_t left = uniform(__ballot_sync(~0u, ours)); left != 0; left &= left - 1) {
            const std::uint32_t i = __ffs(left) - 1;
            const std::uint64_t index = first + std::uint64_t{i} * warps;
            const Message& m = batch.messages[index];
            const std::uint32_t key_index = __shfl_sync(~0u, its_key, i);
            const GcmKey& key = batch.keys[key_index];
            if (const std::uint32_t rest = left & (left - 1); rest != 0) {
                const std::uint32_t next = __ffs(rest) - 1,
                                    next_key = __shfl_sync(~0u, its_key, next);
                ask_for(batch.keys[next_key], batch.messages[first + std::uint64_t{next} * warps],
                        next_key != key_index);
            }
            if (key_index != loaded) {
                loaded = key_index;
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
