// SPDX-License-Identifier: Apache-2.0
// What vector_aes.cpp and vector_gcm.cpp have in common: blocks in vectors of 512 bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vector_aes.hpp"
#include "vectors/avx512.hpp"

#define DAEL_AVX512_LAMBDA DAEL_AVX512 __attribute__((always_inline))

namespace dael::provider::vectors {

using namespace dael::vectors;

inline constexpr std::size_t kSet = 4 * kVector;  // that are in work at once
using Bytes = unsigned char;

DAEL_AVX512_INLINE __mmask64 first(std::size_t bytes) noexcept {
    return _bzhi_u64(~0ull, bytes < 64 ? static_cast<unsigned>(bytes) : 64u);
}
template <int rounds>
DAEL_AVX512_INLINE __m128i encrypted(const Bytes* keys, __m128i x) noexcept {
    x = _mm_xor_si128(x, load_block(keys));
    for (int round = 1; round < rounds; ++round)
        x = _mm_aesenc_si128(x, load_block(keys + kBlock * round));
    return _mm_aesenclast_si128(x, load_block(keys + kBlock * rounds));
}
template <int rounds>
DAEL_AVX512_INLINE __m128i decrypted(const Bytes* keys, __m128i x) noexcept {
    x = _mm_xor_si128(x, load_block(keys));
    for (int round = 1; round < rounds; ++round)
        x = _mm_aesdec_si128(x, load_block(keys + kBlock * round));
    return _mm_aesdeclast_si128(x, load_block(keys + kBlock * rounds));
}

// `count` vectors of four blocks each.
template <bool encrypts, int rounds, int count>
DAEL_AVX512_INLINE void transform(const Bytes* keys, __m512i (&x)[count]) noexcept {
    __m512i key = _mm512_broadcast_i32x4(load_block(keys));
    for (__m512i& four : x) four = _mm512_xor_si512(four, key);
    for (int round = 1; round < rounds; ++round) {
        key = _mm512_broadcast_i32x4(load_block(keys + kBlock * round));
        for (__m512i& four : x)
            four = encrypts ? _mm512_aesenc_epi128(four, key) : _mm512_aesdec_epi128(four, key);
    }
    key = _mm512_broadcast_i32x4(load_block(keys + kBlock * rounds));
    for (__m512i& four : x)
        four = encrypts ? _mm512_aesenclast_epi128(four, key) : _mm512_aesdeclast_epi128(four, key);
}

// Which of three functions: `of` is a template by the number of rounds.
#define DAEL_BY_ROUNDS(rounds, of, ...)                   \
    ((rounds) == 14   ? of<14 __VA_OPT__(, ) __VA_ARGS__> \
     : (rounds) == 12 ? of<12 __VA_OPT__(, ) __VA_ARGS__> \
                      : of<10 __VA_OPT__(, ) __VA_ARGS__>)

// Calls `run` for sets of up to four vectors, of which the last one holds a byte at least: with an
// array of so many, the offset and the bytes.
template <class Run>
DAEL_AVX512_INLINE void in_sets(std::size_t size, Run run) noexcept {
    std::size_t at = 0;
    for (; size - at >= kSet; at += kSet) {
        __m512i x[4];
        run(x, at, kSet);
    }
    const std::size_t left = size - at;
    if (left > 3 * kVector) {
        __m512i x[4];
        run(x, at, left);
    } else if (left > 2 * kVector) {
        __m512i x[3];
        run(x, at, left);
    } else if (left > kVector) {
        __m512i x[2];
        run(x, at, left);
    } else if (left != 0) {
        __m512i x[1];
        run(x, at, left);
    }
}
template <int count>
DAEL_AVX512_INLINE void load_set(__m512i (&x)[count], const Bytes* from,
                                 std::size_t size) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * kVector;
        x[i] = size >= at + kVector
                   ? _mm512_loadu_si512(from + at)
                   : _mm512_maskz_loadu_epi8(first(size > at ? size - at : 0), from + at);
    }
}
template <int count>
DAEL_AVX512_INLINE void store_set(const __m512i (&x)[count], Bytes* to, std::size_t size) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = i * kVector;
        if (size >= at + kVector)
            _mm512_storeu_si512(to + at, x[i]);
        else
            _mm512_mask_storeu_epi8(to + at, first(size > at ? size - at : 0), x[i]);
    }
}

}  // namespace dael::provider::vectors
