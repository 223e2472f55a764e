// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV by AES-NI and PCLMULQDQ, four blocks hashed as one sum, eight enciphered together;
// as siv_avx512.cpp, which says more.
#include <algorithm>
#include <cstring>

#include "backends/cpu/pclmul.hpp"
#include "backends/cpu/siv_code.hpp"
#include "core/wipe_at_end.hpp"

namespace dael::cpu::siv {
namespace aesni_code {
namespace {

using namespace pclmul;

// Less than a block, with zeros after it. Without a call, around which registers would be kept on
// the stack.
DAEL_PCLMUL_INLINE __m128i load_part(const std::uint8_t* from, std::size_t size) noexcept {
    std::uint64_t words[2]{};
    for (std::size_t i = 0; i < size; ++i)
        words[i / 8] |= static_cast<std::uint64_t>(from[i]) << (8 * (i % 8));
    return _mm_set_epi64x(static_cast<long long>(words[1]), static_cast<long long>(words[0]));
}

template <std::size_t count>
DAEL_PCLMUL_INLINE void encrypt(const std::uint8_t* keys, int rounds,
                                __m128i (&x)[count]) noexcept {
    for (__m128i& block : x) block = _mm_xor_si128(block, load(keys));
    for (int round = 1; round < rounds; ++round) {
        const __m128i key = load(keys + 16 * round);
        for (__m128i& block : x) block = _mm_aesenc_si128(block, key);
    }
    const __m128i last = load(keys + 16 * rounds);
    for (__m128i& block : x) block = _mm_aesenclast_si128(block, last);
}

// The next round key but one, or of AES-128 the next one (FIPS 197 5.2): running sums of the words,
// and to each the last word of the round key before, substituted, which AESENCLAST does to four
// equal columns.
template <bool rotates>
DAEL_PCLMUL_INLINE __m128i next_key(__m128i before, __m128i last, int rcon) noexcept {
    const __m128i word = rotates ? _mm_set1_epi32(0x0c0f0e0d) : _mm_set1_epi32(0x0f0e0d0c);
    __m128i sums = _mm_xor_si128(before, _mm_slli_si128(before, 4));
    sums = _mm_xor_si128(sums, _mm_slli_si128(sums, 8));
    return _mm_aesenclast_si128(_mm_shuffle_epi8(last, word),
                                _mm_xor_si128(sums, _mm_set1_epi32(rcon)));
}
DAEL_PCLMUL_INLINE void expand(Keys& keys, __m128i first, __m128i second) noexcept {
    store(keys.round_keys[0], first);
    int rcon = 1;
    if (keys.rounds == 10) {
        for (int round = 1; round <= 10; ++round) {
            first = next_key<true>(first, first, rcon);
            rcon = rcon << 1 ^ (rcon >> 7) * 0x11b;
            store(keys.round_keys[round], first);
        }
        return;
    }
    store(keys.round_keys[1], second);
    for (int round = 2; round <= 14; round += 2, rcon <<= 1) {
        first = next_key<true>(first, second, rcon);
        store(keys.round_keys[round], first);
        if (round == 14) break;
        second = next_key<false>(second, first, 0);
        store(keys.round_keys[round + 1], second);
    }
}

DAEL_PCLMUL_INLINE __m128i nonce_of(const std::uint8_t* nonce) noexcept {
    std::uint32_t last;
    std::memcpy(&last, nonce + 8, sizeof last);
    return _mm_insert_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(nonce)),
                            static_cast<int>(last), 2);
}

DAEL_PCLMUL void derive(const core::KeySchedule& key, const std::uint8_t* nonce, std::uint64_t,
                        Keys& keys) noexcept {
    const __m128i block = _mm_slli_si128(nonce_of(nonce), 4);
    __m128i x[6];
    for (int i = 0; i < 6; ++i) x[i] = _mm_insert_epi32(block, i, 0);
    encrypt(key.encrypt.data(), key.rounds, x);
    keys.rounds = key.rounds;
    expand(keys, _mm_unpacklo_epi64(x[2], x[3]), _mm_unpacklo_epi64(x[4], x[5]));
    const __m128i h = _mm_unpacklo_epi64(x[0], x[1]), h2 = multiply(h, h);
    store(keys.near[1], multiply(h2, h2));
    store(keys.near[2], multiply(h2, h));
    store(keys.near[3], h2);
    store(keys.near[4], h);
}

// POLYVAL, on top of `y`, of any number of bytes, filled up with zeros to whole blocks.
DAEL_PCLMUL_INLINE __m128i add_bytes(const Keys& keys, __m128i y, const std::uint8_t* bytes,
                                     std::size_t size) noexcept {
    for (; size >= 4 * kBlockSize; bytes += 4 * kBlockSize, size -= 4 * kBlockSize) {
        Sum sum = nothing();
        add_product(sum, _mm_xor_si128(y, load(bytes)), load(keys.near[1]));
        for (std::size_t i = 1; i < 4; ++i)
            add_product(sum, load(bytes + kBlockSize * i), load(keys.near[1 + i]));
        y = reduce(sum);
    }
    for (; size >= kBlockSize; bytes += kBlockSize, size -= kBlockSize)
        y = multiply(_mm_xor_si128(y, load(bytes)), load(keys.near[4]));
    if (size != 0) y = multiply(_mm_xor_si128(y, load_part(bytes, size)), load(keys.near[4]));
    return y;
}

DAEL_PCLMUL Block tag(const Keys& keys, const std::uint8_t* nonce, const Message& m,
                      const std::uint8_t* plaintext) noexcept {
    __m128i y = add_bytes(keys, _mm_setzero_si128(), m.aad, m.aad_size);
    y = add_bytes(keys, y, plaintext, m.size);
    y = _mm_xor_si128(y, _mm_set_epi64x(static_cast<long long>(8 * m.size),
                                        static_cast<long long>(8 * m.aad_size)));
    y = _mm_xor_si128(multiply(y, load(keys.near[4])), nonce_of(nonce));
    __m128i x[1] = {_mm_and_si128(y, _mm_set_epi32(0x7fffffff, -1, -1, -1))};
    encrypt(keys.round_keys[0], keys.rounds, x);
    Block made;
    store(made.data(), x[0]);
    return made;
}

DAEL_PCLMUL void crypt(const Keys& keys, const std::uint8_t* tag, const Message& m) noexcept {
    constexpr std::size_t kTogether = 8;
    __m128i next = _mm_or_si128(load(tag), _mm_set_epi32(static_cast<int>(0x80000000), 0, 0, 0));
    alignas(16) std::uint8_t keystream[kTogether * kBlockSize];
    const core::WipeAtEnd wiped(keystream);
    for (std::size_t at = 0; at < m.size; at += sizeof keystream) {
        __m128i x[kTogether];
        for (__m128i& block : x) {
            block = next;
            next = _mm_add_epi32(next, _mm_set_epi32(0, 0, 0, 1));
        }
        encrypt(keys.round_keys[0], keys.rounds, x);
        if (m.size - at >= sizeof keystream) {
            for (std::size_t i = 0; i < kTogether; ++i)
                store(m.out + at + kBlockSize * i,
                      _mm_xor_si128(x[i], load(m.in + at + kBlockSize * i)));
            continue;
        }
        for (std::size_t i = 0; i < kTogether; ++i) store(keystream + kBlockSize * i, x[i]);
        for (std::size_t i = 0; i < m.size - at; ++i) m.out[at + i] = m.in[at + i] ^ keystream[i];
    }
}

Block open(const Keys& keys, const std::uint8_t* nonce, const Message& m) noexcept {
    crypt(keys, m.tag, m);
    return tag(keys, nonce, m, m.out);
}

}  // namespace
}  // namespace aesni_code

const Form kAesni{true, aesni_code::derive, aesni_code::tag, aesni_code::crypt, aesni_code::open};

}  // namespace dael::cpu::siv
