// SPDX-License-Identifier: Apache-2.0
// A kernel of AEGIS, from a list of messages to their tags and codes.
//
// Opening is one pass: plaintext is written before the tag is known. What was forged is wiped, or
// where it was opened in place encrypted again, which gives the ciphertext that was there, before
// its code is written.
#pragma once

#include "backends/cuda/aegis/blocks.cuh"
#include "backends/cuda/aegis/lines.cuh"
#include "backends/cuda/dependent_launch.cuh"

namespace dael::cuda {

// The least and the most of 64-bit values among a warp's lanes.
template <bool kMost>
__device__ __forceinline__ std::uint64_t warp_extreme(std::uint64_t v) {
#ifdef __CUDA_ARCH__
    int same = 0;  // mostly they are
    __match_all_sync(~0u, static_cast<unsigned long long>(v), &same);
    if (same) return v;
#endif
#pragma unroll 1
    for (int distance = 16; distance != 0; distance /= 2) {
        const std::uint64_t low = __shfl_xor_sync(~0u, static_cast<std::uint32_t>(v), distance),
                            high =
                                __shfl_xor_sync(~0u, static_cast<std::uint32_t>(v >> 32), distance),
                            other = high << 32 | low;
        v = (other > v) == kMost ? other : v;
    }
    return v;
}

__device__ __forceinline__ Words4 key_words(const GcmKey& key, std::uint32_t half) {
    return kernels::load_aligned(reinterpret_cast<const unsigned char*>(key.encrypt.w) + 16 * half);
}

// Of shared memory that is filled.
template <class F>
__device__ __forceinline__ typename F::Tables view_tables() {
    if constexpr (F::kTables == 4)
        return FixedTables(threadIdx.x % kLanes);
    else
        return typename F::Tables(table_image, threadIdx.x % kLanes);
}

// Messages of the warp that were forged, `forged`, their lanes' alike: wiped, or where they were
// opened in place encrypted again from the beginning, which the others' lanes go along with. Apart
// from the code that every message takes.
template <class F>
__device__ __noinline__ void undo_forged(const AegisBatch& batch, const Message* messages,
                                         std::uint32_t index, bool forged) {
    AegisState<F> state(view_tables<F>());
    const AegisJob job = fetch_job<F>(messages + index);
    const GcmKey& its_key = batch.keys[job.key];
    const Words4 key[2] = {key_words(its_key, 0), key_words(its_key, 1)};
    const std::uint64_t longest = warp_extreme<true>(job.size),
                        most_aad = warp_extreme<true>(job.aad_size);
    const bool again = forged && job.in == job.out;
    if (__ballot_sync(~0u, again) != 0) {
        state.begin(key, job.nonce);
        aegis_steps<F, true>(state, job.aad, nullptr, 0, most_aad, job.aad_size, false, false);
        aegis_steps(state, job.out, job.out, 0, longest, job.size, false, again);
    }
#pragma unroll 1
    for (std::uint32_t left = __ballot_sync(~0u, forged && !again && state.lane % F::kGroup == 0);
         left != 0; left &= left - 1) {
        const std::uint32_t whose = __ffs(static_cast<int>(left)) - 1;
        unsigned char* const out = shuffle(job.out, whose);
        const std::uint64_t size = shuffle(job.size, whose);
#pragma unroll 1
        for (std::uint64_t at = state.lane * 16; at < size; at += kLanes * 16)
            store_some(out + at, {}, bytes_at(at, size));
    }
    __threadfence();
    __syncwarp();
}

// What is still needed behind the fast loop is kept in local memory meanwhile, rather than in
// registers that the loop has better use for.
struct AegisKept {
    std::uint64_t in, out, size, aad_size, longest, done, tag;
    std::uint32_t index, owners;
};

template <class F, bool kOpen>
using AegisFast = std::conditional_t<F::kStaged, AegisLines<F, kOpen>, AegisBlocks<F, kOpen>>;

template <class F, bool kOpen>
__device__ __forceinline__ void aegis_group(const AegisBatch& batch, const Message* messages,
                                            bool aligned, AegisState<F>& state,
                                            std::uint64_t wanted, std::uint32_t count) {
    using Fast = AegisFast<F, kOpen>;
    const std::uint32_t lane = state.lane;
    const bool tells = lane % F::kGroup == 0;
    bool own = wanted < count;
    std::uint32_t index = 0;
    if (own) index = batch.order ? batch.order[wanted] : static_cast<std::uint32_t>(wanted);
    if (index == kNoMessage) {
        own = false;
        index = 0;
    }
    AegisJob job;
    if constexpr (F::kStaged) {
        if (aligned)
            job = Fast::fetch(messages, index, own);
        else
            job = fetch_job<F>(messages + index);
    } else {
        job = fetch_job<F>(messages + index);
    }
    Words4 key[2] = {};
    if (own) {
        Code code = validity(batch, job);
        if (code == Code::ok) {
            const GcmKey& its_key = batch.keys[job.key];
            const std::uint32_t rounds = its_key.rounds;
            key[0] = key_words(its_key, 0);
            if constexpr (F::k256) key[1] = key_words(its_key, 1);
            // One of another size may have been put in its place, on a stream beside.
            if (rounds != (F::k256 ? 14 : 10)) code = Code::internal;
        }
        own = code == Code::ok;
        if (!own && tells && batch.results) batch.results[index] = static_cast<std::uint32_t>(code);
    }
    const std::uint32_t owners = __ballot_sync(~0u, own);
    if (owners == 0) return;
    if (owners != ~0u) {
        // Lanes without a message do as others do, and write nothing.
        const std::uint32_t another = __shfl_sync(~0u, index, __ffs(static_cast<int>(owners)) - 1);
        if (!own) {
            index = another;
            job = fetch_job<F>(messages + index);  // and any key
        }
        __syncwarp();
    }
    volatile AegisKept kept;
    kept.index = index;
    kept.owners = owners;
    kept.in = reinterpret_cast<std::uintptr_t>(job.in);
    kept.out = reinterpret_cast<std::uintptr_t>(job.out);
    kept.size = job.size;
    kept.aad_size = job.aad_size;
    kept.tag = reinterpret_cast<std::uintptr_t>(job.tag);
    const std::uint64_t longest = warp_extreme<true>(job.size);
    kept.longest = longest;
    const bool fast =
        __ballot_sync(~0u, aligned16(job.in, job.out)) == ~0u && Fast::can(job.in, job.out);
    const std::uint64_t all_have = fast ? warp_extreme<false>(job.size) / Fast::kBytes : 0;
    const auto bodies = static_cast<std::uint32_t>(all_have < 0xffffffffu ? all_have : 0xffffffffu);
    kept.done = std::uint64_t{bodies} * Fast::kBytes;
    if (longest != kept.done && tells) ask_ahead(job.in + (job.size != 0 ? job.size - 1 : 0));
    {
        Fast loop(state, job.in, job.out, owners, bodies);
        state.begin(key, job.nonce);
        aegis_steps<F, true>(state, job.aad, nullptr, 0, warp_extreme<true>(job.aad_size),
                             job.aad_size, false, false);
        loop.run(state, bodies);
    }
    const bool still_own = (kept.owners >> lane & 1) != 0;
    const std::uint64_t size = kept.size;
    if (kept.done != kept.longest)
        Fast::rest(state, reinterpret_cast<const unsigned char*>(kept.in),
                   reinterpret_cast<unsigned char*>(kept.out), size, kept.done, kept.longest,
                   still_own);
    Words4 tag[2];
    state.end(kernels::aegis_lengths(kept.aad_size, size), batch.tag_size, tag);

    auto* const its_tag = reinterpret_cast<unsigned char*>(kept.tag);
    const std::uint32_t its_index = kept.index;
    const auto write_code = [&](Code code) {
        if (batch.results) batch.results[its_index] = static_cast<std::uint32_t>(code);
    };
    if constexpr (!kOpen) {
        if (!still_own || !tells) return;
        store_some(its_tag, tag[0], 16);
        if (batch.tag_size == 32) store_some(its_tag + 16, tag[1], 16);
        write_code(Code::ok);
    } else {
        Words4 wrong = tag[0] ^ load_some(its_tag, 16);
        std::uint32_t difference = wrong.x | wrong.y | wrong.z | wrong.w;
        if (batch.tag_size == 32) {
            wrong = tag[1] ^ load_some(its_tag + 16, 16);
            difference |= wrong.x | wrong.y | wrong.z | wrong.w;
        }
        const bool forged = still_own && difference != 0;
        if (__ballot_sync(~0u, forged) != 0) undo_forged<F>(batch, messages, its_index, forged);
        if (still_own && tells) write_code(forged ? Code::authentication : Code::ok);
    }
}

// Fills shared memory with the tables, or what there is of them.
template <class F>
__device__ __forceinline__ typename F::Tables aegis_tables() {
    if constexpr (F::kTables == 4) {
#ifdef __CUDA_ARCH__
        const auto begin = static_cast<std::uint32_t>(__cvta_generic_to_shared(table_image));
        if (begin > kAegisTables) __trap();
#else
        constexpr std::uint32_t begin = 0;
#endif
        fill_tables<4, false>(kAegisTables - begin);
    } else {
        fill_tables<F::kTables, false>();
    }
    return view_tables<F>();
}

// Zeros over what a warp staged, at the kernel's end.
template <class F>
__device__ __forceinline__ void wipe_stage() {
    if constexpr (F::kStaged) {
        constexpr std::uint32_t kWarp = F::kMessages * F::kStageStride;
        const std::uint32_t at = kAegisTables + 4 * shapes::kTable + threadIdx.x / kLanes * kWarp;
        __syncwarp();
#pragma unroll 1
        for (std::uint32_t i = threadIdx.x % kLanes * 16; i < kWarp; i += kLanes * 16)
            store_stage(at + i, {});
    }
}

template <class F, bool kOpen>
__device__ __forceinline__ void aegis_messages(const AegisBatch& batch, const Message* messages) {
    let_the_next_begin();
    AegisState<F> state(aegis_tables<F>());
    wait_for_those_before();
    const std::uint32_t warps = gridDim.x * (F::kThreads / kLanes),
                        warp = uniform(threadIdx.x / kLanes) * gridDim.x + blockIdx.x;
    const std::uint32_t count = number_of(batch.number, batch.count);
    // There and back, as those that come first may be longer.
    const std::uint64_t groups = (std::uint64_t{count} + F::kMessages - 1) / F::kMessages;
    const bool aligned = aligned16(messages, messages);
#pragma unroll 1
    for (std::uint64_t n = 0; n * warps < groups; ++n) {
        const std::uint64_t group = n * warps + (n % 2 == 0 ? warp : warps - 1 - warp);
        if (group >= groups) continue;
        aegis_group<F, kOpen>(batch, messages, aligned, state,
                              group * F::kMessages + state.lane / F::kGroup, count);
    }
    wipe_stage<F>();
}

template <class F, bool kOpen>
__global__ void __launch_bounds__(F::kThreads, 1)
    aegis_batch(const __grid_constant__ AegisBatch batch) {
    aegis_messages<F, kOpen>(batch, batch.messages);
}

}  // namespace dael::cuda
