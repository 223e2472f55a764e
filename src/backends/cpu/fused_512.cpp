// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/fused.hpp"

#include <immintrin.h>

#include <cstring>

#include "core/key_schedule.hpp"

// Of single functions, not of the file: what the compiler makes of others' inline functions here
// may end up in programs that run on lesser machines.
#define DAEL_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq,pclmul,vaes,aes,bmi2")))
#define DAEL_AVX512_INLINE DAEL_AVX512 __attribute__((always_inline)) inline

namespace dael::cpu {
namespace {
namespace wide {

using core::Packet;

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

// A sum of carry-less products that is not reduced yet: of 64-bit halves low by low, high by high,
// and the two mixed ones.
struct Sum {
    __m512i low, middle, high;
};

DAEL_AVX512_INLINE Sum nothing() noexcept {
    return {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
}

constexpr int kXor3 = 0x96;  // VPTERNLOG's table for a ^ b ^ c

// Four blocks times four powers.
DAEL_AVX512_INLINE void add_products(Sum& sum, __m512i x, __m512i h) noexcept {
    sum.low = _mm512_xor_si512(sum.low, _mm512_clmulepi64_epi128(x, h, 0x00));
    sum.high = _mm512_xor_si512(sum.high, _mm512_clmulepi64_epi128(x, h, 0x11));
    sum.middle = _mm512_ternarylogic_epi64(sum.middle, _mm512_clmulepi64_epi128(x, h, 0x01),
                                           _mm512_clmulepi64_epi128(x, h, 0x10), kXor3);
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

DAEL_AVX512_INLINE void add_product(Sum& sum, __m128i x, const std::uint8_t* h) noexcept {
    add_products(sum, _mm512_zextsi128_si512(x), _mm512_zextsi128_si512(load_block(h)));
}

enum class Do { encrypt, hash };

// Hashing has neither output nor keystream, and null takes no offset.
template <Do what, class Byte>
DAEL_AVX512_INLINE Byte* on(Byte* from, std::size_t offset) noexcept {
    return what == Do::encrypt ? from + offset : from;
}

// The next 64 bytes of ciphertext; encrypting, they are made and stored.
template <Do what>
DAEL_AVX512_INLINE __m512i take(const std::uint8_t* in, std::uint8_t* out,
                                const std::uint8_t* keystream) noexcept {
    __m512i x = _mm512_loadu_si512(in);
    if constexpr (what == Do::encrypt) {
        x = _mm512_xor_si512(x, _mm512_loadu_si512(keystream));
        _mm512_storeu_si512(out, x);
    }
    return reversed(x);
}
template <Do what>
DAEL_AVX512_INLINE __m512i take(const std::uint8_t* in, std::uint8_t* out,
                                const std::uint8_t* keystream, std::size_t size) noexcept {
    const __mmask64 mask = first_of_64(size);
    __m512i x = _mm512_maskz_loadu_epi8(mask, in);
    if constexpr (what == Do::encrypt) {
        x = _mm512_xor_si512(x, _mm512_maskz_loadu_epi8(mask, keystream));
        _mm512_mask_storeu_epi8(out, mask, x);
    }
    return reversed(x);
}

DAEL_AVX512_INLINE __m512i powers_at(const std::uint8_t* h) noexcept {
    return _mm512_loadu_si512(h);
}
DAEL_AVX512_INLINE void fetch(const std::uint8_t* line) noexcept {
    _mm_prefetch(reinterpret_cast<const char*>(line), _MM_HINT_T0);
}

// Adds the ciphertext's blocks times the powers from `h` on. `y`, hashed before, goes in with the
// first.
template <Do what>
DAEL_AVX512_INLINE void add_data(Sum& sum, const std::uint8_t* h, __m128i y, const std::uint8_t* in,
                                 std::uint8_t* out, const std::uint8_t* keystream, std::size_t size,
                                 const std::uint8_t* next) noexcept {
    __m512i before = _mm512_zextsi128_si512(y);
    std::size_t i = 0;
    for (; i + 256 <= size; i += 256) {
        if (next) {
            fetch(next + i);
            fetch(next + i + 64);
            fetch(next + i + 128);
            fetch(next + i + 192);
        }
        const __m512i x0 = take<what>(in + i, on<what>(out, i), on<what>(keystream, i));
        const __m512i x1 =
            take<what>(in + i + 64, on<what>(out, i + 64), on<what>(keystream, i + 64));
        const __m512i x2 =
            take<what>(in + i + 128, on<what>(out, i + 128), on<what>(keystream, i + 128));
        const __m512i x3 =
            take<what>(in + i + 192, on<what>(out, i + 192), on<what>(keystream, i + 192));
        add_products(sum, _mm512_xor_si512(before, x0), powers_at(h + i));
        add_products(sum, x1, powers_at(h + i + 64));
        add_products(sum, x2, powers_at(h + i + 128));
        add_products(sum, x3, powers_at(h + i + 192));
        before = _mm512_setzero_si512();
    }
    for (; i + 64 <= size; i += 64) {
        if (next) fetch(next + i);
        const __m512i x = take<what>(in + i, on<what>(out, i), on<what>(keystream, i));
        add_products(sum, _mm512_xor_si512(before, x), powers_at(h + i));
        before = _mm512_setzero_si512();
    }
    if (i < size) {
        if (next) fetch(next + i);
        const __m512i x = take<what>(in + i, on<what>(out, i), on<what>(keystream, i), size - i);
        add_products(sum, _mm512_xor_si512(before, x), powers_at(h + i));
    }
}

// GHASH of short AAD, the ciphertext and the lengths, byte-reversed.
template <Do what>
DAEL_AVX512_INLINE __m128i hash_packet(const Powers& powers, const Packet& p,
                                       const std::uint8_t* next) noexcept {
    const __m128i aad = reversed(_mm_maskz_loadu_epi8(first_of_16(p.aad_size), p.aad));
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(8 * p.aad_size), static_cast<long long>(8 * p.size));
    const std::uint8_t *in = p.in, *keystream = nullptr;
    std::uint8_t* out = p.out;
    if constexpr (what == Do::encrypt) keystream = p.keystream + kBlockSize;
    std::size_t size = p.size, blocks = blocks_of(size);
    Sum sum = nothing();
    if (blocks + 2 <= kPowers) {
        const __m512i ends = _mm512_inserti64x2(_mm512_zextsi128_si512(aad), lengths, 1);
        const __m512i h =
            _mm512_inserti64x2(_mm512_zextsi128_si512(load_block(powers.last(blocks + 2))),
                               load_block(powers.last(1)), 1);
        add_products(sum, ends, h);
        add_data<what>(sum, powers.last(blocks + 1), _mm_setzero_si128(), in, out, keystream, size,
                       next);
        return reduce(sum);
    }
    constexpr std::size_t kPart = kOfMany * kBlockSize;
    add_product(sum, aad, powers.last(kOfMany + 1));
    __m128i y = _mm_setzero_si128();
    while (blocks + 1 > kPowers || size == p.size) {
        add_data<what>(sum, powers.last(kOfMany), y, in, out, keystream, kPart, next);
        y = reduce(sum);
        sum = nothing();
        in += kPart;
        out = on<what>(out, kPart);
        if constexpr (what == Do::encrypt) keystream += kPart;
        if (next) next += kPart;
        size -= kPart;
        blocks -= kOfMany;
    }
    add_product(sum, lengths, powers.last(1));
    add_data<what>(sum, powers.last(blocks + 1), y, in, out, keystream, size, next);
    return reduce(sum);
}

// As bytes, under the mask that the keystream begins with.
DAEL_AVX512_INLINE __m128i masked(__m128i y, const Packet& p) noexcept {
    return _mm_xor_si128(reversed(y), load_block(p.keystream));
}

DAEL_AVX512_INLINE __m128i multiply(__m128i a, __m128i b) noexcept {
    Sum sum = nothing();
    add_products(sum, _mm512_zextsi128_si512(a), _mm512_zextsi128_si512(b));
    return reduce(sum);
}

DAEL_AVX512_INLINE void exclusive_or_all(std::uint8_t* out, const std::uint8_t* in,
                                         const std::uint8_t* keystream, std::size_t size) noexcept {
    std::size_t i = 0;
    for (; i + 64 <= size; i += 64)
        _mm512_storeu_si512(out + i, _mm512_xor_si512(_mm512_loadu_si512(in + i),
                                                      _mm512_loadu_si512(keystream + i)));
    if (i == size) return;
    const __mmask64 mask = first_of_64(size - i);
    _mm512_mask_storeu_epi8(out + i, mask,
                            _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, in + i),
                                             _mm512_maskz_loadu_epi8(mask, keystream + i)));
}

DAEL_AVX512 void expand(const std::uint8_t* bytes, Powers& powers) noexcept {
    const __m128i h = reversed(load_block(bytes));
    // Times x: every bit one up, and what leaves at the top comes back by the polynomial.
    const __m128i top = _mm_srai_epi32(_mm_shuffle_epi32(h, _MM_SHUFFLE(3, 3, 3, 3)), 31);
    const __m128i up = _mm_or_si128(_mm_slli_epi64(h, 1), _mm_slli_si128(_mm_srli_epi64(h, 63), 8));
    const __m128i hx = _mm_xor_si128(
        up, _mm_and_si128(top, _mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1)));
    std::memset(powers.bytes, 0, sizeof powers.bytes);
    __m128i last = hx;
    for (std::size_t i = 1; i <= kPowers; ++i) {
        store_block(powers.bytes + kBlockSize * (kPowers - i), last);
        last = multiply(last, hx);
    }
}

DAEL_AVX512 void seal(const Powers& powers, const Packet& p, const std::uint8_t* next) noexcept {
    const __m128i y = hash_packet<Do::encrypt>(powers, p, next);
    _mm_mask_storeu_epi8(p.tag, first_of_16(p.tag_size), masked(y, p));
}

DAEL_AVX512 bool open(const Powers& powers, const Packet& p, const std::uint8_t* next) noexcept {
    const __m128i tag = masked(hash_packet<Do::hash>(powers, p, next), p);
    const __mmask16 mask = first_of_16(p.tag_size);
    if (_mm_mask_cmpneq_epi8_mask(mask, tag, _mm_maskz_loadu_epi8(mask, p.tag)) != 0) return false;
    exclusive_or_all(p.out, p.in, p.keystream + kBlockSize, p.size);
    return true;
}

DAEL_AVX512 void hash(const Powers& powers, Block& y, const std::uint8_t* bytes,
                      std::size_t size) noexcept {
    __m128i hashed = reversed(load_block(y.data()));
    while (size != 0) {
        const std::size_t part = size < kOfMany * kBlockSize ? size : kOfMany * kBlockSize;
        Sum sum = nothing();
        add_data<Do::hash>(sum, powers.last(blocks_of(part)), hashed, bytes, nullptr, nullptr, part,
                           nullptr);
        hashed = reduce(sum);
        bytes += part;
        size -= part;
    }
    store_block(y.data(), reversed(hashed));
}

DAEL_AVX512 void exclusive_or(std::uint8_t* out, const std::uint8_t* in,
                              const std::uint8_t* keystream, std::size_t size) noexcept {
    exclusive_or_all(out, in, keystream, size);
}

// Sixteen counters as little-endian numbers become their keystream.
DAEL_AVX512_INLINE void encipher_counters(const std::uint8_t* round_keys, int rounds,
                                          __m512i (&x)[4]) noexcept {
    const __m512i first = _mm512_broadcast_i32x4(load_block(round_keys));
    for (__m512i& four : x) four = _mm512_xor_si512(reversed(four), first);
    for (int round = 1; round < rounds; ++round) {
        const __m512i key = _mm512_broadcast_i32x4(load_block(round_keys + 16 * round));
        for (__m512i& four : x) four = _mm512_aesenc_epi128(four, key);
    }
    const __m512i last = _mm512_broadcast_i32x4(load_block(round_keys + 16 * rounds));
    for (__m512i& four : x) four = _mm512_aesenclast_epi128(four, last);
}

DAEL_AVX512 void keystream(const std::uint8_t* round_keys, int rounds, const Block& counter,
                           std::uint8_t* out, std::size_t blocks) noexcept {
    constexpr std::size_t kTogether = 16;
    const __m512i by_four = _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4);
    __m512i next = _mm512_add_epi64(_mm512_broadcast_i32x4(reversed(load_block(counter.data()))),
                                    _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
    unsigned __int128 number = 0;
    for (const std::uint8_t byte : counter) number = number << 8 | byte;
    while (blocks != 0) {
        __m512i x[4];
        if (static_cast<std::uint64_t>(number) <= ~std::uint64_t{0} - kTogether) {
            for (__m512i& four : x) {
                four = next;
                next = _mm512_add_epi64(next, by_four);
            }
            number += kTogether;
        } else {  // the lower half of some counter wraps
            alignas(64) unsigned __int128 counters[kTogether];
            for (auto& one : counters) one = number++;
            for (std::size_t i = 0; i < 4; ++i) x[i] = _mm512_load_si512(counters + 4 * i);
            for (auto& one : counters) one = number + static_cast<std::size_t>(&one - counters);
            next = _mm512_load_si512(counters);
        }
        encipher_counters(round_keys, rounds, x);
        for (const __m512i& four : x) {
            const std::size_t count = blocks < 4 ? blocks : 4;
            _mm512_mask_storeu_epi8(out, first_of_64(count * kBlockSize), four);
            out += count * kBlockSize;
            blocks -= count;
        }
    }
}

}  // namespace wide
}  // namespace

const Fused kFused512{wide::expand, wide::seal,         wide::open,
                      wide::hash,   wide::exclusive_or, wide::keystream};

}  // namespace dael::cpu
