// SPDX-License-Identifier: Apache-2.0
// What code 512 bits wide has in common: bytes and blocks in vectors, AES on four blocks at a time,
// GHASH as sums of carry-less products. For files of this folder alone, inside an anonymous
// namespace of their own: everything here is inlined into functions that say their target.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include <daelstrom/cipher.hpp>

// Of single functions, not of the file: what the compiler makes of others' inline functions in such
// a file may end up in programs that run on lesser machines.
#define DAEL_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq,pclmul,vaes,aes,bmi2")))
#define DAEL_AVX512_INLINE DAEL_AVX512 __attribute__((always_inline)) inline

namespace dael::cpu::wide {

inline constexpr std::size_t kVector = 64;  // bytes

DAEL_AVX512_INLINE __m128i load_block(const std::uint8_t* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
DAEL_AVX512_INLINE void store_block(std::uint8_t* to, __m128i block) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), block);
}
DAEL_AVX512_INLINE __mmask64 first_of_64(std::size_t bytes) noexcept {
    return _bzhi_u64(~0ull, static_cast<unsigned>(bytes));
}
DAEL_AVX512_INLINE __mmask16 first_of_16(std::size_t bytes) noexcept {
    return static_cast<__mmask16>(_bzhi_u32(0xffff, static_cast<unsigned>(bytes)));
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

// Round keys of core::KeySchedule, whose order is the instructions'. There are more of them than
// registers to spare, so each is loaded when its round comes; here() keeps the compiler from
// remembering them since the last time, which it would do on the stack.
template <int rounds>
struct RoundKeys {
    const std::uint8_t* schedule;
    DAEL_AVX512_INLINE RoundKeys here() const noexcept {
        const std::uint8_t* the_same = schedule;
        asm("" : "+r"(the_same));
        return {the_same};
    }
    DAEL_AVX512_INLINE __m512i operator[](int round) const noexcept {
        return _mm512_broadcast_i32x4(load_block(schedule + 16 * round));
    }
    DAEL_AVX512_INLINE __m128i one(int round) const noexcept {
        return load_block(schedule + 16 * round);
    }
};

template <Direction direction, int rounds, std::size_t count>
DAEL_AVX512_INLINE void transform(const RoundKeys<rounds>& schedule, __m512i (&x)[count]) noexcept {
    constexpr bool encrypts = direction == Direction::encrypt;
    const auto keys = schedule.here();
#pragma GCC unroll 8
    for (__m512i& four : x) four = _mm512_xor_si512(four, keys[0]);
#pragma GCC unroll 16
    for (int round = 1; round < rounds; ++round)
#pragma GCC unroll 8
        for (__m512i& four : x)
            four = encrypts ? _mm512_aesenc_epi128(four, keys[round])
                            : _mm512_aesdec_epi128(four, keys[round]);
#pragma GCC unroll 8
    for (__m512i& four : x)
        four = encrypts ? _mm512_aesenclast_epi128(four, keys[rounds])
                        : _mm512_aesdeclast_epi128(four, keys[rounds]);
}
template <int rounds>
DAEL_AVX512_INLINE __m128i encrypted(const RoundKeys<rounds>& keys, __m128i block) noexcept {
    block = _mm_xor_si128(block, keys.one(0));
    for (int round = 1; round < rounds; ++round) block = _mm_aesenc_si128(block, keys.one(round));
    return _mm_aesenclast_si128(block, keys.one(rounds));
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
// Eight blocks times eight powers in memory, with fewer additions.
DAEL_AVX512_INLINE void add_two(Sum& sum, __m512i x0, __m512i x1, const std::uint8_t* h) noexcept {
    const __m512i h0 = _mm512_loadu_si512(h), h1 = _mm512_loadu_si512(h + kVector);
    sum.low = _mm512_ternarylogic_epi64(sum.low, _mm512_clmulepi64_epi128(x0, h0, 0x00),
                                        _mm512_clmulepi64_epi128(x1, h1, 0x00), kXor3);
    sum.high = _mm512_ternarylogic_epi64(sum.high, _mm512_clmulepi64_epi128(x0, h0, 0x11),
                                         _mm512_clmulepi64_epi128(x1, h1, 0x11), kXor3);
    sum.middle = _mm512_ternarylogic_epi64(sum.middle, _mm512_clmulepi64_epi128(x0, h0, 0x01),
                                           _mm512_clmulepi64_epi128(x0, h0, 0x10), kXor3);
    sum.middle = _mm512_ternarylogic_epi64(sum.middle, _mm512_clmulepi64_epi128(x1, h1, 0x01),
                                           _mm512_clmulepi64_epi128(x1, h1, 0x10), kXor3);
}

DAEL_AVX512_INLINE void add_product(Sum& sum, __m128i x, const std::uint8_t* h) noexcept {
    add_products(sum, _mm512_zextsi128_si512(x), _mm512_zextsi128_si512(load_block(h)));
}

// The four lanes' sum modulo the field's polynomial. With bits reflected that is 1 + x^121 + x^126
// + x^127 + x^128, of which 0xc2 are the upper terms: the lowest quarter is folded into the two
// above it, and then the next one.
DAEL_AVX512_INLINE __m128i reduce(const Sum& sum) noexcept {
    const __m512i polynomial = _mm512_set1_epi64(static_cast<long long>(0xc200000000000000));
    const __m512i middle =
        _mm512_ternarylogic_epi64(sum.middle, _mm512_shuffle_epi32(sum.low, _MM_PERM_BADC),
                                  _mm512_clmulepi64_epi128(sum.low, polynomial, 0x00), kXor3);
    const __m512i high =
        _mm512_ternarylogic_epi64(sum.high, _mm512_shuffle_epi32(middle, _MM_PERM_BADC),
                                  _mm512_clmulepi64_epi128(middle, polynomial, 0x00), kXor3);
    const __m256i two =
        _mm256_xor_si256(_mm512_castsi512_si256(high), _mm512_extracti64x4_epi64(high, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
}

}  // namespace dael::cpu::wide
