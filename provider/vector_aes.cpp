// SPDX-License-Identifier: Apache-2.0
#include "vector_aes.hpp"

#include <cstdlib>
#include <cstring>

namespace dael::provider {
namespace {

using Bytes = unsigned char;
using Number = unsigned __int128;

Number number_of(const Bytes* counter) noexcept {
    std::uint64_t high, low;
    std::memcpy(&high, counter, 8);
    std::memcpy(&low, counter + 8, 8);
    return static_cast<Number>(__builtin_bswap64(high)) << 64 | __builtin_bswap64(low);
}
void put_number(Bytes* counter, Number number) noexcept {
    const std::uint64_t high = __builtin_bswap64(static_cast<std::uint64_t>(number >> 64)),
                        low = __builtin_bswap64(static_cast<std::uint64_t>(number));
    std::memcpy(counter, &high, 8);
    std::memcpy(counter + 8, &low, 8);
}

}  // namespace

void count_on(unsigned char* counter, std::uint64_t blocks) noexcept {
    put_number(counter, number_of(counter) + blocks);
}

}  // namespace dael::provider

#if defined(__x86_64__)
#include "vector_code.hpp"
#include "vectors/units.hpp"

namespace dael::provider {
namespace {

using namespace vectors;

// FIPS 197 5.2 by AESKEYGENASSIST, which gives SubWord(w) and RotWord(SubWord(w)) ^ Rcon of two
// words at once. Each new word is the exclusive or of all before it in the last key, and of that.
DAEL_AVX512_INLINE __m128i sums(__m128i words) noexcept {
    words = _mm_xor_si128(words, _mm_slli_si128(words, 4));
    return _mm_xor_si128(words, _mm_slli_si128(words, 8));
}
template <int rcon>
DAEL_AVX512_INLINE __m128i rotated(__m128i from) noexcept {
    return _mm_shuffle_epi32(_mm_aeskeygenassist_si128(from, rcon), 0xff);
}
template <int rcon>
DAEL_AVX512_INLINE __m128i next_128(__m128i last) noexcept {
    return _mm_xor_si128(sums(last), rotated<rcon>(last));
}
DAEL_AVX512_INLINE void expand_128(Bytes* to, const Bytes* key) noexcept {
    __m128i k = load_block(key);
    store_block(to, k);
    store_block(to + 16, k = next_128<0x01>(k));
    store_block(to + 32, k = next_128<0x02>(k));
    store_block(to + 48, k = next_128<0x04>(k));
    store_block(to + 64, k = next_128<0x08>(k));
    store_block(to + 80, k = next_128<0x10>(k));
    store_block(to + 96, k = next_128<0x20>(k));
    store_block(to + 112, k = next_128<0x40>(k));
    store_block(to + 128, k = next_128<0x80>(k));
    store_block(to + 144, k = next_128<0x1b>(k));
    store_block(to + 160, k = next_128<0x36>(k));
}

// Six words a step: `low` are four, the lower half of `high` two.
template <int rcon>
DAEL_AVX512_INLINE void next_192(__m128i& low, __m128i& high) noexcept {
    const __m128i from = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(high, rcon), 0x55);
    low = _mm_xor_si128(sums(low), from);
    high =
        _mm_xor_si128(_mm_xor_si128(high, _mm_slli_si128(high, 4)), _mm_shuffle_epi32(low, 0xff));
}
DAEL_AVX512_INLINE void store_half(Bytes* to, __m128i words) noexcept {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), words);
}
DAEL_AVX512_INLINE void expand_192(Bytes* to, const Bytes* key) noexcept {
    __m128i low = load_block(key),
            high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(key + 16));
    const auto put = [&](int step) DAEL_AVX512_LAMBDA {
        store_block(to + 24 * step, low);
        if (step < 8) store_half(to + 24 * step + 16, high);
    };
    put(0);
    next_192<0x01>(low, high), put(1);
    next_192<0x02>(low, high), put(2);
    next_192<0x04>(low, high), put(3);
    next_192<0x08>(low, high), put(4);
    next_192<0x10>(low, high), put(5);
    next_192<0x20>(low, high), put(6);
    next_192<0x40>(low, high), put(7);
    next_192<0x80>(low, high), put(8);
}

template <int rcon>
DAEL_AVX512_INLINE void next_256(Bytes* to, __m128i& even, __m128i& odd) noexcept {
    even = _mm_xor_si128(sums(even), rotated<rcon>(odd));
    store_block(to, even);
    if constexpr (rcon == 0x40) return;
    // The other half takes SubWord of the new one, neither rotated nor with Rcon.
    odd = _mm_xor_si128(sums(odd), _mm_shuffle_epi32(_mm_aeskeygenassist_si128(even, 0), 0xaa));
    store_block(to + 16, odd);
}
DAEL_AVX512_INLINE void expand_256(Bytes* to, const Bytes* key) noexcept {
    __m128i even = load_block(key), odd = load_block(key + 16);
    store_block(to, even);
    store_block(to + 16, odd);
    next_256<0x01>(to + 32, even, odd);
    next_256<0x02>(to + 64, even, odd);
    next_256<0x04>(to + 96, even, odd);
    next_256<0x08>(to + 128, even, odd);
    next_256<0x10>(to + 160, even, odd);
    next_256<0x20>(to + 192, even, odd);
    next_256<0x40>(to + 224, even, odd);
}

DAEL_AVX512 void expand_all(Schedule& to, const Bytes* key, std::size_t size) noexcept {
    to.rounds = static_cast<int>(size / 4) + 6;
    if (size == 16)
        expand_128(to.keys, key);
    else if (size == 24)
        expand_192(to.keys, key);
    else
        expand_256(to.keys, key);
}
// In place: the first with the last, and so on, those between by AESIMC.
DAEL_AVX512 void invert(Schedule& to) noexcept {
    Bytes *low = to.keys, *high = to.keys + kBlock * to.rounds;
    const __m128i first = load_block(low);
    store_block(low, load_block(high));
    store_block(high, first);
    for (low += kBlock, high -= kBlock; low < high; low += kBlock, high -= kBlock) {
        const __m128i key = _mm_aesimc_si128(load_block(low));
        store_block(low, _mm_aesimc_si128(load_block(high)));
        store_block(high, key);
    }
    store_block(low, _mm_aesimc_si128(load_block(low)));  // the middle one: rounds are even
}

// Vectors of 256 bits go through twice as fast as whole ones.
template <int rounds, bool encrypts>
DAEL_AVX512_INLINE void ecb_two(const Bytes* keys, const Bytes* in, Bytes* out) noexcept {
    __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    x = _mm256_xor_si256(x, _mm256_broadcastsi128_si256(load_block(keys)));
    for (int round = 1; round < rounds; ++round) {
        const __m256i key = _mm256_broadcastsi128_si256(load_block(keys + kBlock * round));
        x = encrypts ? _mm256_aesenc_epi128(x, key) : _mm256_aesdec_epi128(x, key);
    }
    const __m256i key = _mm256_broadcastsi128_si256(load_block(keys + kBlock * rounds));
    x = encrypts ? _mm256_aesenclast_epi128(x, key) : _mm256_aesdeclast_epi128(x, key);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), x);
}
template <int rounds, bool encrypts>
DAEL_AVX512 void ecb_all(const Bytes* keys, Bytes*, const Bytes* in, Bytes* out,
                         std::size_t size) noexcept {
    if (size == kBlock)
        return store_block(out, encrypts ? encrypted<rounds>(keys, load_block(in))
                                         : decrypted<rounds>(keys, load_block(in)));
    if (size == 2 * kBlock) return ecb_two<rounds, encrypts>(keys, in, out);
    in_sets(size, [&](auto& x, std::size_t at, std::size_t some) DAEL_AVX512_LAMBDA {
        load_set(x, in + at, some);
        transform<encrypts, rounds>(keys, x);
        store_set(x, out + at, some);
    });
}

template <int rounds>
DAEL_AVX512 void cbc_encrypt(const Bytes* keys, Bytes* iv, const Bytes* in, Bytes* out,
                             std::size_t size) noexcept {
    __m128i chain = load_block(iv);
    for (std::size_t at = 0; at < size; at += kBlock) {
        chain = encrypted<rounds>(keys, _mm_xor_si128(chain, load_block(in + at)));
        store_block(out + at, chain);
    }
    store_block(iv, chain);
}

// Of ciphertext in vectors, the blocks before each of theirs; `last` is the one before the first,
// in the upper lane, and so comes out for the next set. Never from memory: in place that is gone.
template <int count>
DAEL_AVX512_INLINE void blocks_before(const __m512i (&x)[count], __m512i (&before)[count],
                                      __m512i& last) noexcept {
    for (int i = 0; i < count; ++i) {
        before[i] = _mm512_alignr_epi64(x[i], last, 6);
        last = x[i];
    }
}
DAEL_AVX512_INLINE __m512i in_upper_lane(const Bytes* block) noexcept {
    return _mm512_inserti64x2(_mm512_setzero_si512(), load_block(block), 3);
}

template <int rounds>
DAEL_AVX512 void cbc_decrypt(const Bytes* keys, Bytes* iv, const Bytes* in, Bytes* out,
                             std::size_t size) noexcept {
    if (size == 0) return;
    if (size == kBlock) {
        const __m128i block = load_block(in);
        store_block(out, _mm_xor_si128(decrypted<rounds>(keys, block), load_block(iv)));
        return store_block(iv, block);
    }
    __m512i last = in_upper_lane(iv);
    store_block(iv, load_block(in + size - kBlock));
    in_sets(size, [&](auto& x, std::size_t at, std::size_t some) DAEL_AVX512_LAMBDA {
        constexpr int kCount = sizeof x / sizeof *x;
        __m512i before[kCount];
        load_set(x, in + at, some);
        blocks_before(x, before, last);
        transform<false, rounds>(keys, x);
        for (int i = 0; i < kCount; ++i) x[i] = _mm512_xor_si512(x[i], before[i]);
        store_set(x, out + at, some);
    });
}

template <int rounds>
DAEL_AVX512 void cfb_encrypt(const Bytes* keys, Bytes* iv, const Bytes* in, Bytes* out,
                             std::size_t size) noexcept {
    __m128i chain = load_block(iv);
    std::size_t at = 0;
    for (; size - at >= kBlock; at += kBlock) {
        chain = _mm_xor_si128(encrypted<rounds>(keys, chain), load_block(in + at));
        store_block(out + at, chain);
    }
    store_block(iv, chain);
    if (at == size) return;
    const auto mask = static_cast<__mmask16>(first(size - at));
    const __m128i x =
        _mm_xor_si128(encrypted<rounds>(keys, chain), _mm_maskz_loadu_epi8(mask, in + at));
    _mm_mask_storeu_epi8(out + at, mask, x);
}

template <int rounds>
DAEL_AVX512 void cfb_decrypt(const Bytes* keys, Bytes* iv, const Bytes* in, Bytes* out,
                             std::size_t size) noexcept {
    __m512i last = in_upper_lane(iv);
    if (size >= kBlock) store_block(iv, load_block(in + size / kBlock * kBlock - kBlock));
    in_sets(size, [&](auto& x, std::size_t at, std::size_t some) DAEL_AVX512_LAMBDA {
        constexpr int kCount = sizeof x / sizeof *x;
        __m512i masks[kCount];
        load_set(x, in + at, some);
        blocks_before(x, masks, last);
        transform<true, rounds>(keys, masks);
        for (int i = 0; i < kCount; ++i) x[i] = _mm512_xor_si512(x[i], masks[i]);
        store_set(x, out + at, some);
    });
}

template <int rounds>
DAEL_AVX512 void ctr_all(const Bytes* keys, Bytes* counter, const Bytes* in, Bytes* out,
                         std::size_t size) noexcept {
    Number number = number_of(counter);
    if (size <= kBlock) {
        const auto mask = static_cast<__mmask16>(first(size));
        // From two registers: what was stored in halves is not there at once for a load of it all.
        const __m128i first_block =
            _mm_set_epi64x(static_cast<long long>(number >> 64), static_cast<long long>(number));
        const __m128i x = _mm_xor_si128(encrypted<rounds>(keys, reversed(first_block)),
                                        _mm_maskz_loadu_epi8(mask, in));
        _mm_mask_storeu_epi8(out, mask, x);
        if (size == kBlock) put_number(counter, number + 1);
        return;
    }
    in_sets(size, [&](auto& x, std::size_t at, std::size_t some) DAEL_AVX512_LAMBDA {
        constexpr int kCount = sizeof x / sizeof *x;
        const auto low = static_cast<std::uint64_t>(number);
        if (low <= ~std::uint64_t{0} - 4 * kCount) {
            __m512i next = _mm512_add_epi64(
                _mm512_broadcast_i32x4(_mm_set_epi64x(static_cast<long long>(number >> 64),
                                                      static_cast<long long>(low))),
                _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
            for (__m512i& four : x) {
                four = reversed(next);
                next = _mm512_add_epi64(next, _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4));
            }
        } else {  // the lower half of some counter wraps
            alignas(64) Number counters[4 * kCount];
            for (int i = 0; i < 4 * kCount; ++i) counters[i] = number + static_cast<unsigned>(i);
            for (int i = 0; i < kCount; ++i) x[i] = reversed(_mm512_load_si512(counters + 4 * i));
        }
        number += some / kBlock;
        transform<true, rounds>(keys, x);
        __m512i data[kCount];
        load_set(data, in + at, some);
        for (int i = 0; i < kCount; ++i) x[i] = _mm512_xor_si512(x[i], data[i]);
        store_set(x, out + at, some);
    });
    put_number(counter, number);
}

template <int rounds>
DAEL_AVX512 void one_block(const Bytes* keys, const Bytes* in, Bytes* out) noexcept {
    store_block(out, encrypted<rounds>(keys, load_block(in)));
}

}  // namespace

bool vector_units() noexcept {
    const Units there = units();
    return there.avx512 && there.vaes && there.aes && there.pclmul && there.bmi2;
}

void expand(Schedule& to, const unsigned char* key, std::size_t size, bool inverse) noexcept {
    expand_all(to, key, size);
    if (inverse) invert(to);
}
void encrypt_block(const Schedule& keys, const unsigned char* in, unsigned char* out) noexcept {
    DAEL_BY_ROUNDS(keys.rounds, one_block)(keys.keys, in, out);
}
Code code_for(Kind kind, bool encrypts, int rounds) noexcept {
    switch (kind) {
        case Kind::ecb:
            return encrypts ? DAEL_BY_ROUNDS(rounds, ecb_all, true)
                            : DAEL_BY_ROUNDS(rounds, ecb_all, false);
        case Kind::cbc:
            return encrypts ? DAEL_BY_ROUNDS(rounds, cbc_encrypt)
                            : DAEL_BY_ROUNDS(rounds, cbc_decrypt);
        case Kind::cfb:
            return encrypts ? DAEL_BY_ROUNDS(rounds, cfb_encrypt)
                            : DAEL_BY_ROUNDS(rounds, cfb_decrypt);
        default:
            return DAEL_BY_ROUNDS(rounds, ctr_all);
    }
}

}  // namespace dael::provider

#else

namespace dael::provider {

bool vector_units() noexcept {
    return false;
}
// Never called, as promised.
void expand(Schedule&, const unsigned char*, std::size_t, bool) noexcept {
    std::abort();
}
void encrypt_block(const Schedule&, const unsigned char*, unsigned char*) noexcept {
    std::abort();
}
Code code_for(Kind, bool, int) noexcept {
    std::abort();
}

}  // namespace dael::provider
#endif
