// SPDX-License-Identifier: Apache-2.0
// What code for AVX-512 has in common, in the backend cpu and in the OpenSSL provider: bytes and
// blocks in vectors, GHASH as sums of carry-less products. It knows no key and no message, and
// includes nothing of ours. Everything here is inlined into functions that say their target.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

// Of single functions, not of the file: what the compiler makes of others' inline functions in such
// a file may end up in programs that run on lesser machines.
#define DAEL_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq,pclmul,vaes,aes,bmi2")))
#define DAEL_AVX512_INLINE DAEL_AVX512 __attribute__((always_inline)) inline

namespace dael::vectors {

inline constexpr std::size_t kVector = 64;  // bytes

DAEL_AVX512_INLINE __m128i load_block(const std::uint8_t* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
DAEL_AVX512_INLINE void store_block(std::uint8_t* to, __m128i block) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), block);
}

// The bytes of each block the other way round.
DAEL_AVX512_INLINE __m128i reversed(__m128i block) noexcept {
    return _mm_shuffle_epi8(block,
                            _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
DAEL_AVX512_INLINE __m512i reversed(__m512i blocks) noexcept {
    return _mm512_shuffle_epi8(blocks, _mm512_broadcast_i32x4(_mm_set_epi8(
                                           0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
}

// A sum of carry-less products that is not reduced yet: of 64-bit halves low by low, high by high,
// and the two mixed ones.
struct Sum {
    __m512i low, middle, high;
};
DAEL_AVX512_INLINE Sum nothing() noexcept {
    return {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
}

inline constexpr int kXor3 = 0x96;  // VPTERNLOG's table for a ^ b ^ c

// Four blocks times four powers.
DAEL_AVX512_INLINE void add_products(Sum& sum, __m512i x, __m512i h) noexcept {
    sum.low = _mm512_xor_si512(sum.low, _mm512_clmulepi64_epi128(x, h, 0x00));
    sum.high = _mm512_xor_si512(sum.high, _mm512_clmulepi64_epi128(x, h, 0x11));
    sum.middle = _mm512_ternarylogic_epi64(sum.middle, _mm512_clmulepi64_epi128(x, h, 0x01),
                                           _mm512_clmulepi64_epi128(x, h, 0x10), kXor3);
}

// Eight blocks times eight powers, with fewer additions.
DAEL_AVX512_INLINE void add_two_products(Sum& sum, __m512i x0, __m512i h0, __m512i x1,
                                         __m512i h1) noexcept {
    sum.low = _mm512_ternarylogic_epi64(sum.low, _mm512_clmulepi64_epi128(x0, h0, 0x00),
                                        _mm512_clmulepi64_epi128(x1, h1, 0x00), kXor3);
    sum.high = _mm512_ternarylogic_epi64(sum.high, _mm512_clmulepi64_epi128(x0, h0, 0x11),
                                         _mm512_clmulepi64_epi128(x1, h1, 0x11), kXor3);
    sum.middle = _mm512_ternarylogic_epi64(sum.middle, _mm512_clmulepi64_epi128(x0, h0, 0x01),
                                           _mm512_clmulepi64_epi128(x0, h0, 0x10), kXor3);
    sum.middle = _mm512_ternarylogic_epi64(sum.middle, _mm512_clmulepi64_epi128(x1, h1, 0x01),
                                           _mm512_clmulepi64_epi128(x1, h1, 0x10), kXor3);
}

// Each lane modulo the field's polynomial. With bits reflected that is 1 + x^121 + x^126 + x^127 +
// x^128, of which 0xc2 are the upper terms: the lowest quarter is folded into the two above it, and
// then the next one.
DAEL_AVX512_INLINE __m512i reduced(const Sum& sum) noexcept {
    const __m512i polynomial = _mm512_set1_epi64(static_cast<long long>(0xc200000000000000));
    const __m512i middle =
        _mm512_ternarylogic_epi64(sum.middle, _mm512_shuffle_epi32(sum.low, _MM_PERM_BADC),
                                  _mm512_clmulepi64_epi128(sum.low, polynomial, 0x00), kXor3);
    return _mm512_ternarylogic_epi64(sum.high, _mm512_shuffle_epi32(middle, _MM_PERM_BADC),
                                     _mm512_clmulepi64_epi128(middle, polynomial, 0x00), kXor3);
}
DAEL_AVX512_INLINE __m128i lanes_together(__m512i x) noexcept {
    const __m256i two =
        _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

// H, as it comes from the cipher but with its bytes reversed, times x, as products of reflected
// numbers want it: every bit one up, and what leaves at the top comes back by the polynomial.
DAEL_AVX512_INLINE __m128i times_x(__m128i h) noexcept {
    const __m128i top = _mm_srai_epi32(_mm_shuffle_epi32(h, _MM_SHUFFLE(3, 3, 3, 3)), 31);
    const __m128i up = _mm_or_si128(_mm_slli_epi64(h, 1), _mm_slli_si128(_mm_srli_epi64(h, 63), 8));
    return _mm_xor_si128(
        up, _mm_and_si128(top, _mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1)));
}

}  // namespace dael::vectors
