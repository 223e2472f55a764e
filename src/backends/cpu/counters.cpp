// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/counters.hpp"

#include <immintrin.h>

#define DAEL_AES_NI __attribute__((target("sse4.1,aes")))

namespace dael::cpu::counters {

// Eight blocks at a time, since a round takes several clocks and one can begin in each.
DAEL_AES_NI void keystream(const std::uint8_t* round_keys, int rounds, const Block& counter,
                           std::uint8_t* out, std::size_t blocks) noexcept {
    constexpr std::size_t kTogether = 8;
    const auto* const keys = reinterpret_cast<const __m128i*>(round_keys);
    const __m128i backwards = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    unsigned __int128 number = 0;
    for (const std::uint8_t byte : counter) number = number << 8 | byte;
    while (blocks != 0) {
        __m128i x[kTogether];
        for (__m128i& one : x) {
            one = _mm_set_epi64x(static_cast<long long>(number >> 64),
                                 static_cast<long long>(number));
            one = _mm_xor_si128(_mm_shuffle_epi8(one, backwards), _mm_loadu_si128(keys));
            ++number;
        }
        for (int round = 1; round < rounds; ++round) {
            const __m128i key = _mm_loadu_si128(keys + round);
            for (__m128i& one : x) one = _mm_aesenc_si128(one, key);
        }
        const __m128i last = _mm_loadu_si128(keys + rounds);
        for (__m128i& one : x) {
            if (blocks == 0) break;
            _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_aesenclast_si128(one, last));
            out += kBlockSize;
            --blocks;
        }
    }
}

void exclusive_or(std::uint8_t* out, const std::uint8_t* in, const std::uint8_t* keystream,
                  std::size_t size) noexcept {
    for (std::size_t i = 0; i < size; ++i) out[i] = in[i] ^ keystream[i];
}

}  // namespace dael::cpu::counters
