// SPDX-License-Identifier: Apache-2.0
// A kernel of AEGIS, from a list of messages to their tags and codes.
//
// Opening is one pass: plaintext is written before the tag is known. What was forged is wiped, or
// where it was opened in place encrypted again, which gives the ciphertext that was there, before
// its code is written.
#pragma once

#include "backends/cuda/aegis/loops.cuh"

namespace dael::cuda {

// The least and the most of 64-bit values among a warp's lanes.
template <bool kMost>
__device__ __forceinline__ std::uint64_t warp_extreme(std::uint64_t v) {
#pragma unroll
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
    const std::uint32_t* const w = key.encrypt.w + 4 * half;
    return {w[0], w[1], w[2], w[3]};
}

// Zeros over a message that was forged, by the whole warp.
__device__ __forceinline__ void wipe_message(unsigned char* out, std::uint64_t size) {
    const std::uint32_t lane = threadIdx.x % kLanes;
#pragma unroll 1
    for (std::uint64_t at = lane * 16; at < size; at += kLanes * 16)
        store_some(out + at, {}, size - at < 16 ? static_cast<int>(size - at) : 16);
}

template <class F, bool kOpen>
__device__ __forceinline__ void aegis_group(const AegisBatch& batch, const Message* messages,
                                            AegisState<F>& state, std::uint64_t wanted,
                                            std::uint32_t count) {
    const std::uint32_t lane = state.lane;
    const bool tells = lane % F::kGroup == 0;
    bool own = wanted < count;
    std::uint32_t index = 0;
    if (own) {
        index = batch.order ? batch.order[wanted] : static_cast<std::uint32_t>(wanted);
        const Message& m = messages[index];
        Code code = validity(batch, m);
        // A key of another size, which was put in its place on a stream beside.
        if (code == Code::ok && batch.keys[m.key].rounds != (F::k256 ? 14 : 10))
            code = Code::internal;
        own = code == Code::ok;
        if (!own && tells && batch.results) batch.results[index] = static_cast<std::uint32_t>(code);
    }
    const std::uint32_t owners = __ballot_sync(~0u, own);
    if (owners == 0) return;
    // Lanes without a message do as others do, and write nothing.
    const std::uint32_t another = __shfl_sync(~0u, index, __ffs(static_cast<int>(owners)) - 1);
    if (!own) index = another;
    const Message& m = messages[index];
    const std::uint64_t size = m.size, aad_size = m.aad_size;
    const GcmKey& its_key = batch.keys[m.key];
    const Words4 key[2] = {key_words(its_key, 0), F::k256 ? key_words(its_key, 1) : Words4{}},
                 nonce[2] = {start_of(m), F::k256 ? start_rest_of(m) : Words4{}};
    const std::uint64_t shortest = warp_extreme<false>(size), longest = warp_extreme<true>(size),
                        most_aad = warp_extreme<true>(aad_size);
    const bool fast =
        __ballot_sync(~0u, aligned16(m.in, m.out)) == ~0u && AegisFast<F, kOpen>::can(m.in, m.out);
    const std::uint64_t bodies = fast ? shortest / AegisFast<F, kOpen>::kBytes : 0,
                        done = bodies * AegisFast<F, kOpen>::kBytes;
    Words4 tag[2];
    {
        AegisFast<F, kOpen> loop(state, m.in, m.out, owners, bodies);
        state.begin(key, nonce);
        aegis_steps(state, m.aad, nullptr, 0, most_aad, aad_size, false, false);
        loop.run(state, bodies);
    }
    const Message& same = messages[index];  // nothing of it is kept over the loop
    aegis_steps(state, same.in, same.out, done, longest, size, kOpen, own);
    state.end(kernels::aegis_lengths(same.aad_size, size), batch.tag_size, tag);

    const auto write_code = [&](Code code) {
        if (batch.results) batch.results[index] = static_cast<std::uint32_t>(code);
    };
    if constexpr (!kOpen) {
        if (!own || !tells) return;
        store_some(same.tag, tag[0], 16);
        if (batch.tag_size == 32) store_some(same.tag + 16, tag[1], 16);
        write_code(Code::ok);
    } else {
        Words4 wrong = tag[0] ^ load_some(same.tag, 16);
        std::uint32_t difference = wrong.x | wrong.y | wrong.z | wrong.w;
        if (batch.tag_size == 32) {
            wrong = tag[1] ^ load_some(same.tag + 16, 16);
            difference |= wrong.x | wrong.y | wrong.z | wrong.w;
        }
        const bool forged = own && difference != 0;
        if (own && !forged && tells) write_code(Code::ok);
        std::uint32_t left = __ballot_sync(~0u, forged && tells);
        if (left == 0) return;
        __syncwarp();
        // In place: encrypted again from the beginning. The others' lanes go along.
        const bool again = forged && same.in == same.out;
        if (__ballot_sync(~0u, again) != 0) {
            state.begin(key, nonce);
            aegis_steps(state, same.aad, nullptr, 0, most_aad, aad_size, false, false);
            aegis_steps(state, same.out, same.out, 0, longest, size, false, again);
        }
#pragma unroll 1
        for (; left != 0; left &= left - 1) {
            const std::uint32_t whose = __ffs(static_cast<int>(left)) - 1;
            const Message& its = messages[__shfl_sync(~0u, index, whose)];
            if (its.in != its.out) wipe_message(its.out, its.size);
        }
        __threadfence();
        __syncwarp();
        if (forged && tells) write_code(Code::authentication);
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
        return FixedTables(threadIdx.x % kLanes);
    } else {
        return fill_tables<F::kTables, false>();
    }
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
    AegisState<F> state(aegis_tables<F>());
    const std::uint32_t warps = gridDim.x * (F::kThreads / kLanes),
                        warp = uniform(threadIdx.x / kLanes) * gridDim.x + blockIdx.x;
    const std::uint32_t count = number_of(batch.number, batch.count);
    // There and back, as those that come first may be longer.
    const std::uint64_t groups = (std::uint64_t{count} + F::kMessages - 1) / F::kMessages;
#pragma unroll 1
    for (std::uint64_t n = 0; n * warps < groups; ++n) {
        const std::uint64_t group = n * warps + (n % 2 == 0 ? warp : warps - 1 - warp);
        if (group >= groups) continue;
        aegis_group<F, kOpen>(batch, messages, state, group * F::kMessages + state.lane / F::kGroup,
                              count);
    }
    wipe_stage<F>();
}

template <class F, bool kOpen>
__global__ void __launch_bounds__(F::kThreads, 1)
    aegis_batch(const __grid_constant__ AegisBatch batch) {
    aegis_messages<F, kOpen>(batch, batch.messages);
}

}  // namespace dael::cuda
