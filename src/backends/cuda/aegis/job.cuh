// SPDX-License-Identifier: Apache-2.0
// A message's entry in the list, and its bytes in memory.
#pragma once

#include "backends/cuda/aegis/lanes.cuh"

namespace dael::cuda {

// One of the two: whole blocks of global memory, which nothing else is taken for.
__device__ __forceinline__ Words4 load_line(const unsigned char* p) {
#ifdef __CUDA_ARCH__
    Words4 v;
    asm volatile("ld.global.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
#else
    return kernels::load_aligned(p);
#endif
}
__device__ __forceinline__ void store_line(unsigned char* p, const Words4& v) {
#ifdef __CUDA_ARCH__
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
#else
    kernels::store_aligned(p, v);
#endif
}

__device__ __forceinline__ std::uint64_t shuffle(std::uint64_t v, std::uint32_t lane) {
    const std::uint64_t low = __shfl_sync(~0u, static_cast<std::uint32_t>(v), lane),
                        high = __shfl_sync(~0u, static_cast<std::uint32_t>(v >> 32), lane);
    return high << 32 | low;
}
template <class T>
__device__ __forceinline__ T* shuffle(T* p, std::uint32_t lane) {
    return reinterpret_cast<T*>(shuffle(std::uint64_t{reinterpret_cast<std::uintptr_t>(p)}, lane));
}

// A value of 1, 2, 4 or 8 bytes at a multiple of its size.
template <class T>
__device__ __forceinline__ T load_as(const unsigned char* p) {
#ifdef __CUDA_ARCH__
    __builtin_assume(__isGlobal(p));
    return *reinterpret_cast<const T*>(p);
#else
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
#endif
}
template <class T>
__device__ __forceinline__ void store_as(unsigned char* p, std::uint64_t value) {
#ifdef __CUDA_ARCH__
    __builtin_assume(__isGlobal(p));
    *reinterpret_cast<T*>(p) = static_cast<T>(value);
#else
    std::memcpy(p, &value, sizeof(T));
#endif
}

// Some bytes of an aligned word of 16, of which others may belong to somebody else: in four
// accesses at most, each of which lies at a multiple of its size. The first `n` (0 to 15), zeros
// after them; and those from byte 16 - `n` on, zeros before them.
__device__ __forceinline__ Words4 load_first(const unsigned char* p, std::uint32_t n) {
    const bool eight = (n & 8) != 0, four = (n & 4) != 0;
    std::uint64_t two = 0;
    std::uint32_t one = 0, rest = 0;
    if (eight) two = load_as<std::uint64_t>(p);
    if (four) one = load_as<std::uint32_t>(p + (n & 8));
    if (n & 2) rest = load_as<std::uint16_t>(p + (n & 12));
    if (n & 1) rest |= std::uint32_t{load_as<std::uint8_t>(p + (n & 14))} << (n & 2 ? 16 : 0);
    return {eight  ? static_cast<std::uint32_t>(two)
            : four ? one
                   : rest,
            eight  ? static_cast<std::uint32_t>(two >> 32)
            : four ? rest
                   : 0,
            !eight ? 0
            : four ? one
                   : rest,
            eight && four ? rest : 0};
}
__device__ __forceinline__ Words4 load_last(const unsigned char* p, std::uint32_t n) {
    const bool eight = (n & 8) != 0, four = (n & 4) != 0;
    std::uint64_t two = 0;
    std::uint32_t one = 0, rest = 0;
    if (n & 1) rest = std::uint32_t{load_as<std::uint8_t>(p + 16 - n)} << (n & 2 ? 8 : 24);
    if (n & 2) rest |= std::uint32_t{load_as<std::uint16_t>(p + 16 - (n & 14))} << 16;
    if (four) one = load_as<std::uint32_t>(p + 16 - (n & 12));
    if (eight) two = load_as<std::uint64_t>(p + 8);
    return {eight && four ? rest : 0,
            !eight ? 0
            : four ? one
                   : rest,
            eight  ? static_cast<std::uint32_t>(two)
            : four ? rest
                   : 0,
            eight  ? static_cast<std::uint32_t>(two >> 32)
            : four ? one
                   : rest};
}
__device__ __forceinline__ void store_first(unsigned char* p, const Words4& v, std::uint32_t n) {
    const bool eight = (n & 8) != 0, four = (n & 4) != 0;
    const std::uint32_t rest = eight ? (four ? v.w : v.z) : four ? v.y : v.x;
    if (eight) store_as<std::uint64_t>(p, std::uint64_t{v.y} << 32 | v.x);
    if (four) store_as<std::uint32_t>(p + (n & 8), eight ? v.z : v.x);
    if (n & 2) store_as<std::uint16_t>(p + (n & 12), rest);
    if (n & 1) store_as<std::uint8_t>(p + (n & 14), rest >> (n & 2 ? 16 : 0));
}
__device__ __forceinline__ void store_last(unsigned char* p, const Words4& v, std::uint32_t n) {
    const bool eight = (n & 8) != 0, four = (n & 4) != 0;
    const std::uint32_t rest = eight ? (four ? v.x : v.y) : four ? v.z : v.w;
    if (n & 1) store_as<std::uint8_t>(p + 16 - n, rest >> (n & 2 ? 8 : 24));
    if (n & 2) store_as<std::uint16_t>(p + 16 - (n & 14), rest >> 16);
    if (four) store_as<std::uint32_t>(p + 16 - (n & 12), eight ? v.y : v.w);
    if (eight) store_as<std::uint64_t>(p + 8, std::uint64_t{v.w} << 32 | v.z);
}

// The first `size` (1 to 16) bytes of a block, zeros after them. `kAnywhere`: it may lie in shared
// memory, as AAD that travelled with a launch does.
template <bool kAnywhere = false>
__device__ __forceinline__ Words4 load_some(const unsigned char* p, int size) {
    if (size == 16 && aligned16(p, p)) return kAnywhere ? load_aligned(p) : load_line(p);
    return load_part(p, 0, size);
}
__device__ __forceinline__ void store_some(unsigned char* p, const Words4& v, int size) {
    if (size == 16 && aligned16(p, p))
        store_line(p, v);
    else
        store_part(p, v, 0, size);
}
// Of 16 bytes from byte `at` on, how many a message of `size` has.
__device__ __forceinline__ int bytes_at(std::uint64_t at, std::uint64_t size) {
    return at >= size ? 0 : size - at < 16 ? static_cast<int>(size - at) : 16;
}

// What a message's lanes need of its entry in the list, which is read once: six words of 16 bytes,
// for the entries of a warp lie apart, and each load of them costs as many lines as there are.
struct AegisJob {
    const unsigned char *in, *aad;
    unsigned char *out, *tag;
    std::uint64_t size, aad_size;
    std::uint32_t key, skip;
    Words4 nonce[2];

    __device__ __forceinline__ static std::uint64_t join(std::uint32_t low, std::uint32_t high) {
        return std::uint64_t{high} << 32 | low;
    }
    // word(i): word i of the entry.
    template <class Word>
    __device__ __forceinline__ static AegisJob of(bool rest, Word word) {
        const Words4 places = word(0), data = word(1), more = word(2), key = word(4);
        AegisJob job;
        job.in = reinterpret_cast<const unsigned char*>(join(places.x, places.y));
        job.out = reinterpret_cast<unsigned char*>(join(places.z, places.w));
        job.size = join(data.x, data.y);
        job.aad = reinterpret_cast<const unsigned char*>(join(data.z, data.w));
        job.aad_size = join(more.x, more.y);
        job.tag = reinterpret_cast<unsigned char*>(join(more.z, more.w));
        job.nonce[0] = word(3);
        job.key = key.x;
        job.skip = key.y & 0xff;
        job.nonce[1] = rest ? word(5) : Words4{};
        return job;
    }
};
static_assert(offsetof(Message, out) == 8 && offsetof(Message, size) == 16 &&
              offsetof(Message, aad) == 24 && offsetof(Message, aad_size) == 32 &&
              offsetof(Message, tag) == 40 && offsetof(Message, start) == 48 &&
              offsetof(Message, key) == 64 && offsetof(Message, skip) == 68 &&
              offsetof(Message, start_rest) == 80);

// The entry of a lane's own message; lists of others' may be aligned to no more than 8 bytes.
template <class F>
__device__ __forceinline__ AegisJob fetch_job(const Message* entry) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(entry);
    const bool aligned = aligned16(bytes, bytes);
    return AegisJob::of(F::k256, [&](std::uint32_t i) -> Words4 {
        if (aligned) return kernels::load_aligned(bytes + 16 * i);
        return load_part(bytes + 16 * i, 0, 16);
    });
}

}  // namespace dael::cuda
