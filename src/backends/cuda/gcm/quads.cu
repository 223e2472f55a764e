// SPDX-License-Identifier: Apache-2.0
// Short messages, 64 to a warpgroup: encrypted, and hashed on the tensor cores from registers
// (kernels/gcm_quads.hpp). A quad of lanes has two messages, four blocks of each at a time.
//
// Encryption and hash are passes of their own: what a warp has written comes back from a cache.
// Opening hashes first, and decrypts only what it found authentic.
#include "backends/cuda/dependent_launch.cuh"
#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/tag.cuh"
#include "backends/cuda/gcm/tile_hasher.cuh"
#include "kernels/counter_cache.hpp"
#include "kernels/gcm_quads.hpp"

namespace dael::cuda {
namespace {

using kernels::kLanes;
using kernels::kQuadBlocks;
using kernels::kQuadRows;
using kernels::kQuadWarpRows;
using kernels::QuadMessage;

constexpr std::uint32_t kGroups = shapes::kQuadGroups, kThreads = kGroups * kernels::kTileThreads;
constexpr int kTables = 4;
using Tables = kernels::Tables<kTables, false>;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Round keys in shared memory, which come four words at a time.
struct alignas(16) GroupKeys {
    std::uint32_t w[60];
};

__device__ __forceinline__ Words4 load_bytes(const unsigned char* p, int size) {
    __builtin_assume(__isGlobal(p));
    return load_part(p, 0, size);
}
__device__ __forceinline__ void store_bytes(unsigned char* p, const Words4& v, int size) {
    __builtin_assume(__isGlobal(p));
    store_part(p, v, 0, size);
}
__device__ __forceinline__ int part(std::uint64_t size, std::int32_t block) {
    const std::int64_t left = static_cast<std::int64_t>(size) - std::int64_t{block} * 16;
    return left < 16 ? static_cast<int>(left) : 16;
}
__device__ __forceinline__ std::uint32_t word_of(const Words4& v, std::uint32_t i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// Both blocks of a lane, round by round, so that one's lookups fill the other's waiting.
template <int kRounds, class Keys>
__device__ __forceinline__ void finish_both(const Tables& tables, const Keys& keys,
                                            Words4 (&state)[2], const Words4 (&mask)[2]) {
#pragma unroll
    for (int r = 3; r < kRounds; ++r)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            state[i] = kernels::round<false, kTables>(tables, keys, r, state[i]);
#pragma unroll
    for (int i = 0; i < 2; ++i)
        state[i] = kernels::finish_masked<kRounds, kRounds>(tables, keys, state[i], mask[i]);
}

// The data of one of a lane's two messages.
template <class Keys>
struct CryptRow {
    __device__ CryptRow(const Tables& tables, const Keys& keys, const Message& m, bool ours,
                        std::uint32_t t)
        : message(m),
          cache(tables, keys, start_of(m)),
          in(m.in + t * 16),
          out(m.out + t * 16),
          counter(kernels::byte_swap(start_of(m).w) + 1 + t),
          blocks(ours ? QuadMessage(0, m.size).data_blocks : 0),
          whole(ours && aligned16(m.in, m.out) ? static_cast<std::uint32_t>(m.size / 16) : 0) {
        renew();
    }
    // 256 counters share all but what their low byte contributes.
    __device__ __forceinline__ void renew() { base = cache.high(counter) ^ cache.middle(counter); }

    const Message& message;
    const kernels::CounterCache<kTables, Keys> cache;
    const unsigned char* in;
    unsigned char* out;
    std::uint32_t counter, blocks, whole;
    Words4 base;
};

// The data of a warp's 16 messages, of which lane i % 16 has the i-th's index, and `ours` a bit for
// each. `width` lanes, 4 or 8, take neighbouring blocks of a message, so that a line of memory is
// read and written at once where messages are long enough.
template <int kRounds, class Keys>
__device__ __forceinline__ void crypt_rows(const Tables& tables, const Keys& keys,
                                           const Message* list, std::uint32_t mine,
                                           std::uint32_t ours, std::uint32_t width) {
    const std::uint32_t lane = threadIdx.x % kLanes, t = lane % width, across = kLanes / width;
#pragma unroll 1
    for (std::uint32_t from = 0; from < kQuadWarpRows; from += 2 * across) {
        const std::uint32_t i = from + lane / width, k = i + across;
        const Message &first = list[__shfl_sync(~0u, mine, i)],
                      &second = list[__shfl_sync(~0u, mine, k)];
        CryptRow<Keys> rows[2] = {{tables, keys, first, (ours >> i & 1) != 0, t},
                                  {tables, keys, second, (ours >> k & 1) != 0, t}};
        const std::uint32_t most = __reduce_max_sync(~0u, max(rows[0].blocks, rows[1].blocks));
#pragma unroll 1
        for (std::uint32_t block = t; block - t < most; block += width) {
            Words4 x[2] = {}, state[2];
#pragma unroll
            for (int r = 0; r < 2; ++r)
                if (block < rows[r].whole) x[r] = load_global(rows[r].in);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                if (rows[r].counter % 256 < width) rows[r].renew();
                state[r] = rows[r].base ^ rows[r].cache.low(rows[r].counter % 256);
            }
            finish_both<kRounds>(tables, keys, state, x);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                if (block < rows[r].whole) {
                    store_global(rows[r].out, state[r]);
                } else if (block < rows[r].blocks) {
                    const int size = part(rows[r].message.size, static_cast<std::int32_t>(block));
                    store_bytes(rows[r].out, state[r] ^ load_bytes(rows[r].in, size), size);
                }
                rows[r].in += width * 16;
                rows[r].out += width * 16;
                rows[r].counter += width;
            }
        }
    }
}

// What one of a lane's two messages has to hash.
struct HashRow {
    __device__ HashRow(const Message& m, const unsigned char* data, bool ours, std::uint32_t steps,
                       std::uint32_t t)
        : message(m), data(data) {
        const QuadMessage blocks(m.aad_size, m.size);
        block = blocks.first_block(steps, t);
        at = data + std::int64_t{block} * 16;
        first = ours ? -static_cast<std::int32_t>(blocks.aad_blocks) : 0x7fffffff;
        last = static_cast<std::int32_t>(blocks.data_blocks);
        whole = ours && aligned16(data, data) ? static_cast<std::uint32_t>(m.size / 16) : 0;
    }
    // The block of the next step.
    __device__ __forceinline__ Words4 next() {
        Words4 x{};
        if (static_cast<std::uint32_t>(block) < whole)
            x = load_global(at);
        else if (block >= first && block <= last)
            x = edge();
        block += kQuadBlocks;
        at += kQuadBlocks * 16;
        return x;
    }

    const Message& message;
    const unsigned char *data, *at;
    std::int32_t block, first, last;
    std::uint32_t whole;

  private:
    __device__ __forceinline__ Words4 edge() const {
        if (block == last) return lengths_block(message);
        const bool aad = block < 0;
        const std::int32_t i = aad ? block - first : block;
        return load_bytes((aad ? message.aad : data) + std::int64_t{i} * 16,
                          part(aad ? message.aad_size : message.size, i));
    }
};

// The hashes of a warpgroup's messages: each lane gets its word of its quad's two.
__device__ __forceinline__ void hash_rows(HashRow (&rows)[2], std::uint32_t steps,
                                          std::uint64_t matrices, std::uint32_t (&hash)[2]) {
    constexpr std::uint64_t kOperand = 2 * kernels::kQuadColumns * 16 / 16;
    hash[0] = hash[1] = 0;
    Words4 ahead[2] = {rows[0].next(), rows[1].next()};
#pragma unroll 1
    for (std::uint32_t step = 0; step < steps; ++step) {
        const Words4 a = ahead[0], b = ahead[1];
#pragma unroll
        for (int r = 0; r < 2; ++r) ahead[r] = rows[r].next();
        const std::uint32_t state[4] = {hash[0], hash[1], 0, 0};
        const std::uint32_t first[4] = {a.x, b.x, a.y, b.y}, second[4] = {a.z, b.z, a.w, b.w};
        std::uint32_t counts[kernels::kQuadColumns / 2];
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        wgmma_b1(counts, state, matrices, 0);
        wgmma_b1(counts, first, matrices + kOperand, 1);
        wgmma_b1(counts, second, matrices + 2 * kOperand, 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hash[0] = hash[1] = 0;
        kernels::pack_parities(hash, counts);
    }
}

// Word t of a tag, as far as it goes: compared and written.
__device__ __forceinline__ std::uint32_t tag_difference(const unsigned char* tag, std::uint32_t t,
                                                        std::uint32_t size, std::uint32_t word) {
    __builtin_assume(__isGlobal(tag));
    std::uint32_t difference = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
        if (4 * t + i < size) difference |= (word >> (8 * i) & 255) ^ tag[4 * t + i];
    return difference;
}
__device__ __forceinline__ void put_tag_word(unsigned char* tag, std::uint32_t t,
                                             std::uint32_t size, std::uint32_t word) {
    __builtin_assume(__isGlobal(tag));
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i)
        if (4 * t + i < size) tag[4 * t + i] = static_cast<unsigned char>(word >> (8 * i));
}

// Opening begins with the hash, which does little while it waits for memory: what it reads first is
// asked for meanwhile. Lane `lane` of `lanes` takes its share.
__device__ __forceinline__ void ask_for_data(const Message& m, std::uint32_t lane,
                                             std::uint32_t lanes) {
    constexpr std::uint32_t kLine = 128, kMax = 1024;
    const auto size = static_cast<std::uint32_t>(min(m.size, std::uint64_t{kMax}));
#pragma unroll 1
    for (std::uint32_t at = lane * kLine; at < size; at += lanes * kLine) ask_ahead(m.in + at);
}

// Up to 64 messages of one key, group `group`: entry(group, i) is the index of the i-th, kNoMessage
// for none; the first has the most steps. `next` is the group after it, if it is below `groups`.
// The warpgroup calls it together.
template <int kRounds, class Keys, class Entry>
__device__ __forceinline__ void do_group(const GcmBatch& batch, const Tables& tables,
                                         const Keys& keys, std::uint64_t matrices, Entry entry,
                                         std::uint32_t group, std::uint32_t next,
                                         std::uint32_t groups) {
    const std::uint32_t lane = threadIdx.x % kLanes, t = lane % kQuadBlocks, g = lane / kQuadBlocks;
    const std::uint32_t any = entry(group, 0);
    const Message& longest = batch.messages[any];
    const std::uint32_t steps = QuadMessage(longest.aad_size, longest.size).steps();
    // First a lane looks at a message, two lanes at the same; and which comes then.
    const std::uint32_t place = threadIdx.x / kLanes % 4 * kQuadWarpRows + lane % kQuadWarpRows,
                        mine = entry(group, place),
                        later = next < groups ? entry(next, place) : kNoMessage;
    bool valid = false;
    Words4 mask{};  // E(J0)
    if (mine != kNoMessage) {
        const Message& m = batch.messages[mine];
        const Code code = validity(batch, m);
        valid = code == Code::ok;
        if (!valid) batch.results[mine] = static_cast<std::uint32_t>(code);
        if (valid && batch.opening) ask_for_data(m, lane / kQuadWarpRows, 2);
        mask = kernels::crypt_masked<kRounds>(tables, keys, start_of(m), {});
    }
    std::uint32_t authentic = __ballot_sync(~0u, valid);  // as far as is known
    const std::uint32_t all_valid = authentic;
    const std::uint32_t looked_at = valid ? mine : any;
    const std::uint32_t most =
        __reduce_max_sync(~0u, valid ? QuadMessage(0, batch.messages[mine].size).data_blocks : 0);
    // Eight lanes to a message, where that takes hardly more than four.
    const std::uint32_t width = (most + 7) / 8 * 8 * 8 <= (most + 3) / 4 * 4 * 9 ? 8 : 4;
    std::uint32_t index[2], masks[2];
    const Message* messages[2];
    bool ours[2];
#pragma unroll
    for (std::uint32_t r = 0; r < 2; ++r) {
        const std::uint32_t from = g + 8 * r;
        index[r] = __shfl_sync(~0u, mine, from);
        ours[r] = (all_valid >> from & 1) != 0;
        messages[r] = &batch.messages[ours[r] ? index[r] : any];
        masks[r] = word_of(shuffle(mask, from), t);
    }
    std::uint32_t tags[2];
    // Sealing encrypts and then hashes, opening the other way round.
#pragma unroll 1
    for (std::uint32_t pass = 0; pass < 2; ++pass) {
        if (pass == batch.opening) {
            crypt_rows<kRounds>(tables, keys, batch.messages, looked_at, authentic, width);
            if (later != kNoMessage) {  // which the next group begins with
                const auto* const next_one =
                    reinterpret_cast<const unsigned char*>(&batch.messages[later]);
                ask_ahead(next_one);
                ask_ahead(next_one + 64);
            }
            __syncwarp();  // a quad reads what its other lanes wrote
            continue;
        }
        HashRow rows[2] = {
            {*messages[0], batch.opening ? messages[0]->in : messages[0]->out, ours[0], steps, t},
            {*messages[1], batch.opening ? messages[1]->in : messages[1]->out, ours[1], steps, t}};
        hash_rows(rows, steps, matrices, tags);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            Code code = Code::ok;
            if (batch.opening) {
                std::uint32_t difference = 0;
                if (ours[r])
                    difference =
                        tag_difference(messages[r]->tag, t, batch.tag_size, tags[r] ^ masks[r]);
                difference |= __shfl_xor_sync(~0u, difference, 1);
                difference |= __shfl_xor_sync(~0u, difference, 2);
                if (difference != 0) code = Code::authentication;
            } else if (ours[r]) {
                put_tag_word(messages[r]->tag, t, batch.tag_size, tags[r] ^ masks[r]);
            }
            if (ours[r] && t == 0) batch.results[index[r]] = static_cast<std::uint32_t>(code);
            ours[r] = ours[r] && code == Code::ok;
        }
        // From a quad's two flags to a lane's message: lane i % 16 looked at the i-th.
        const std::uint32_t low = __shfl_sync(~0u, ours[0], lane % 8 * kQuadBlocks),
                            high = __shfl_sync(~0u, ours[1], lane % 8 * kQuadBlocks);
        authentic = __ballot_sync(~0u, (lane % kQuadWarpRows < 8 ? low : high) != 0);
    }
}

// The short ones among up to kQuadChunk messages of a list that nobody has looked at, those with
// the most steps first.
// A block of threads takes every gridDim-th run of messages, which spreads lists that are sorted.
// Writes the results of invalid ones. The whole block calls it.
struct Chunk {
    static constexpr std::uint32_t kBins = kLanes * 5;  // by the number of steps
    static_assert((kShortMessage / 16 + 2 + kQuadBlocks) / kQuadBlocks < kBins);

    // The n-th message of this block.
    __device__ static std::uint64_t message(std::uint32_t n, std::uint32_t run) {
        return (std::uint64_t{n / run} * gridDim.x + blockIdx.x) * run + n % run;
    }

    __device__ void sort(const GcmBatch& batch, std::uint32_t first, std::uint32_t run,
                         std::uint32_t count) {
        constexpr std::uint32_t kOwn = (kQuadChunk + kThreads - 1) / kThreads;
        __syncthreads();  // the one before is done
        for (std::uint32_t i = threadIdx.x; i < kBins; i += kThreads) bins[i] = 0;
        for (std::uint32_t i = threadIdx.x; i < kQuadChunk; i += kThreads) entries[i] = kNoMessage;
        __syncthreads();
        std::uint32_t bin[kOwn], rank[kOwn];
#pragma unroll
        for (std::uint32_t k = 0; k < kOwn; ++k) {
            const std::uint32_t n = k * kThreads + threadIdx.x;
            const std::uint64_t i = message(first + n, run);
            bin[k] = 0;  // a message has at least one
            if (n < kQuadChunk && i < count) {
                const Message& m = batch.messages[i];
                const Code code = validity(batch, m);
                if (code != Code::ok) {
                    batch.results[i] = static_cast<std::uint32_t>(code);
                } else if (!is_long(m)) {
                    bin[k] = QuadMessage(m.aad_size, m.size).steps();
                } else {
                    if (batch.reset) batch.results[i] = kNotRun;
                    if (batch.plan_later) batch.plan->any_long = 1;
                }
            }
            // One lane counts for all that have its length.
            const std::uint32_t same = __match_any_sync(~0u, bin[k]), lane = threadIdx.x % kLanes,
                                leader = __ffs(same) - 1;
            std::uint32_t before = 0;
            if (lane == leader) before = atomicAdd(&bins[bin[k]], __popc(same));
            rank[k] = __shfl_sync(~0u, before, leader) + __popc(same & ((1u << lane) - 1));
        }
        __syncthreads();
        if (threadIdx.x < kLanes) {  // from a bin's size to what is before it
            std::uint32_t own[kBins / kLanes], sum = 0;
            const auto bin_of = [&](std::uint32_t k) {
                return kBins - 1 - (threadIdx.x * (kBins / kLanes) + k);
            };
#pragma unroll
            for (std::uint32_t k = 0; k < kBins / kLanes; ++k) {
                own[k] = bin_of(k) == 0 ? 0 : bins[bin_of(k)];
                sum += own[k];
            }
            std::uint32_t before = sum;
#pragma unroll
            for (std::uint32_t distance = 1; distance < kLanes; distance *= 2) {
                const std::uint32_t other = __shfl_up_sync(~0u, before, distance);
                if (threadIdx.x >= distance) before += other;
            }
            if (threadIdx.x == kLanes - 1) groups = (before + kQuadRows - 1) / kQuadRows;
            before -= sum;
#pragma unroll
            for (std::uint32_t k = 0; k < kBins / kLanes; ++k) {
                bins[bin_of(k)] = before;
                before += own[k];
            }
        }
        __syncthreads();
#pragma unroll
        for (std::uint32_t k = 0; k < kOwn; ++k)
            if (bin[k] != 0)
                entries[bins[bin[k]] + rank[k]] =
                    static_cast<std::uint32_t>(message(first + k * kThreads + threadIdx.x, run));
        __syncthreads();
    }

    std::uint32_t entries[kQuadChunk];
    std::uint32_t bins[kBins];
    std::uint32_t groups;
};
static_assert(sizeof(Chunk) <= shapes::kQuadChunkBytes && kQuadChunk % kQuadRows == 0);

__device__ __forceinline__ void copy_matrices(unsigned char* to, const GcmQuads& from,
                                              std::uint32_t thread, std::uint32_t threads) {
    for (std::uint32_t i = thread; i < sizeof from / 16; i += threads)
        reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(&from)[i];
}
#endif

// With one key for all it is a parameter, and a list that has not been planned is sorted here. With
// many, a warpgroup's messages have the same, which it keeps.
template <int kRounds, bool kManyKeys>
__global__ void __launch_bounds__(kThreads, 1)
    gcm_quads(const __grid_constant__ GcmBatch batch, const __grid_constant__ RoundKeys only_key,
              const __grid_constant__ std::uint32_t only_index) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    // The tables begin at a multiple of 64 KiB of shared memory; before them lies what else is
    // there.
    let_the_next_begin();
    const bool current = kManyKeys || is_for(batch, batch.keys[only_index], kRounds);
    const auto begin = static_cast<std::uint32_t>(__cvta_generic_to_shared(table_image));
    fill_tables<kTables, false>(shapes::kQuadTables - begin);
    const Tables tables(static_cast<const unsigned char*>(__cvta_shared_to_generic(0)),
                        shapes::kQuadTables, threadIdx.x % kLanes);
    constexpr std::uint32_t kMatrices = sizeof(GcmQuads);
    const std::uint32_t group = threadIdx.x / kernels::kTileThreads,
                        thread = threadIdx.x % kernels::kTileThreads;
    unsigned char* const own = table_image + (kManyKeys ? group * shapes::kQuadOwn : 0);
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(own));
    const std::uint64_t matrices = tile_descriptor(address);
    // This worker's n-th of planned groups: there and back, as those that come first are longer.
    const std::uint32_t worker = group * gridDim.x + blockIdx.x, workers = gridDim.x * kGroups;
    const auto planned = [&](std::uint32_t n) {
        return n * workers + (n % 2 == 0 ? worker : workers - 1 - worker);
    };
    if constexpr (kManyKeys) {
        auto& keys = *reinterpret_cast<GroupKeys*>(own + kMatrices);
        const auto entry = [&](std::uint32_t at, std::uint32_t place) {
            return batch.order[std::uint64_t{at} * kQuadRows + place];
        };
        std::uint32_t loaded = kNoMessage;
        for (std::uint32_t n = 0; n * workers < batch.quad_groups; ++n) {
            if (planned(n) >= batch.quad_groups) continue;
            const std::uint32_t key = batch.messages[entry(planned(n), 0)].key;
            if (batch.keys[key].rounds != kRounds) {
                const std::uint32_t mine =
                    thread < kQuadRows ? entry(planned(n), thread) : kNoMessage;
                if (batch.reset && mine != kNoMessage) batch.results[mine] = kNotRun;
                continue;
            }
            if (key != loaded) {
                loaded = key;
                warpgroup_barrier(group);
                copy_matrices(own, batch.quads[key], thread, kernels::kTileThreads);
                if (thread < sizeof keys.w / 4) keys.w[thread] = batch.keys[key].encrypt.w[thread];
                async_proxy_fence();
                warpgroup_barrier(group);
            }
            do_group<kRounds>(batch, tables, keys, matrices, entry, planned(n), planned(n + 1),
                              batch.quad_groups);
        }
        warpgroup_barrier(group);
        wipe_shared<shapes::kQuadOwn, kernels::kTileThreads>(own, thread);
    } else {
        copy_matrices(own, batch.quads[only_index], threadIdx.x, kThreads);
        async_proxy_fence();
        __syncthreads();
        if (!current) {  // the key is not the one that the host gave along
            const std::uint64_t all = batch.order ? std::uint64_t{batch.quad_groups} * kQuadRows
                                                  : number_of(batch.number, batch.count);
            for (std::uint64_t i = blockIdx.x * kThreads + threadIdx.x; i < all;
                 i += gridDim.x * kThreads) {
                const auto at = batch.order ? batch.order[i] : static_cast<std::uint32_t>(i);
                if (at != kNoMessage) batch.results[at] = kNotRun;
            }
            wipe_shared<kMatrices, kThreads>(own, threadIdx.x);
            return;
        }
        auto& chunk = *reinterpret_cast<Chunk*>(own + kMatrices);
        const std::uint32_t count = number_of(batch.number, batch.count);
        // Runs of 64 messages, or shorter ones where there are too few of them for all blocks.
        const std::uint32_t run = min(kQuadRows, count / gridDim.x + 1);
        std::uint32_t first = 0;
#pragma unroll 1
        do {
            if (!batch.order) chunk.sort(batch, first, run, count);
            const std::uint32_t groups = batch.order ? batch.quad_groups : chunk.groups,
                                step = batch.order ? workers : kGroups;
            const auto entry = [&](std::uint32_t of, std::uint32_t place) {
                place += of * kQuadRows;
                return batch.order ? batch.order[place] : chunk.entries[place];
            };
#pragma unroll 1
            for (std::uint32_t n = 0; n * step < groups; ++n) {
                const std::uint32_t at = batch.order ? planned(n) : n * kGroups + group;
                if (at >= groups) continue;
                do_group<kRounds>(batch, tables, only_key, matrices, entry, at,
                                  batch.order ? planned(n + 1) : at + kGroups, groups);
            }
            first += kQuadChunk;
        } while (!batch.order && Chunk::message(first, run) < count);
        __syncthreads();
        wipe_shared<kMatrices, kThreads>(own, threadIdx.x);
    }
#else
    __trap();  // nothing is compiled here: to end without a word would leave the data as it is
#endif
}

// A warp for 32 bits of the factor, a block of threads to a key.
__global__ void __launch_bounds__(128)
    gcm_quad_setup(const GcmKey* keys, GcmQuads* quads, std::uint32_t count) {
    const std::uint32_t word = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
    for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
        std::uint32_t* const to = quads[i].words;
#pragma unroll 1
        for (std::uint32_t power = 1; power <= kQuadBlocks; ++power) {
            const Words4 product =
                kernels::gf_multiply(keys[i].powers[power], kernels::gf_basis(threadIdx.x));
#pragma unroll 1
            for (std::uint32_t q = 0; q < 4; ++q) {
                const std::uint32_t output = 32 * q + lane;
                const std::uint32_t bits = q == 0   ? product.x
                                           : q == 1 ? product.y
                                           : q == 2 ? product.z
                                                    : product.w;
                std::uint32_t row = 0;
#pragma unroll
                for (std::uint32_t bit = 0; bit < 32; ++bit) {
                    const std::uint32_t all = __ballot_sync(~0u, bits >> bit & 1);
                    if (bit == lane) row = all;
                }
                to[kernels::quad_block_index(power, output, word)] = row;
                if (power != kQuadBlocks) continue;
                to[kernels::quad_state_index(output, word)] = row;
                to[kernels::quad_zero_index(output, word)] = 0;
            }
        }
    }
}

}  // namespace

Kernel gcm_quads_kernel(int rounds, bool many_keys) {
    return find_kernel(rounds, 1, [many_keys](auto r, auto) {
        const void* one = reinterpret_cast<const void*>(&gcm_quads<r.value, false>);
        const void* many = reinterpret_cast<const void*>(&gcm_quads<r.value, true>);
        return Kernel{many_keys ? many : one, shapes::gcm_quads()};
    });
}

Kernel gcm_quad_setup_kernel() {
    return {reinterpret_cast<const void*>(&gcm_quad_setup), shapes::gcm_quad_setup()};
}

}  // namespace dael::cuda
