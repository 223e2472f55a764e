// SPDX-License-Identifier: Apache-2.0
// A warp derives the keys of up to eight messages of XAES-256-GCM or AES-GCM-SIV, expands them into
// shared memory and begins their counters. Lane l has a part in message l % 8, its slot.
#pragma once

#include <daelstrom/device/detail/key_expansion.hpp>

#include "backends/cuda/derived/kernels.hpp"
#include "backends/cuda/keys/warp_keys.cuh"
#include "backends/cuda/warp_values.cuh"

namespace dael::cuda {

using kernels::kLanes;

// A form of the kernels. `tRounds`: of the base key, and of the derived ones.
template <bool tSiv, int tRounds, int tTables, std::uint32_t tThreads>
struct DerivedForm {
    static constexpr bool kSiv = tSiv;
    static constexpr int kRounds = tRounds, kTables = tTables;
    static constexpr std::uint32_t kThreads = tThreads, kWarps = tThreads / kLanes;
    using Tables = kernels::Tables<kTables, false>;
    using Cache = std::conditional_t<kSiv, kernels::SivCounterCache<kTables, SharedKeys>,
                                     kernels::CounterCache<kTables, SharedKeys>>;
    static constexpr Shape shape() { return shapes::derived(kThreads, kTables); }
    static_assert(kSiv || kRounds == 14);
};

// The tables in shared memory, once it is filled.
template <class F>
__device__ __forceinline__ typename F::Tables view_derived() {
    const std::uint32_t lane = threadIdx.x % kLanes;
    if constexpr (F::kTables == 4) {
#ifdef __CUDA_ARCH__
        return typename F::Tables(static_cast<const unsigned char*>(__cvta_shared_to_generic(0)),
                                  shapes::kDerivedTables, lane);
#else
        return typename F::Tables(table_image + shapes::kDerivedTables, lane);
#endif
    } else {
        return typename F::Tables(table_image + shapes::derived_own(F::kThreads), lane);
    }
}

// Fills shared memory: a warp's schedules and what a block shares come first, and then the tables,
// four of them at an address that one PRMT makes (ttable.hpp).
template <class F>
__device__ __forceinline__ typename F::Tables derived_tables() {
    if constexpr (F::kTables == 4) {
#ifdef __CUDA_ARCH__
        const auto begin = static_cast<std::uint32_t>(__cvta_generic_to_shared(table_image));
#else
        constexpr std::uint32_t begin = 0;
#endif
        fill_tables<4, false>(shapes::kDerivedTables - begin);
    } else {
        fill_tables<F::kTables, false>(shapes::derived_own(F::kThreads));
    }
    return view_derived<F>();
}

__device__ __forceinline__ SharedKeys* warp_schedules(std::uint32_t warp) {
    return reinterpret_cast<SharedKeys*>(table_image + warp * shapes::kDerivedSchedules);
}
static_assert(shapes::kDerivedSchedules == kDerivedMessages * sizeof(SharedKeys));

template <class F>
class Deriver {
  public:
    __device__ __forceinline__ Deriver(const typename F::Tables& tables, SharedKeys* schedules)
        : tables_(tables), schedules_(schedules) {}

    // Of each slot's message, whose lanes have its base key and nonce alike. H, as GHASH has it, to
    // lane `slot`; E(J0) of XAES to lane `slot` + 8, in `mask`. All lanes call it.
    __device__ __forceinline__ void derive(const GcmKey& key, std::uint32_t key_index,
                                           const Words4& nonce, const Words4& rest, Words4& h,
                                           Words4& mask) {
        const std::uint32_t lane = threadIdx.x % kLanes, slot = lane % kDerivedMessages;
        const auto& base = *reinterpret_cast<const SharedKeys*>(key.encrypt.w);
        std::uint32_t own[8];
        if constexpr (F::kSiv) {
            const std::uint32_t role = lane / kDerivedMessages;
            const Words4 some = encrypt(base, kernels::siv_block(role, nonce));
            h = {from(some.x, slot), from(some.y, slot), from(some.x, slot + 8),
                 from(some.y, slot + 8)};
            h = kernels::polyval_as_ghash(h);
            put_pair(own, 0, some, slot + 16);
            put_pair(own, 2, some, slot + 24);
            if constexpr (F::kRounds == 14) {
                const Words4 more = encrypt(base, kernels::siv_block(4 + role % 2, nonce));
                put_pair(own, 4, more, slot);
                put_pair(own, 6, more, slot + 8);
            }
        } else {
            if (__ballot_sync(~0u, key_index != k1_of_) != 0) {
                k1_ = kernels::cmac_subkey(encrypt(base, {}));
                k1_of_ = key_index;
            }
            const std::uint32_t half = lane / kDerivedMessages % 2;
            const Words4 some = encrypt(base, kernels::xaes_block(1 + half, nonce, k1_));
            put_pair(own, 0, some, slot);
            put_pair(own, 4, some, slot + 8);
            own[2] = from(some.z, slot), own[3] = from(some.w, slot);
            own[6] = from(some.z, slot + 8), own[7] = from(some.w, slot + 8);
        }
        __syncwarp();  // whose schedules were there before has been done with
        if (lane < kDerivedMessages) expand(own, schedules_[slot]);
        __syncwarp();
        if constexpr (!F::kSiv) {
            const bool first = lane / kDerivedMessages % 2 == 0;
            const Words4 j0 = kernels::xaes_j0(nonce, rest);
            h = mask = encrypt(schedules_[slot], first ? Words4{} : j0);
        }
    }
    // The cipher under base or derived keys, with its rounds in a short loop where it is rare.
    __device__ __forceinline__ Words4 encrypt(const SharedKeys& keys, const Words4& block) const {
        const Words4 first{keys.w[0], keys.w[1], keys.w[2], keys.w[3]};
        return kernels::finish_masked<F::kRounds, 1, 1>(tables_, keys, block ^ first, {});
    }
    __device__ __forceinline__ const SharedKeys& schedule(std::uint32_t slot) const {
        return schedules_[slot];
    }
    __device__ __forceinline__ const typename F::Tables& tables() const { return tables_; }

  private:
    __device__ __forceinline__ static std::uint32_t from(std::uint32_t v, std::uint32_t lane) {
        return __shfl_sync(~0u, v, lane);
    }
    __device__ __forceinline__ static void put_pair(std::uint32_t (&own)[8], int at,
                                                    const Words4& v, std::uint32_t lane) {
        own[at] = from(v.x, lane);
        own[at + 1] = from(v.y, lane);
    }
    // Each word follows from those before it, which a lane keeps.
    __device__ __forceinline__ void expand(std::uint32_t (&key)[8], SharedKeys& to) const {
        constexpr int kWords = F::kRounds - 6;
#pragma unroll
        for (int i = 0; i < kWords; ++i) to.w[i] = key[i];
        kernels::expand_words(
            kWords, [&](int i) { return key[i % kWords]; },
            [&](int i, std::uint32_t word) { to.w[i] = key[i % kWords] = word; },
            [&](std::uint32_t word) { return tables_.last_column(word, word, word, word); });
    }

    const typename F::Tables& tables_;
    SharedKeys* const schedules_;
    Words4 k1_{};
    std::uint32_t k1_of_ = ~0u;  // no key
};

// Bytes of a block that begins at `at` of `size`.
__device__ __forceinline__ int bytes_of(std::uint64_t size, std::uint64_t at) {
    return size - at < 16 ? static_cast<int>(size - at) : 16;
}
__device__ __forceinline__ Words4 load_bytes(const unsigned char* p, int size) {
    __builtin_assume(__isGlobal(p));
    return size == 16 && aligned16(p, p) ? load_aligned(p) : load_part(p, 0, size);
}
__device__ __forceinline__ void store_bytes(unsigned char* p, const Words4& v, int size) {
    __builtin_assume(__isGlobal(p));
    if (size == 16 && aligned16(p, p))
        store_aligned(p, v);
    else
        store_part(p, v, 0, size);
}
// As GHASH takes a block of data.
template <bool kSiv>
__device__ __forceinline__ Words4 hashed(const Words4& block) {
    return kSiv ? kernels::reversed(block) : block;
}
template <bool kSiv>
__device__ __forceinline__ Words4 lengths_of(const Message& m) {
    return kSiv ? kernels::polyval_lengths(m.aad_size, m.size)
                : kernels::ghash_lengths(m.aad_size, m.size);
}

// The data of a message under its schedule, every `step`-th block from `first` on: from `in`, to
// `out`. `start`: of the first block.
template <class F>
__device__ __forceinline__ void crypt_blocks(const typename F::Tables& tables,
                                             const SharedKeys& keys, const Words4& start,
                                             const unsigned char* in, unsigned char* out,
                                             std::uint64_t size, std::uint32_t first,
                                             std::uint32_t step) {
    kernels::CachedCounter<typename F::Cache> counter(typename F::Cache(tables, keys, start));
    const std::uint32_t from = F::kSiv ? start.x : kernels::byte_swap(start.w);
    const bool aligned = aligned16(in, out);
#pragma unroll 1
    for (std::uint64_t block = first, at = block * 16; at < size; block += step, at = block * 16) {
        const bool whole = aligned && size - at >= 16;
        const int here = whole ? 16 : bytes_of(size, at);
        const Words4 x = whole ? load_global(in + at) : load_bytes(in + at, here);
        const Words4 state = counter.state(from + static_cast<std::uint32_t>(block));
        const Words4 y = kernels::finish_masked<F::kRounds, 3>(tables, keys, state, x);
        if (whole)
            store_global(out + at, y);
        else
            store_bytes(out + at, y, here);
    }
}

// What is left of a forgery where it lies apart: every `step`-th block from `first` on.
__device__ __forceinline__ void wipe_blocks(unsigned char* out, std::uint64_t size,
                                            std::uint32_t first, std::uint32_t step) {
#pragma unroll 1
    for (std::uint64_t at = std::uint64_t{first} * 16; at < size; at += std::uint64_t{step} * 16)
        store_bytes(out + at, {}, bytes_of(size, at));
}

// Zeros over all but the tables, at a kernel's end.
template <class F>
__device__ __forceinline__ void wipe_own() {
    constexpr std::uint32_t kEnd =
        F::kTables == 4 ? shapes::kDerivedRows : shapes::derived_own(F::kThreads);
    __syncthreads();
    for (std::uint32_t at = threadIdx.x * 16; at < kEnd; at += F::kThreads * 16)
        kernels::store_aligned(table_image + at, {});
}

// Where a message stands: valid, and under a key of this launch's size.
template <class F>
__device__ __forceinline__ Code standing(const DerivedBatch& batch, const Message& m, bool& other) {
    const Code code = validity<F::kSiv>(batch, m);
    other = code == Code::ok && batch.keys[m.key].rounds != F::kRounds;
    return code;
}

}  // namespace dael::cuda
