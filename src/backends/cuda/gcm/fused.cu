// SPDX-License-Identifier: Apache-2.0
// Encrypts long messages and hashes the ciphertext from the registers that it is made in
// (kernels/gcm_fused.hpp). Each warpgroup takes a contiguous share of all messages' tiles, as in
// ghash.cu, and leaves the same partial hashes; but data is read and written once. For messages at
// aligned addresses; opening hashes before it decrypts.
#include <type_traits>

#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/tile_hasher.cuh"
#include "backends/cuda/keys/warp_keys.cuh"
#include "kernels/counter_cache.hpp"
#include "kernels/gcm_fused.hpp"
#include "kernels/gcm_key.hpp"

namespace dael::cuda {
namespace {

using kernels::kFusedOwn;
using kernels::kFusedUnit;
using kernels::kLanes;
using kernels::kTileBlocks;
using kernels::kTileThreads;

constexpr int kTables = 4;
using Tables = kernels::Tables<kTables, false>;
constexpr int kUnroll = 4;  // rounds
constexpr std::uint32_t kColumns =
    64;  // that go through the tensor cores at once: more take too many registers
constexpr std::uint32_t kUnits = kTileBlocks / kFusedUnit;  // a tile

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A warpgroup's share of a message: units first to end, of those that the message has.
struct Share {
    __device__ __forceinline__ Share(const Message& m, std::uint64_t first_tile,
                                     std::uint64_t end_tile, bool ends)
        : in(uniform(global_address(m.in))),
          out(uniform(global_address(m.out))),
          start(start_of(m)),
          first(first_tile * kUnits),
          units(static_cast<std::uint32_t>((end_tile - first_tile) * kUnits)),
          lead(static_cast<std::uint32_t>(tiles_of(m.size) * kTileBlocks - blocks_of(m.size))),
          rest(ends ? static_cast<std::uint32_t>(m.size % 16) : 0) {
        if (first == 0 && lead >= kFusedUnit) ++first, --units;  // which is nothing but zeros
    }
    std::size_t in, out;
    Words4 start;
    std::uint64_t first;
    std::uint32_t units;
    std::uint32_t lead;  // blocks of zeros before the message's first
    std::uint32_t rest;  // bytes of the share's last block, if it is not whole
};

// What one warp encrypts of a share: 128 blocks of each unit, one in 32 of which a lane has.
template <int kRounds, class Keys>
class ShareWarp {
  public:
    __device__ __forceinline__ ShareWarp(const Tables& tables, const Keys& keys, const Share& share)
        : tables_(tables), keys_(keys), cache_(tables, keys, share.start), rest_(0) {
        const std::uint32_t warp = uniform(threadIdx.x / kLanes % 4);
        // The first block's place in the data, less than 0 for zeros before it.
        const std::int64_t block =
            static_cast<std::int64_t>(share.first * kFusedUnit + warp * kernels::kFusedWarp) -
            share.lead;
        counter_ =
            uniform(kernels::byte_swap(share.start.w) + 1 + static_cast<std::uint32_t>(block));
        skip_ = block < 0 ? static_cast<std::uint32_t>(-block) : 0;
        if (warp == 3) rest_ = share.rest;
        place_ = counter_ % 256 + threadIdx.x % kLanes;
        const std::int64_t place = (block + threadIdx.x % kLanes) * 16;
        in_ = share.in + place;
        out_ = share.out + place;
#pragma unroll
        for (std::uint32_t k = 0; k < kFusedOwn; ++k) low_[k] = cache_.low(at(k) % 256);
        high_ = cache_.high(counter_);
    }

    // A unit's ciphertext, zeros where there is none; `last`: of the share.
    __device__ __forceinline__ void crypt(Words4 (&c)[kFusedOwn], bool last) {
        const Words4 base = high_ ^ cache_.middle(counter_);
        Words4 beyond = base;
        if (counter_ % 256 + kernels::kFusedWarp > 256) {
            const std::uint32_t next = counter_ + 256;
            beyond = (next % 65536 < 256 ? cache_.high(next) : high_) ^ cache_.middle(next);
        }
        if (skip_ == 0 && !(last && rest_ != 0))
            whole(c, base, beyond);
        else
            edge(c, base, beyond, last ? rest_ : 0);
        skip_ = 0;
        counter_ += kFusedUnit;
        if (counter_ % 65536 < kFusedUnit) high_ = cache_.high(counter_);
        in_ += kFusedUnit * 16;
        out_ += kFusedUnit * 16;
    }

  private:
    // Of 256 counters that have all but their low byte in common the warp has some, and up to 127
    // of the next 256: the lane's k-th is one of these from 256 on.
    __device__ __forceinline__ std::uint32_t at(std::uint32_t k) const {
        return place_ + kLanes * k;
    }

    // Round keys in shared memory are read once for all blocks of a lane.
    static constexpr bool kTogether = !std::is_same_v<Keys, RoundKeys>;

    __device__ __forceinline__ void whole(Words4 (&c)[kFusedOwn], const Words4& base,
                                          const Words4& beyond) const {
        const auto load = [&](std::uint32_t k) { return load_global(in_ + kLanes * 16 * k); };
        const auto state = [&](std::uint32_t k) {
            return choose(at(k) >= 256, beyond, base) ^ low_[k];
        };
        if constexpr (kTogether) {
            Words4 x[kFusedOwn];
#pragma unroll
            for (std::uint32_t k = 0; k < kFusedOwn; ++k) x[k] = load(k), c[k] = state(k);
#pragma unroll 1
            for (int r = 3; r < kRounds; ++r)
#pragma unroll
                for (std::uint32_t k = 0; k < kFusedOwn; ++k)
                    c[k] = kernels::round<false, kTables>(tables_, keys_, r, c[k]);
#pragma unroll
            for (std::uint32_t k = 0; k < kFusedOwn; ++k)
                c[k] = kernels::finish_masked<kRounds, kRounds>(tables_, keys_, c[k], x[k]);
        }
#pragma unroll
        for (std::uint32_t k = 0; k < kFusedOwn; ++k) {
            if constexpr (!kTogether)
                c[k] =
                    kernels::finish_masked<kRounds, 3, kUnroll>(tables_, keys_, state(k), load(k));
            store_global(out_ + kLanes * 16 * k, c[k]);
        }
    }

    // With zeros before the data, or a last block of `rest` bytes; in little code.
    __device__ __forceinline__ void edge(Words4 (&c)[kFusedOwn], const Words4& base,
                                         const Words4& beyond, std::uint32_t rest) const {
        const std::uint32_t lane = threadIdx.x % kLanes;
#pragma unroll 1
        for (std::uint32_t k = 0; k < kFusedOwn; ++k) {
            Words4 v{};
            if (skip_ < kLanes * k + kLanes) {
                const bool partial = rest != 0 && k == kFusedOwn - 1 && lane == kLanes - 1;
                const int size = skip_ > kLanes * k + lane ? 0
                                 : partial                 ? static_cast<int>(rest)
                                                           : 16;
                const Words4 x = load_part(global_pointer(in_ + kLanes * 16 * k), 0, size);
                const Words4 state = choose(at(k) >= 256, beyond, base) ^ cache_.low(at(k) % 256);
                v = first_bytes(kernels::finish_masked<kRounds, 3, 1>(tables_, keys_, state, x),
                                size);
                store_part(global_pointer(out_ + kLanes * 16 * k), v, 0, size);
            }
#pragma unroll
            for (std::uint32_t j = 0; j < kFusedOwn; ++j) c[j] = choose(j == k, v, c[j]);
        }
    }

    const Tables& tables_;
    const Keys& keys_;
    const kernels::CounterCache<kTables, Keys> cache_;
    Words4 low_[kFusedOwn], high_;
    std::uint32_t counter_;  // of the warp's first block
    std::uint32_t place_;  // of the lane's first among 256 counters, of which the low byte differs
    std::uint32_t skip_;   // of its blocks that are zeros before the data
    std::uint32_t rest_;
    std::size_t in_, out_;
};

// Encrypts a share. `state` gets the rows' sums: the lane's words of two rows.
template <int kRounds, class Keys>
__device__ __forceinline__ void crypt_share(const Tables& tables, const Keys& keys,
                                            const Share& share, std::uint64_t matrices,
                                            std::uint32_t (&state)[2]) {
    constexpr std::uint32_t kOperand = 2 * kernels::kQuadColumns;  // of 16 bytes
    ShareWarp<kRounds, Keys> warp(tables, keys, share);
    state[0] = state[1] = 0;
#pragma unroll 1
    for (std::uint32_t units = share.units; units != 0; --units) {
        Words4 c[kFusedOwn];
        warp.crypt(c, units == 1);
        std::uint32_t next[2] = {0, 0};
#pragma unroll
        for (std::uint32_t column = 0; column < kernels::kQuadColumns; column += kColumns) {
            std::uint32_t counts[kColumns / 2];
            const std::uint32_t sum[4] = {state[0], state[1], 0, 0};
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            wgmma_b1(counts, sum, matrices + column, 0);
#pragma unroll
            for (std::uint32_t k = 0; k < kFusedOwn; k += 2) {
                const Words4 &a = c[k], &b = c[k + 1];
                const std::uint32_t first[4] = {a.x, b.x, a.y, b.y},
                                    second[4] = {a.z, b.z, a.w, b.w};
                wgmma_b1(counts, first, matrices + column + (k + 1) * kOperand, 1);
                wgmma_b1(counts, second, matrices + column + (k + 2) * kOperand, 1);
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            kernels::pack_parities(next, counts, column);
        }
        state[0] = next[0];
        state[1] = next[1];
    }
}

// Asks for a key's matrices ahead, a line or two a thread.
__device__ __forceinline__ void prefetch(const GcmFused* fused, std::uint32_t thread) {
    constexpr std::uint32_t kLine = 128;
    for (std::uint32_t at = thread * kLine; at < sizeof *fused; at += kTileThreads * kLine)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(reinterpret_cast<const char*>(fused) + at));
}

// The end of a share, with `after` tiles of the message to come: each row's state by its weight,
// the sum of all, times the power of H that the tiles to come are worth. One warp does it, a
// different one each time, while the others go on: `rows` is one of two in turns.
__device__ __forceinline__ void close_rows(const std::uint32_t (&state)[2], std::uint32_t group,
                                           std::uint32_t turn, Words4* rows, const GcmKey& key,
                                           const GcmFused& fused, std::uint64_t after,
                                           Words4& partial) {
    const std::uint32_t lane = threadIdx.x % kLanes, warp = uniform(threadIdx.x / kLanes % 4);
    rows += turn % 2 * kernels::kFusedRows;
    auto* const words = reinterpret_cast<std::uint32_t*>(rows + warp * kernels::kQuadWarpRows);
    words[lane] = state[0];
    words[kLanes + lane] = state[1];
    warpgroup_barrier(group);
    if (turn % 4 != warp) return;
    Words4 sum{};
#pragma unroll
    for (std::uint32_t row = lane; row < kernels::kFusedRows; row += kLanes)
        sum = sum ^ kernels::gf_multiply(rows[row], fused.row_weights[row]);
    sum = warp_sum(sum);
    if (after != 0) sum = times_power<kSquares>(sum, key.squares, after * kTileBlocks);
    if (lane == 0) partial = sum;
}
#endif

// With one key for all it is a parameter, and its matrices are there once; with many each
// warpgroup keeps its message's.
template <int kRounds, bool kManyKeys>
__global__ void __launch_bounds__(shapes::gcm_fused(kManyKeys).threads, 1)
    gcm_fused(const __grid_constant__ GcmBatch batch, const __grid_constant__ RoundKeys only_key,
              const __grid_constant__ std::uint32_t only_index) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr std::uint32_t kThreads = shapes::gcm_fused(kManyKeys).threads,
                            kGroups = kThreads / kTileThreads;
    let_the_next_begin();
    const TileList& list = batch.data;
    const std::uint64_t tiles = list.starts[batch.count];
    // The tables begin at a multiple of 64 KiB of shared memory, so that a lookup's address is one
    // PRMT; the rest lies before them and behind.
    const auto begin = static_cast<std::uint32_t>(__cvta_generic_to_shared(table_image));
    fill_tables<kTables, false>(shapes::kFusedTables - begin);
    const Tables tables(static_cast<const unsigned char*>(__cvta_shared_to_generic(0)),
                        shapes::kFusedTables, threadIdx.x % kLanes);
    const std::uint32_t group = uniform(threadIdx.x / kTileThreads),
                        thread = threadIdx.x % kTileThreads;
    constexpr std::uint32_t kMatrices = sizeof(GcmFused::words), kLast = kGroups - 1;
    unsigned char* const behind = table_image + shapes::kFusedTables + Tables::kBytes - begin;
    unsigned char* const own = !kManyKeys       ? table_image
                               : group != kLast ? table_image + group * shapes::kFusedOwn
                                                : behind;
    auto* const all_rows =
        reinterpret_cast<Words4*>(kManyKeys ? behind + shapes::kFusedOwn : own + kMatrices);
    Words4* const rows = all_rows + group * shapes::kFusedRows / 16;
    auto& own_keys = *reinterpret_cast<SharedKeys*>(own + kMatrices);
    const std::uint64_t matrices =
        tile_descriptor(static_cast<std::uint32_t>(__cvta_generic_to_shared(own)));
    const auto copy_matrices = [&](std::uint32_t key, std::uint32_t first, std::uint32_t step) {
        const auto* from = reinterpret_cast<const uint4*>(batch.fused[key].words);
        for (std::uint32_t i = first; i < kMatrices / 16; i += step)
            reinterpret_cast<uint4*>(own)[i] = from[i];
    };
    if constexpr (!kManyKeys) {
        copy_matrices(only_index, threadIdx.x, kThreads);
        async_proxy_fence();
        __syncthreads();
    }
    const std::uint32_t worker = blockIdx.x * kGroups + group,
                        workers = busy_workers(list.workers, tiles);
    std::uint64_t tile = 0, to = 0;
    if (worker < workers) {
        tile = share_start(tiles, workers, worker);
        to = share_start(tiles, workers, worker + 1);
    }
    if (tile < to) {
        Walk here(list, batch.count, tile, WarpVotes{});
        std::uint32_t loaded = kNoMessage, turn = 0;
#pragma unroll 1
        while (tile < to) {
            here.advance(list, tile);
            const std::uint64_t last = min(to, here.end);
            const Message& m = batch.messages[here.message];
            const std::uint32_t key = kManyKeys ? m.key : only_index;
            if (!kManyKeys || batch.keys[key].rounds == kRounds) {
                if (kManyKeys && key != loaded) {
                    loaded = key;
                    warpgroup_barrier(group);
                    copy_matrices(key, thread, kTileThreads);
                    if (thread < sizeof own_keys.w / 4)
                        own_keys.w[thread] = batch.keys[key].encrypt.w[thread];
                    async_proxy_fence();
                    warpgroup_barrier(group);
                    if (here.message + 1 < batch.count)  // what probably comes then
                        prefetch(&batch.fused[batch.messages[here.message + 1].key], thread);
                }
                const Share share(m, tile - here.start, last - here.start, last == here.end);
                std::uint32_t state[2];
                if constexpr (kManyKeys)
                    crypt_share<kRounds>(tables, own_keys, share, matrices, state);
                else
                    crypt_share<kRounds>(tables, only_key, share, matrices, state);
                close_rows(state, group, turn++, rows, batch.keys[key], batch.fused[key],
                           here.end - last, list.partials[worker + here.message]);
            }
            tile = last;
        }
    }
    __syncthreads();
    wipe_shared<kGroups * shapes::kFusedRows, kThreads>(all_rows, threadIdx.x);
    if constexpr (kManyKeys)
        wipe_shared<shapes::kFusedOwn, kTileThreads>(own, thread);
    else
        wipe_shared<kMatrices, kThreads>(own, threadIdx.x);
#else
    __trap();  // nothing is compiled here: to end without a word would leave the data as it is
#endif
}

// A block of threads to a key: its warps make the words of a factor, a lane a column, and get the
// words with the bits that they stand for.
__global__ void __launch_bounds__(128)
    gcm_fused_setup(const GcmKey* keys, GcmFused* fused, std::uint32_t count) {
    const std::uint32_t word = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
        const GcmKey& key = keys[i];
        const auto power = [&](std::uint32_t n) {  // less than 512
            const Words4 low = kernels::gf_multiply(key.powers[n % kLanes],
                                                    key.leaps[n / kLanes % kernels::kTeamWarps]);
            const bool more = n / (kLanes * kernels::kTeamWarps) != 0;
            return kernels::gf_multiply(low, more ? key.squares[8] : kernels::gf_one());
        };
        static_assert(kLanes * kernels::kTeamWarps == 1 << 8 && kFusedUnit == 1 << 9);
        if (threadIdx.x < kernels::kFusedRows)
            fused[i].row_weights[threadIdx.x] = power(kernels::fused_row_power(threadIdx.x));
        constexpr std::uint32_t kBlocks = kernels::kFusedSlots * kernels::kQuadBlocks;
#pragma unroll 1
        for (std::uint32_t factor = 0; factor <= kBlocks; ++factor) {
            const std::uint32_t slot = factor / kernels::kQuadBlocks,
                                t = factor % kernels::kQuadBlocks;
            const bool state = factor == kBlocks;
            const Words4 column = kernels::gf_times_basis(
                state ? key.squares[9] : power(kernels::fused_power(slot, t)), threadIdx.x);
            const std::uint32_t words[4] = {column.x, column.y, column.z, column.w};
#pragma unroll
            for (std::uint32_t w = 0; w < 4; ++w) {
                const std::uint32_t bits =
                    kernels::transpose_bits(words[w], lane, [](std::uint32_t value, int distance) {
                        return __shfl_xor_sync(~0u, value, distance);
                    });
                const std::uint32_t output = 32 * w + lane;
                std::uint32_t* const to = fused[i].words;
                if (state) {
                    to[kernels::fused_state_index(output, word)] = bits;
                    to[kernels::fused_zero_index(output, word)] = 0;
                } else {
                    to[kernels::fused_block_index(slot, t, output, word)] = bits;
                }
            }
        }
    }
}

}  // namespace

Kernel gcm_fused_kernel(int rounds, bool many_keys) {
    return find_kernel(rounds, 1, [many_keys](auto r, auto) {
        const void* one = reinterpret_cast<const void*>(&gcm_fused<r.value, false>);
        const void* many = reinterpret_cast<const void*>(&gcm_fused<r.value, true>);
        return Kernel{many_keys ? many : one, shapes::gcm_fused(many_keys)};
    });
}

Kernel gcm_fused_setup_kernel() {
    return {reinterpret_cast<const void*>(&gcm_fused_setup), shapes::gcm_fused_setup()};
}

}  // namespace dael::cuda
