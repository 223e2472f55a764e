// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/avx512.hpp"
#include "backends/cpu/gcm_avx512.hpp"
#include "backends/cpu/modes_avx512.hpp"
#include "backends/cpu/xor_ghash.hpp"

namespace dael::cpu {
namespace {

using core::CipherPacket;
using namespace avx512;

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
        add_two(sum, _mm512_xor_si512(before, x0), x1, h + i);
        add_two(sum, x2, x3, h + i + 128);
        before = _mm512_setzero_si512();
    }
    for (; i + 64 <= size; i += 64) {
        if (next) fetch(next + i);
        const __m512i x = take<what>(in + i, on<what>(out, i), on<what>(keystream, i));
        add_products(sum, _mm512_xor_si512(before, x), _mm512_loadu_si512(h + i));
        before = _mm512_setzero_si512();
    }
    if (i < size) {
        if (next) fetch(next + i);
        const __m512i x = take<what>(in + i, on<what>(out, i), on<what>(keystream, i), size - i);
        add_products(sum, _mm512_xor_si512(before, x), _mm512_loadu_si512(h + i));
    }
}

// GHASH of short AAD, the ciphertext and the lengths, byte-reversed.
template <Do what>
DAEL_AVX512_INLINE __m128i hash_packet(const Powers& powers, const CipherPacket& p) noexcept {
    // A masked load of nothing is right at any address, and slow at those that nobody has.
    const __m128i aad = p.aad_size == 0
                            ? _mm_setzero_si128()
                            : reversed(_mm_maskz_loadu_epi8(first_of_16(p.aad_size), p.aad));
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(8 * p.aad_size), static_cast<long long>(8 * p.size));
    const std::uint8_t *in = p.in, *keystream = nullptr, *next = p.soon;
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
DAEL_AVX512_INLINE __m128i masked(__m128i y, const CipherPacket& p) noexcept {
    return _mm_xor_si128(reversed(y), load_block(p.keystream));
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

DAEL_AVX512 void seal(const Powers& powers, const CipherPacket& p) noexcept {
    const __m128i y = hash_packet<Do::encrypt>(powers, p);
    _mm_mask_storeu_epi8(p.tag, first_of_16(p.tag_size), masked(y, p));
}

DAEL_AVX512 bool open(const Powers& powers, const CipherPacket& p) noexcept {
    const __m128i tag = masked(hash_packet<Do::hash>(powers, p), p);
    const __mmask16 mask = first_of_16(p.tag_size);
    if (_mm_mask_cmpneq_epi8_mask(mask, tag, _mm_maskz_loadu_epi8(mask, p.tag)) != 0) return false;
    exclusive_or_all(p.out, p.in, p.keystream + kBlockSize, p.size);
    return true;
}

DAEL_AVX512 void exclusive_or(std::uint8_t* out, const std::uint8_t* in,
                              const std::uint8_t* keystream, std::size_t size) noexcept {
    exclusive_or_all(out, in, keystream, size);
}

void expand(const core::KeySchedule& key, Powers& powers) noexcept {
    gcm_avx512::expand(key, powers, kPowers);
}

void keystream(const core::KeySchedule& key, const Block& counter, std::uint8_t* out,
               std::size_t blocks) noexcept {
    Message zeros{nullptr, out, blocks * kBlockSize};
    zeros.start = counter;
    run_avx512(Mode::ctr, Direction::encrypt, key, zeros);
}

}  // namespace

const XorGhash kXorGhashAvx512{
    expand, seal, open, gcm_avx512::hash, exclusive_or, keystream, gcm_avx512::message};

}  // namespace dael::cpu
