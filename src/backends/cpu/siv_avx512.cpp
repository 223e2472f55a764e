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

// Read each time: a compiler that remembers powers over a loop does so on the stack.
DAEL_AVX512_INLINE __m512i in_each_lane(const std::uint8_t* block) noexcept {
    asm("" : "+r"(block));
    return _mm512_broadcast_i32x4(load_block(block));
}

// The sum of a block's halves, in both of them.
DAEL_AVX512_INLINE __m512i with_halves(__m512i x) noexcept {
    return _mm512_xor_si512(x, _mm512_shuffle_epi32(x, _MM_PERM_BADC));
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
    store_block(keys.near[0], _mm512_castsi512_si128(multiply_each(near, h1)));
    _mm512_storeu_si512(keys.near[1], near);
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
    if (size <= (kOfSum + 1) * kVector) return;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kOfSum; i += 4)
        _mm512_store_si512(keys.far_sums[i], with_halves(_mm512_load_si512(keys.far[i])));
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

// Four messages' blocks, a power of each in a vector: a vector of powers for each message.
DAEL_AVX512_INLINE void turn(__m512i (&x)[4]) noexcept {
    const __m512i low01 = _mm512_shuffle_i64x2(x[0], x[1], 0x44);
    const __m512i low23 = _mm512_shuffle_i64x2(x[2], x[3], 0x44);
    const __m512i high01 = _mm512_shuffle_i64x2(x[0], x[1], 0xee);
    const __m512i high23 = _mm512_shuffle_i64x2(x[2], x[3], 0xee);
    x[0] = _mm512_shuffle_i64x2(low01, low23, 0x88);
    x[1] = _mm512_shuffle_i64x2(low01, low23, 0xdd);
    x[2] = _mm512_shuffle_i64x2(high01, high23, 0x88);
    x[3] = _mm512_shuffle_i64x2(high01, high23, 0xdd);
}
DAEL_AVX512_INLINE void store_each(Keys (&keys)[kFour], int round, __m512i key) noexcept {
    store_block(keys[0].round_keys[round], _mm512_castsi512_si128(key));
    store_block(keys[1].round_keys[round], _mm512_extracti64x2_epi64(key, 1));
    store_block(keys[2].round_keys[round], _mm512_extracti64x2_epi64(key, 2));
    store_block(keys[3].round_keys[round], _mm512_extracti64x2_epi64(key, 3));
}

// As make_powers(), of four messages, whose units of work hide each other's latency.
DAEL_AVX512_INLINE void make_powers_of_four(Keys (&keys)[kFour], __m512i h1,
                                            std::uint64_t size) noexcept {
    const __m512i h2 = multiply_each(h1, h1);
    const __m512i h3 = multiply_each(h2, h1), h4 = multiply_each(h2, h2);
    const __m512i h5 = multiply_each(h4, h1);
    store_block(keys[0].near[0], _mm512_castsi512_si128(h5));
    store_block(keys[1].near[0], _mm512_extracti64x2_epi64(h5, 1));
    store_block(keys[2].near[0], _mm512_extracti64x2_epi64(h5, 2));
    store_block(keys[3].near[0], _mm512_extracti64x2_epi64(h5, 3));
    __m512i x[4] = {h4, h3, h2, h1};
    turn(x);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kFour; ++i) _mm512_storeu_si512(keys[i].near[1], x[i]);
    // Powers of H^4, the first four; and those times H^16, and so on.
    __m512i step[4];
    step[3] = h4;
    step[2] = multiply_each(h4, h4);
    step[1] = multiply_each(step[2], h4);
    step[0] = multiply_each(step[2], step[2]);
    const __m512i h16 = step[0];
    for (std::size_t at = kOfSum - 4;; at -= 4) {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < 4; ++i) x[i] = step[i];
        turn(x);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kFour; ++i) {
            _mm512_store_si512(keys[i].far[at], x[i]);
            if (size > (kOfSum + 1) * kVector)
                _mm512_store_si512(keys[i].far_sums[at], with_halves(x[i]));
        }
        if (at == 0 || size <= 5 * kVector) break;
#pragma GCC unroll 4
        for (__m512i& power : step) power = multiply_each(power, h16);
    }
}

template <int rounds>
DAEL_AVX512 void derive_four_by(const core::KeySchedule& key, const Message* messages,
                                std::uint64_t size, Keys (&keys)[kFour]) noexcept {
    const RoundKeys<rounds> master{key.encrypt.data()};
    constexpr std::size_t kOfMessage = rounds == 10 ? 1 : 2;  // vectors: four blocks, or six
    const __m512i numbers = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
    __m512i x[kOfMessage * kFour];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kFour; ++i) {
        const std::uint8_t* const nonce = messages[i].start.data();
        const __m128i block = _mm_bslli_si128(_mm_maskz_loadu_epi8(first_of_16(12), nonce), 4);
        x[i] = _mm512_or_si512(_mm512_broadcast_i32x4(block), numbers);
        if constexpr (kOfMessage == 2)
            x[kFour + i] =
                _mm512_add_epi32(x[i], _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, 0, 4)));
        keys[i].rounds = rounds;
    }
    transform<Direction::encrypt>(master, x);
    // The first halves of two blocks are a key, or half of one.
    const __m512i first_halves = _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i of01 = _mm512_permutex2var_epi64(x[0], first_halves, x[1]);
    const __m512i of23 = _mm512_permutex2var_epi64(x[2], first_halves, x[3]);
    const __m512i h = _mm512_shuffle_i64x2(of01, of23, 0x88);
    __m512i first = _mm512_shuffle_i64x2(of01, of23, 0xdd);
    store_each(keys, 0, first);
    int rcon = 1;
    if constexpr (kOfMessage == 1) {
        for (int round = 1; round <= rounds; ++round) {
            first = next_keys<true>(first, first, rcon);
            rcon = rcon << 1 ^ (rcon >> 7) * 0x11b;
            store_each(keys, round, first);
        }
    } else {
        __m512i second =
            _mm512_shuffle_i64x2(_mm512_permutex2var_epi64(x[4], first_halves, x[5]),
                                 _mm512_permutex2var_epi64(x[6], first_halves, x[7]), 0x88);
        store_each(keys, 1, second);
        for (int round = 2; round <= rounds; round += 2, rcon <<= 1) {
            first = next_keys<true>(first, second, rcon);
            store_each(keys, round, first);
            if (round == rounds) break;
            second = next_keys<false>(second, first, 0);
            store_each(keys, round + 1, second);
        }
    }
    make_powers_of_four(keys, h, size);
}
void derive_four(const core::KeySchedule& key, const Message* messages, std::uint64_t size,
                 KeysOfCall& keys) noexcept {
    if (key.rounds == 10) return derive_four_by<10>(key, messages, size, keys.of);
    derive_four_by<14>(key, messages, size, keys.of);
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
// The same of kOfSum vectors, by Karatsuba's three products, since one unit of the processor makes
// them all. It makes shuffles too: one does for the halves of two vectors.
DAEL_AVX512_INLINE __m512i add_many(const Keys& keys, __m512i before,
                                    const std::uint8_t* bytes) noexcept {
    constexpr __mmask8 kLow = 0x55;
    Sum sum = nothing();
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kOfSum; i += 2) {
        __m512i x0 = _mm512_loadu_si512(bytes + kVector * i);
        const __m512i x1 = _mm512_loadu_si512(bytes + kVector * (i + 1));
        if (i == 0) x0 = _mm512_xor_si512(x0, before);
        // The sum of halves of x0 in the lower one, of x1 in the upper one.
        const __m512i halves =
            _mm512_xor_si512(_mm512_mask_blend_epi64(kLow, x1, x0), _mm512_alignr_epi8(x1, x0, 8));
        const __m512i h0 = in_each_lane(keys.far[i]), h1 = in_each_lane(keys.far[i + 1]);
        sum.low = _mm512_ternarylogic_epi64(sum.low, _mm512_clmulepi64_epi128(x0, h0, 0x00),
                                            _mm512_clmulepi64_epi128(x1, h1, 0x00), kXor3);
        sum.high = _mm512_ternarylogic_epi64(sum.high, _mm512_clmulepi64_epi128(x0, h0, 0x11),
                                             _mm512_clmulepi64_epi128(x1, h1, 0x11), kXor3);
        sum.middle = _mm512_ternarylogic_epi64(
            sum.middle, _mm512_clmulepi64_epi128(halves, in_each_lane(keys.far_sums[i]), 0x00),
            _mm512_clmulepi64_epi128(halves, in_each_lane(keys.far_sums[i + 1]), 0x01), kXor3);
    }
    sum.middle = _mm512_ternarylogic_epi64(sum.middle, sum.low, sum.high, kXor3);
    return reduced(sum);
}
// A vector, of which there are `size` bytes, with the lanes' powers: what was hashed so far.
// `ends`: with the block of sizes after it.
template <bool ends>
DAEL_AVX512_INLINE __m128i add_last(const Keys& keys, __m512i before, const std::uint8_t* bytes,
                                    std::size_t size, __m128i sizes) noexcept {
    const __m512i x = _mm512_maskz_loadu_epi8(first_of_64(size), bytes);
    const std::size_t blocks = (size + kBlockSize - 1) / kBlockSize + (ends ? 1 : 0);
    Sum sum = nothing();
    add_products(sum, _mm512_xor_si512(x, before), _mm512_loadu_si512(keys.near[5 - blocks]));
    if (ends) add_product(sum, sizes, keys.near[4]);
    return reduce(sum);
}
// POLYVAL of more than no bytes, filled up with zeros to whole blocks, on top of what add_last()
// has made of others; or of what add_vectors() has, if there is at least a whole vector.
template <bool ends>
DAEL_AVX512_INLINE __m128i add_bytes(const Keys& keys, __m512i before, const std::uint8_t* bytes,
                                     std::size_t size, __m128i sizes) noexcept {
    // At least a whole vector is left, so that what is for the next one finds it.
    for (constexpr std::size_t kPart = kOfSum * kVector; size > kPart + kVector;
         bytes += kPart, size -= kPart)
        before = add_many(keys, before, bytes);
    const std::size_t last = (size - 1) % kVector + 1;
    const std::size_t whole = (size - last) / kVector;
    if (last <= kVector - kBlockSize && whole != 0) {  // whose lanes are not those of the others
        if (whole > 1) before = add_vectors(keys, before, bytes, whole - 1);
        before = _mm512_zextsi128_si512(
            add_last<false>(keys, before, bytes + kVector * (whole - 1), kVector, sizes));
    } else if (whole != 0) {
        before = add_vectors(keys, before, bytes, whole);
    }
    return add_last<ends>(keys, before, bytes + kVector * whole, last, sizes);
}

DAEL_AVX512_INLINE __m128i sizes_of(const Message& m) noexcept {
    return _mm_set_epi64x(static_cast<long long>(8 * m.size),
                          static_cast<long long>(8 * m.aad_size));
}
DAEL_AVX512 __m512i hash_aad(const Keys& keys, const Message& m) noexcept {
    if (m.aad_size == 0) return _mm512_setzero_si512();
    return _mm512_zextsi128_si512(
        add_bytes<false>(keys, _mm512_setzero_si512(), m.aad, m.aad_size, sizes_of(m)));
}
// Of what POLYVAL has made of the message.
template <int rounds>
DAEL_AVX512_INLINE Block tag_of(const Keys& keys, const std::uint8_t* nonce, __m128i y) noexcept {
    y = _mm_xor_si128(y, _mm_maskz_loadu_epi8(first_of_16(12), nonce));
    y = _mm_and_si128(y, _mm_set_epi32(0x7fffffff, -1, -1, -1));
    Block made;
    store_block(made.data(), encrypted(RoundKeys<rounds>{keys.round_keys[0]}, y));
    return made;
}
template <int rounds>
DAEL_AVX512 Block tag_by(const Keys& keys, const std::uint8_t* nonce, const Message& m,
                         const std::uint8_t* plaintext) noexcept {
    const __m512i before = hash_aad(keys, m);
    if (m.size != 0)
        return tag_of<rounds>(keys, nonce,
                              add_bytes<true>(keys, before, plaintext, m.size, sizes_of(m)));
    Sum sum = nothing();
    add_product(sum, _mm_xor_si128(_mm512_castsi512_si128(before), sizes_of(m)), keys.near[4]);
    return tag_of<rounds>(keys, nonce, reduce(sum));
}
Block tag(const Keys& keys, const std::uint8_t* nonce, const Message& m,
          const std::uint8_t* plaintext) noexcept {
    return keys.rounds == 10 ? tag_by<10>(keys, nonce, m, plaintext)
                             : tag_by<14>(keys, nonce, m, plaintext);
}

// Counters of 32 bits, little-endian, in front; they wrap and carry nothing on.
struct Counters {
    __m512i next;
    static DAEL_AVX512_INLINE Counters at(const std::uint8_t* tag) noexcept {
        const __m128i first =
            _mm_or_si128(load_block(tag), _mm_set_epi32(static_cast<int>(0x80000000), 0, 0, 0));
        return {_mm512_add_epi32(_mm512_broadcast_i32x4(first),
                                 _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0))};
    }
    template <std::size_t count>
    DAEL_AVX512_INLINE void take(__m512i (&x)[count]) noexcept {
#pragma GCC unroll 8
        for (__m512i& four : x) {
            four = next;
            next = _mm512_add_epi32(next, _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, 0, 4)));
        }
    }
};
constexpr std::size_t kTogether = 8, kGroup = kTogether * kVector;

// A whole group with its keystream; and what comes of it.
DAEL_AVX512_INLINE void finish(const __m512i (&keystream)[kTogether], const std::uint8_t* in,
                               std::uint8_t* out, __m512i (&result)[kTogether]) noexcept {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kTogether; ++i) {
        result[i] = _mm512_xor_si512(keystream[i], _mm512_loadu_si512(in + kVector * i));
        _mm512_storeu_si512(out + kVector * i, result[i]);
    }
}
template <int rounds>
DAEL_AVX512_INLINE void crypt_rest(const RoundKeys<rounds>& round_keys, Counters& counters,
                                   const std::uint8_t* in, std::uint8_t* out,
                                   std::size_t size) noexcept {
    __m512i x[kTogether];
    for (; size >= kGroup; in += kGroup, out += kGroup, size -= kGroup) {
        counters.take(x);
        transform<Direction::encrypt>(round_keys, x);
        finish(x, in, out, x);
    }
    if (size == 0) return;
    counters.take(x);
    transform<Direction::encrypt>(round_keys, x);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kTogether; ++i) {
        const std::size_t at = kVector * i;
        if (at >= size) break;
        const __mmask64 mask = first_of_64(size - at < kVector ? size - at : kVector);
        _mm512_mask_storeu_epi8(out + at, mask,
                                _mm512_xor_si512(x[i], _mm512_maskz_loadu_epi8(mask, in + at)));
    }
}
template <int rounds>
DAEL_AVX512 void crypt_by(const Keys& keys, const std::uint8_t* tag, const Message& m) noexcept {
    Counters counters = Counters::at(tag);
    crypt_rest(RoundKeys<rounds>{keys.round_keys[0]}, counters, m.in, m.out, m.size);
}
void crypt(const Keys& keys, const std::uint8_t* tag, const Message& m) noexcept {
    keys.rounds == 10 ? crypt_by<10>(keys, tag, m) : crypt_by<14>(keys, tag, m);
}

// Powers of Keys::far, for encipher(), which counts vectors of them.
struct Far {
    const std::uint8_t* at;
    DAEL_AVX512_INLINE Far operator+(std::size_t bytes) const noexcept {
        return {at + bytes / (kVector / kBlockSize)};
    }
};
DAEL_AVX512_INLINE void add_two(Sum& sum, __m512i x0, __m512i x1, Far h) noexcept {
    add_two_products(sum, x0, in_each_lane(h.at), x1, in_each_lane(h.at + kBlockSize));
}

// A group is hashed between the rounds of the next one.
template <int rounds>
DAEL_AVX512 Block open_by(const Keys& keys, const std::uint8_t* nonce, const Message& m) noexcept {
    const RoundKeys<rounds> round_keys{keys.round_keys[0]};
    Counters counters = Counters::at(m.tag);
    const Far far{keys.far[kOfSum - kTogether]};
    const std::uint8_t* in = m.in;
    std::uint8_t* out = m.out;
    std::size_t size = m.size;
    __m512i before = hash_aad(keys, m);
    // At least a whole vector is left, and a byte.
    if (size > kGroup + kVector) {
        __m512i keystream[kTogether], waiting[kTogether];
        Sum sum = nothing();
        gcm_avx512::encipher<false>(round_keys, counters, keystream, sum, keystream, far);
        for (;;) {
            finish(keystream, in, out, waiting);
            waiting[0] = _mm512_xor_si512(waiting[0], before);
            in += kGroup;
            out += kGroup;
            size -= kGroup;
            sum = nothing();
            if (size <= kGroup + kVector) break;
            gcm_avx512::encipher<true>(round_keys, counters, keystream, sum, waiting, far);
            before = reduced(sum);
        }
        gcm_avx512::add_all(sum, waiting, far);
        before = reduced(sum);
    }
    crypt_rest(round_keys, counters, in, out, size);
    if (size != 0)
        return tag_of<rounds>(keys, nonce, add_bytes<true>(keys, before, out, size, sizes_of(m)));
    return tag_by<rounds>(keys, nonce, m, nullptr);
}
Block open(const Keys& keys, const std::uint8_t* nonce, const Message& m) noexcept {
    return keys.rounds == 10 ? open_by<10>(keys, nonce, m) : open_by<14>(keys, nonce, m);
}

}  // namespace
}  // namespace avx512_code

const Form kAvx512{false,
                   avx512_code::derive,
                   avx512_code::tag,
                   avx512_code::crypt,
                   avx512_code::open,
                   avx512_code::derive_four};

}  // namespace dael::cpu::siv
