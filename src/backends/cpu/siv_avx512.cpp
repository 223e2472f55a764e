// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV by AVX-512. Its POLYVAL is GHASH without what GHASH's order of bits costs: blocks are
// little-endian numbers as they lie in memory, and H is not multiplied by x (RFC 8452, appendix A).
#include <cstring>

#include "backends/cpu/gcm_avx512_steps.hpp"
#include "backends/cpu/siv_code.hpp"

namespace dael::cpu::siv {
namespace avx512_code {
namespace {

using namespace avx512;

// Vectors that are hashed as one sum: each by a power of H^4, lane by lane.
constexpr std::size_t kOfSum = 16;

DAEL_AVX512_INLINE __m512i in_each_lane(const std::uint8_t* block) noexcept {
    return _mm512_broadcast_i32x4(load_block(block));
}

DAEL_AVX512_INLINE void expand(Keys& keys, __m512i first, __m512i second) noexcept {
    const auto keep = [&](int round, __m512i key) DAEL_AVX512_LAMBDA {
        store_block(keys.round_keys[round], _mm512_castsi512_si128(key));
    };
    keep(0, first);
    int rcon = 1;
    if (keys.rounds == 10) {
        for (int round = 1; round <= 10; ++round) {
            first = next_keys<true>(first, first, rcon);
            rcon = rcon << 1 ^ (rcon >> 7) * 0x11b;
            keep(round, first);
        }
        return;
    }
    keep(1, second);
    for (int round = 2; round <= 14; round += 2, rcon <<= 1) {
        first = next_keys<true>(first, second, rcon);
        keep(round, first);
        if (round == 14) break;
        second = next_keys<false>(second, first, 0);
        keep(round + 1, second);
    }
}

DAEL_AVX512_INLINE void make_powers(Keys& keys, __m128i h, std::uint64_t size) noexcept {
    const __m512i h1 = _mm512_broadcast_i32x4(h);
    const __m512i h2 = multiply_each(h1, h1);
    // H^4 to H^1 by way of H^2, H, and those times H^2.
    const __m512i low = _mm512_shuffle_i64x2(h2, h1, 0x00);     // H^2, H^2, H, H
    const __m512i pair = _mm512_shuffle_i64x2(low, low, 0x88);  // H^2, H, H^2, H
    const __m512i near = _mm512_shuffle_i64x2(multiply_each(pair, h2), pair, 0x44);
    _mm512_store_si512(keys.near, near);
    const __m512i q = _mm512_shuffle_i64x2(near, near, 0x00);
    const __m512i q2 = multiply_each(q, q);
    const __m512i q_low = _mm512_shuffle_i64x2(q2, q, 0x00);
    const __m512i q_pair = _mm512_shuffle_i64x2(q_low, q_low, 0x88);
    const __m512i to4 = _mm512_shuffle_i64x2(multiply_each(q_pair, q2), q_pair, 0x44);
    _mm512_store_si512(keys.far[12], to4);
    if (size <= 5 * kVector) return;
    const __m512i q4 = _mm512_shuffle_i64x2(to4, to4, 0x00);
    const __m512i to8 = multiply_each(to4, q4), q8 = _mm512_shuffle_i64x2(to8, to8, 0x00);
    _mm512_store_si512(keys.far[8], to8);
    _mm512_store_si512(keys.far[4], multiply_each(to4, q8));
    _mm512_store_si512(keys.far[0], multiply_each(to8, q8));
}

template <int rounds>
DAEL_AVX512 void derive_by(const core::KeySchedule& key, const std::uint8_t* nonce,
                           std::uint64_t size, Keys& keys) noexcept {
    const RoundKeys<rounds> master{key.encrypt.data()};
    // LE32(number) || nonce, of which the first halves of the ciphers are keys.
    const __m128i block = _mm_bslli_si128(_mm_maskz_loadu_epi8(first_of_16(12), nonce), 4);
    const __m512i numbers = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
    __m512i x[2] = {_mm512_or_si512(_mm512_broadcast_i32x4(block), numbers),
                    _mm512_setzero_si512()};
    x[1] = _mm512_add_epi32(x[0], _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, 0, 4)));
    transform<Direction::encrypt>(master, x);
    // Quarters 0, 2, 4 and 6 of each.
    const __m512i halves =
        _mm512_permutex2var_epi64(x[0], _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), x[1]);
    keys.rounds = rounds;
    expand(keys, _mm512_broadcast_i32x4(_mm512_extracti64x2_epi64(halves, 1)),
           _mm512_broadcast_i32x4(_mm512_extracti64x2_epi64(halves, 2)));
    make_powers(keys, _mm512_castsi512_si128(halves), size);
}
void derive(const core::KeySchedule& key, const std::uint8_t* nonce, std::uint64_t size,
            Keys& keys) noexcept {
    if (key.rounds == 10) return derive_by<10>(key, nonce, size, keys);
    derive_by<14>(key, nonce, size, keys);
}

// `count` whole vectors, each times a power of H^4, the last one times H^4; what comes of it is for
// the next vector.
DAEL_AVX512_INLINE __m512i add_vectors(const Keys& keys, __m512i before, const std::uint8_t* bytes,
                                       std::size_t count) noexcept {
    const std::uint8_t* h = keys.far[kOfSum - count];
    Sum sum = nothing();
    std::size_t i = 0;
    if (count % 2 != 0) {
        add_products(sum, _mm512_xor_si512(_mm512_loadu_si512(bytes), before), in_each_lane(h));
        before = _mm512_setzero_si512();
        i = 1;
    }
    for (; i < count; i += 2) {
        add_two_products(sum, _mm512_xor_si512(_mm512_loadu_si512(bytes + kVector * i), before),
                         in_each_lane(h + kBlockSize * i),
                         _mm512_loadu_si512(bytes + kVector * (i + 1)),
                         in_each_lane(h + kBlockSize * (i + 1)));
        before = _mm512_setzero_si512();
    }
    return reduced(sum);
}
// A vector, of which there are `size` bytes, with the lanes' powers: what was hashed so far.
DAEL_AVX512_INLINE __m128i add_last(const Keys& keys, __m512i before, const std::uint8_t* bytes,
                                    std::size_t size) noexcept {
    const __m512i x = _mm512_maskz_loadu_epi8(first_of_64(size), bytes);
    Sum sum = nothing();
    add_products(sum, _mm512_xor_si512(x, before),
                 _mm512_loadu_si512(keys.near[4 - (size + kBlockSize - 1) / kBlockSize]));
    return reduce(sum);
}
// POLYVAL, on top of `y`, of any number of bytes, filled up with zeros to whole blocks.
DAEL_AVX512 __m128i add_bytes(const Keys& keys, __m128i y, const std::uint8_t* bytes,
                              std::size_t size) noexcept {
    if (size == 0) return y;
    __m512i before = _mm512_zextsi128_si512(y);
    // At least a whole vector is left, so that what is for the next one finds it.
    for (constexpr std::size_t kPart = kOfSum * kVector; size > kPart + kVector;
         bytes += kPart, size -= kPart)
        before = add_vectors(keys, before, bytes, kOfSum);
    const std::size_t last = (size - 1) % kVector + 1;
    std::size_t whole = (size - last) / kVector;
    if (last <= kVector - kBlockSize && whole != 0) {  // whose lanes are not those of the others
        if (whole > 1) before = add_vectors(keys, before, bytes, whole - 1);
        before =
            _mm512_zextsi128_si512(add_last(keys, before, bytes + kVector * (whole - 1), kVector));
    } else if (whole != 0) {
        before = add_vectors(keys, before, bytes, whole);
    }
    return add_last(keys, before, bytes + kVector * whole, last);
}

template <int rounds>
DAEL_AVX512 Block tag_by(const Keys& keys, const std::uint8_t* nonce, const Message& m,
                         const std::uint8_t* plaintext) noexcept {
    __m128i y = add_bytes(keys, _mm_setzero_si128(), m.aad, m.aad_size);
    y = add_bytes(keys, y, plaintext, m.size);
    const __m128i sizes =
        _mm_set_epi64x(static_cast<long long>(8 * m.size), static_cast<long long>(8 * m.aad_size));
    Sum sum = nothing();
    add_product(sum, _mm_xor_si128(y, sizes), keys.near[3]);
    y = _mm_xor_si128(reduce(sum), _mm_maskz_loadu_epi8(first_of_16(12), nonce));
    y = _mm_and_si128(y, _mm_set_epi32(0x7fffffff, -1, -1, -1));
    Block made;
    store_block(made.data(), encrypted(RoundKeys<rounds>{keys.round_keys[0]}, y));
    return made;
}
Block tag(const Keys& keys, const std::uint8_t* nonce, const Message& m,
          const std::uint8_t* plaintext) noexcept {
    return keys.rounds == 10 ? tag_by<10>(keys, nonce, m, plaintext)
                             : tag_by<14>(keys, nonce, m, plaintext);
}

// Counters of 32 bits, little-endian, in front; they wrap and carry nothing on.
template <int rounds>
DAEL_AVX512 void crypt_by(const Keys& keys, const std::uint8_t* tag, const Message& m) noexcept {
    constexpr std::size_t kTogether = 8;
    const RoundKeys<rounds> round_keys{keys.round_keys[0]};
    const __m512i four_more = _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, 0, 4));
    __m512i next = _mm512_broadcast_i32x4(
        _mm_or_si128(load_block(tag), _mm_set_epi32(static_cast<int>(0x80000000), 0, 0, 0)));
    next = _mm512_add_epi32(next, _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0));
    const std::uint8_t* in = m.in;
    std::uint8_t* out = m.out;
    for (std::size_t left = m.size; left != 0;) {
        __m512i x[kTogether];
#pragma GCC unroll 8
        for (__m512i& four : x) {
            four = next;
            next = _mm512_add_epi32(next, four_more);
        }
        transform<Direction::encrypt>(round_keys, x);
        if (left >= kTogether * kVector) {
#pragma GCC unroll 8
            for (std::size_t i = 0; i < kTogether; ++i)
                _mm512_storeu_si512(out + kVector * i,
                                    _mm512_xor_si512(x[i], _mm512_loadu_si512(in + kVector * i)));
            in += kTogether * kVector;
            out += kTogether * kVector;
            left -= kTogether * kVector;
            continue;
        }
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kTogether; ++i) {
            const std::size_t before = kVector * i;
            if (before >= left) break;
            const __mmask64 mask = first_of_64(left - before < kVector ? left - before : kVector);
            _mm512_mask_storeu_epi8(
                out + before, mask,
                _mm512_xor_si512(x[i], _mm512_maskz_loadu_epi8(mask, in + before)));
        }
        left = 0;
    }
}
void crypt(const Keys& keys, const std::uint8_t* tag, const Message& m) noexcept {
    keys.rounds == 10 ? crypt_by<10>(keys, tag, m) : crypt_by<14>(keys, tag, m);
}

}  // namespace
}  // namespace avx512_code

const Form kAvx512{avx512_code::derive, avx512_code::tag, avx512_code::crypt};

}  // namespace dael::cpu::siv
