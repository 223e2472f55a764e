// SPDX-License-Identifier: Apache-2.0
// What this folder's code for AVX-512 has in common, over src/vectors/: AES on four
// blocks at a time, sums of products. Like that, all of it is inlined.
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/message.hpp>

#include "vectors/avx512.hpp"

namespace dael::cpu::avx512 {

using namespace vectors;

DAEL_AVX512_INLINE __mmask64 first_of_64(std::size_t bytes) noexcept {
    return _bzhi_u64(~0ull, static_cast<unsigned>(bytes));
}
DAEL_AVX512_INLINE __mmask16 first_of_16(std::size_t bytes) noexcept {
    return static_cast<__mmask16>(_bzhi_u32(0xffff, static_cast<unsigned>(bytes)));
}

// Round keys of core::KeySchedule, whose order is the instructions'. There are more of them than
// registers to spare, so each is loaded when its round comes; here() keeps the compiler from
// remembering them since the last time, which it would do on the stack. `stride`: bytes from one to
// the next, of keys that were expanded side by side.
template <int rounds, std::size_t stride = kBlockSize>
struct RoundKeys {
    const std::uint8_t* schedule;
    DAEL_AVX512_INLINE RoundKeys here() const noexcept {
        const std::uint8_t* the_same = schedule;
        asm("" : "+r"(the_same));
        return {the_same};
    }
    DAEL_AVX512_INLINE __m512i operator[](int round) const noexcept {
        return _mm512_broadcast_i32x4(
            load_block(schedule + stride * static_cast<std::size_t>(round)));
    }
    DAEL_AVX512_INLINE __m128i one(int round) const noexcept {
        return load_block(schedule + stride * static_cast<std::size_t>(round));
    }
};

template <Direction direction, int rounds, std::size_t stride, std::size_t count>
DAEL_AVX512_INLINE void transform(const RoundKeys<rounds, stride>& schedule,
                                  __m512i (&x)[count]) noexcept {
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

// The next round keys but one (FIPS 197 5.2): running sums of the words, and to each the last word
// of the round key before, substituted. AESENCLAST of four equal columns is that and an addition.
template <bool rotates>
DAEL_AVX512_INLINE __m512i next_keys(__m512i last_but_one, __m512i last, int rcon) noexcept {
    const __m512i word =
        _mm512_broadcast_i32x4(rotates ? _mm_set1_epi32(0x0c0f0e0d) : _mm_set1_epi32(0x0f0e0d0c));
    __m512i sums = _mm512_xor_si512(last_but_one, _mm512_bslli_epi128(last_but_one, 4));
    sums = _mm512_ternarylogic_epi64(sums, _mm512_bslli_epi128(sums, 8), _mm512_set1_epi32(rcon),
                                     kXor3);
    return _mm512_aesenclast_epi128(_mm512_shuffle_epi8(last, word), sums);
}

// Eight blocks times eight powers in memory.
DAEL_AVX512_INLINE void add_two(Sum& sum, __m512i x0, __m512i x1, const std::uint8_t* h) noexcept {
    add_two_products(sum, x0, _mm512_loadu_si512(h), x1, _mm512_loadu_si512(h + kVector));
}

DAEL_AVX512_INLINE void add_product(Sum& sum, __m128i x, const std::uint8_t* h) noexcept {
    add_products(sum, _mm512_zextsi128_si512(x), _mm512_zextsi128_si512(load_block(h)));
}

// The four lanes' sum modulo the field's polynomial.
DAEL_AVX512_INLINE __m128i reduce(const Sum& sum) noexcept {
    return lanes_together(reduced(sum));
}

// Lane by lane, modulo the field's polynomial.
DAEL_AVX512_INLINE __m512i multiply_each(__m512i a, __m512i b) noexcept {
    Sum sum = nothing();
    add_products(sum, a, b);
    return reduced(sum);
}

}  // namespace dael::cpu::avx512
