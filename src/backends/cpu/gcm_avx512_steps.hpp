// SPDX-License-Identifier: Apache-2.0
// The steps of AES-GCM by AVX-512 that messages by themselves (gcm_avx512.cpp) and in lists
// (gcm_avx512_lists.cpp) have in common. All of it is inlined.
#pragma once

#include <cstring>
#include <type_traits>

#include "backends/cpu/avx512.hpp"
#include "backends/cpu/gcm_avx512.hpp"

namespace dael::cpu::gcm_avx512 {

// After a lambda's parameters.
#define DAEL_AVX512_LAMBDA DAEL_AVX512 __attribute__((always_inline))

using namespace avx512;

// Blocks that are hashed as one sum and reduced once, where there are more of them.
constexpr std::size_t kSpan = kOfMany * kBlockSize;  // bytes
// Data that is enciphered together: four vectors, whose rounds hide each other's latency.
constexpr std::size_t kTogether = 4 * kVector, kManyTogether = 8 * kVector;
static_assert(kSpan % kManyTogether == 0 && kPowers % 4 == 0);

// Counter blocks from `first` on, which count in their last 32 bits and wrap there (SP
// 800-38D 6.2).
struct Counters {
    __m512i next;        // four, as in memory
    std::uint32_t last;  // the last 32 bits of the first of them
    DAEL_AVX512_INLINE explicit Counters(const Block& first) noexcept
        : Counters(first, _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0), 0) {}
    // Those after J0.
    static DAEL_AVX512_INLINE Counters of_data(const Block& j0) noexcept {
        return {j0, _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1), 1};
    }
    template <std::size_t count>
    DAEL_AVX512_INLINE void take(__m512i (&x)[count]) noexcept {
        // Mostly the last byte counts alone.
        const bool alone = (last & 0xff) + 4 * count + 3 < 256;
        last += 4 * count;
        if (alone) [[likely]] {
#pragma GCC unroll 8
            for (__m512i& four : x) {
                four = next;
                next = _mm512_add_epi32(
                    next, _mm512_set_epi32(0x4000000, 0, 0, 0, 0x4000000, 0, 0, 0, 0x4000000, 0, 0,
                                           0, 0x4000000, 0, 0, 0));
            }
        } else {
            __m512i number = reversed(next);
#pragma GCC unroll 8
            for (__m512i& four : x) {
                four = reversed(number);
                number = _mm512_add_epi32(
                    number, _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4));
            }
            next = reversed(number);
        }
    }
    static DAEL_AVX512_INLINE __m128i after(const Block& first, std::size_t blocks) noexcept {
        return reversed(_mm_add_epi32(reversed(load_block(first.data())),
                                      _mm_set_epi32(0, 0, 0, static_cast<int>(blocks))));
    }

  private:
    DAEL_AVX512_INLINE Counters(const Block& from, __m512i lanes, std::uint32_t ahead) noexcept
        : next(reversed(
              _mm512_add_epi32(_mm512_broadcast_i32x4(reversed(load_block(from.data()))), lanes))) {
        std::memcpy(&last, from.data() + 12, 4);
        last = __builtin_bswap32(last) + ahead;
    }
};

// Enciphers vectors of counters, and hashes others of ciphertext meanwhile, if `hashes`: a few
// products with each round, so that the units for both have work all the time, also where two
// threads share a core. `h`: powers in memory, or whatever else add_two() takes them from.
template <bool hashes, int rounds, std::size_t stride, std::size_t count, std::size_t waits,
          class PowersAt, class Counting>
DAEL_AVX512_INLINE void encipher(const RoundKeys<rounds, stride>& schedule, Counting& counters,
                                 __m512i (&to)[count], Sum& sum, const __m512i (&x)[waits],
                                 PowersAt h) noexcept {
    constexpr int kEach = 8 / (waits / 2);  // rounds to a pair of vectors
    const auto keys = schedule.here();
    counters.take(to);
#pragma GCC unroll 8
    for (__m512i& four : to) four = _mm512_xor_si512(four, keys[0]);
#pragma GCC unroll 16
    for (int round = 1; round < rounds; ++round) {
#pragma GCC unroll 8
        for (__m512i& four : to) four = _mm512_aesenc_epi128(four, keys[round]);
        if (hashes && round % kEach == 0 && round / kEach <= static_cast<int>(waits) / 2) {
            const auto pair = static_cast<std::size_t>(2 * (round / kEach - 1));
            add_two(sum, x[pair], x[pair + 1], h + kVector * pair);
        }
    }
#pragma GCC unroll 8
    for (__m512i& four : to) four = _mm512_aesenclast_epi128(four, keys[rounds]);
}
template <std::size_t count, class PowersAt>
DAEL_AVX512_INLINE void add_all(Sum& sum, const __m512i (&x)[count], PowersAt h) noexcept {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < count; i += 2) add_two(sum, x[i], x[i + 1], h + kVector * i);
}

// Whole vectors of data, of which the ciphertext then waits, byte-reversed, to be hashed.
template <Direction direction, std::size_t count>
DAEL_AVX512_INLINE void finish(const __m512i (&keystream)[count], const std::uint8_t* in,
                               std::uint8_t* out, __m512i (&waiting)[count]) noexcept {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < count; ++i) {
        const __m512i data = _mm512_loadu_si512(in + kVector * i);
        const __m512i result = _mm512_xor_si512(data, keystream[i]);
        _mm512_storeu_si512(out + kVector * i, result);
        waiting[i] = reversed(direction == Direction::encrypt ? result : data);
    }
}

// As finish(), but the last vector has its end somewhere.
template <Direction direction, std::size_t count>
DAEL_AVX512_INLINE void finish_part(const __m512i (&keystream)[count], const std::uint8_t* in,
                                    std::uint8_t* out, std::size_t size,
                                    __m512i (&ciphertext)[count]) noexcept {
    const __mmask64 mask = first_of_64((size - 1) % kVector + 1);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < count; ++i) {
        const bool last = i + 1 == count;
        const __m512i data = last ? _mm512_maskz_loadu_epi8(mask, in + kVector * i)
                                  : _mm512_loadu_si512(in + kVector * i);
        __m512i result = _mm512_xor_si512(data, keystream[i]);
        if (last) {
            _mm512_mask_storeu_epi8(out + kVector * i, mask, result);
            result = _mm512_maskz_mov_epi8(mask, result);
        } else {
            _mm512_storeu_si512(out + kVector * i, result);
        }
        ciphertext[i] = reversed(direction == Direction::encrypt ? result : data);
    }
}
// Calls run() with the number of vectors, at most four.
template <class Run>
DAEL_AVX512_INLINE void by_vectors(std::size_t size, Run run) noexcept {
    switch ((size - 1) / kVector) {
        case 0:
            return run(std::integral_constant<std::size_t, 1>{});
        case 1:
            return run(std::integral_constant<std::size_t, 2>{});
        case 2:
            return run(std::integral_constant<std::size_t, 3>{});
        default:
            return run(std::integral_constant<std::size_t, 4>{});
    }
}

DAEL_AVX512_INLINE __m128i lengths(std::uint64_t aad_size, std::uint64_t size) noexcept {
    return _mm_set_epi64x(static_cast<long long>(8 * aad_size), static_cast<long long>(8 * size));
}

template <class Run>
inline void for_rounds(int rounds, Run run) noexcept {
    if (rounds == 10) return run(std::integral_constant<int, 10>{});
    if (rounds == 12) return run(std::integral_constant<int, 12>{});
    run(std::integral_constant<int, 14>{});
}

}  // namespace dael::cpu::gcm_avx512
