// SPDX-License-Identifier: Apache-2.0
// What lets one source of the kernels' maths compile for the device, where it is fast, and for the
// host, where it is tested on machines without a GPU. For daelstrom's own use.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define DAEL_HD __host__ __device__ __forceinline__
#else
#define DAEL_HD inline
#endif
#ifdef __CUDA_ARCH__
#define DAEL_PRAGMA(text) _Pragma(#text)
#define DAEL_UNROLL(times) DAEL_PRAGMA(unroll times)
#else
#define DAEL_UNROLL(times)
#endif

namespace dael::kernels {

// PRMT: each nibble of `selector` (0 to 7) picks one of the eight bytes of (high : low).
DAEL_HD constexpr std::uint32_t byte_perm(std::uint32_t low, std::uint32_t high,
                                          std::uint32_t selector) {
#ifdef __CUDA_ARCH__
    return __byte_perm(low, high, selector);
#else
    const std::uint64_t bytes = static_cast<std::uint64_t>(high) << 32 | low;
    std::uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        const std::uint32_t pick = selector >> (4 * i) & 7;
        result |= static_cast<std::uint32_t>(bytes >> (8 * pick) & 0xff) << (8 * i);
    }
    return result;
#endif
}

// One LOP3 instead of two XORs.
DAEL_HD std::uint32_t xor3(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#ifdef __CUDA_ARCH__
    std::uint32_t d;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    return a ^ b ^ c;
#endif
}

// Counters are big-endian in memory; words of a block are read in memory order (little-endian).
DAEL_HD constexpr std::uint32_t byte_swap(std::uint32_t word) {
    return byte_perm(word, 0, 0x0123);
}

}  // namespace dael::kernels
