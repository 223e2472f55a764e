// SPDX-License-Identifier: Apache-2.0
// What this folder's code for AES-NI and PCLMULQDQ has in common: blocks, and sums of products in
// the field of GHASH and POLYVAL. All of it is inlined.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define DAEL_PCLMUL __attribute__((target("sse4.1,ssse3,aes,pclmul")))
#define DAEL_PCLMUL_INLINE DAEL_PCLMUL __attribute__((always_inline)) inline

namespace dael::cpu::pclmul {

DAEL_PCLMUL_INLINE __m128i load(const std::uint8_t* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
DAEL_PCLMUL_INLINE void store(std::uint8_t* to, __m128i block) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), block);
}

// Products that are reduced together: POLYVAL's dot product (RFC 8452 3) of sums, which GHASH is
// too, of blocks reversed and a key made for it.
struct Sum {
    __m128i low, middle, high;
};
DAEL_PCLMUL_INLINE Sum nothing() noexcept {
    return {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()};
}
DAEL_PCLMUL_INLINE void add_product(Sum& sum, __m128i x, __m128i h) noexcept {
    sum.low = _mm_xor_si128(sum.low, _mm_clmulepi64_si128(x, h, 0x00));
    sum.high = _mm_xor_si128(sum.high, _mm_clmulepi64_si128(x, h, 0x11));
    sum.middle = _mm_xor_si128(sum.middle, _mm_xor_si128(_mm_clmulepi64_si128(x, h, 0x01),
                                                         _mm_clmulepi64_si128(x, h, 0x10)));
}
DAEL_PCLMUL_INLINE __m128i fold(__m128i upper, __m128i lower) noexcept {
    const __m128i polynomial = _mm_set1_epi64x(static_cast<long long>(0xc200000000000000));
    return _mm_xor_si128(upper, _mm_xor_si128(_mm_shuffle_epi32(lower, _MM_SHUFFLE(1, 0, 3, 2)),
                                              _mm_clmulepi64_si128(lower, polynomial, 0x00)));
}
DAEL_PCLMUL_INLINE __m128i reduce(const Sum& sum) noexcept {
    return fold(sum.high, fold(sum.middle, sum.low));
}
DAEL_PCLMUL_INLINE __m128i multiply(__m128i a, __m128i b) noexcept {
    Sum sum = nothing();
    add_product(sum, a, b);
    return reduce(sum);
}

}  // namespace dael::cpu::pclmul
