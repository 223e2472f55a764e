// SPDX-License-Identifier: Apache-2.0
#include "vector_gcm.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include "vector_code.hpp"

namespace dael::provider {
namespace {

using namespace vectors;

constexpr std::uint64_t kMaxData = (std::uint64_t{1} << 36) - 32;

// Put together in a register: what was stored in parts is not there at once for a load of it all.
DAEL_AVX512_INLINE __m128i counter_block(const Bytes* nonce, std::uint32_t counter) noexcept {
    std::uint64_t first_8;
    int last_4;
    std::memcpy(&first_8, nonce, 8);
    std::memcpy(&last_4, nonce + 8, 4);
    return _mm_set_epi64x(static_cast<long long>(std::uint64_t{__builtin_bswap32(counter)} << 32 |
                                                 static_cast<std::uint32_t>(last_4)),
                          static_cast<long long>(first_8));
}

DAEL_AVX512_INLINE __m512i products(__m512i x, __m512i h) noexcept {
    Sum sum = nothing();
    add_products(sum, x, h);
    return reduced(sum);
}

// `y` and then `blocks` blocks, byte-reversed in vectors and zeros behind, on the powers from
// H^blocks.
template <int count>
DAEL_AVX512_INLINE __m128i hashed(__m128i y, const Bytes* powers,
                                  const __m512i (&x)[count]) noexcept {
    Sum sum = nothing();
    add_products(sum, _mm512_xor_si512(x[0], _mm512_zextsi128_si512(y)),
                 _mm512_loadu_si512(powers));
    for (int i = 1; i < count; ++i)
        add_products(sum, x[i], _mm512_loadu_si512(powers + i * kVector));
    return lanes_together(reduced(sum));
}

template <int rounds>
DAEL_AVX512 void hash_subkey(const Bytes* aes, Bytes* to) noexcept {
    store_block(to, times_x(reversed(encrypted<rounds>(aes, _mm_setzero_si128()))));
}

// H^4, ..., H^1 from H, and H^16, ..., H^5 from those; they end at `end`. In registers: a load of
// what was stored in smaller parts would wait for them.
DAEL_AVX512 void make_four(Bytes* end) noexcept {
    const __m512i h = _mm512_broadcast_i32x4(load_block(end - kBlock));
    const __m512i h2 = products(h, h);
    const __m512i h2_h = _mm512_mask_blend_epi64(0x33, h, h2);
    _mm512_storeu_si512(end - kVector, _mm512_mask_blend_epi64(0x0f, h2_h, products(h2_h, h2)));
}
DAEL_AVX512 void make_rest(Bytes* end) noexcept {
    const __m512i to_4 = _mm512_loadu_si512(end - kVector);
    const __m512i to_8 = products(to_4, _mm512_shuffle_i64x2(to_4, to_4, 0));
    const __m512i h8 = _mm512_shuffle_i64x2(to_8, to_8, 0);
    _mm512_storeu_si512(end - 2 * kVector, to_8);
    _mm512_storeu_si512(end - 3 * kVector, products(to_4, h8));
    _mm512_storeu_si512(end - 4 * kVector, products(to_8, h8));
}

DAEL_AVX512 void absorb_all(Bytes* y, const Bytes* powers_end, const Bytes* in,
                            std::size_t size) noexcept {
    __m128i hash = load_block(y);
    in_sets(size, [&](auto& x, std::size_t at, std::size_t some) DAEL_AVX512_LAMBDA {
        load_set(x, in + at, some);
        for (auto& four : x) four = reversed(four);
        hash = hashed(hash, powers_end - some, x);
    });
    store_block(y, hash);
}

// Counter blocks of whole sets, 16 at a time. They are counted as they lie in memory, in their last
// byte, as long as that does not wrap: a shuffle less for each vector.
class SetCounters {
  public:
    DAEL_AVX512_INLINE SetCounters(const Bytes* nonce, std::uint32_t counter) noexcept
        : first_(reversed(counter_block(nonce, 0))), counter_(counter), next_(four(counter)) {}

    DAEL_AVX512_INLINE void take(__m512i (&x)[4]) noexcept {
        const bool wraps = (counter_ & 0xff) > 0xf0;  // the counter is no secret
        for (int i = 0; i < 4; ++i)
            x[i] = wraps ? four(counter_ + 4 * static_cast<unsigned>(i))
                         : _mm512_add_epi32(next_, in_last_byte(4 * i));
        counter_ += 16;
        next_ = (counter_ & 0xff) < 16 || wraps ? four(counter_)
                                                : _mm512_add_epi32(next_, in_last_byte(16));
    }

  private:
    DAEL_AVX512_INLINE static __m512i in_last_byte(int n) noexcept {
        return _mm512_maskz_set1_epi32(0x8888, n << 24);
    }
    // Counters count modulo 2^32.
    DAEL_AVX512_INLINE __m512i four(std::uint32_t counter) const noexcept {
        const __m512i lanes = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
        const __m512i counters = _mm512_maskz_set1_epi32(0x1111, static_cast<int>(counter));
        return reversed(
            _mm512_add_epi32(_mm512_add_epi32(_mm512_broadcast_i32x4(first_), lanes), counters));
    }

    __m128i first_;  // byte-reversed, with a counter of 0
    std::uint32_t counter_;
    __m512i next_;
};

// Whole sets, two at least. The four lanes hash a quarter of the blocks each, every fourth, and are
// brought together at the end. A set is hashed between the rounds of the next one, so that the
// units for both have work all the time, also where two threads share a core.
template <int rounds, bool encrypts>
DAEL_AVX512_INLINE __m128i crypt_sets(const Bytes* aes, const Bytes* powers_end, const Bytes* nonce,
                                      std::uint32_t counter, __m128i y, const Bytes* in, Bytes* out,
                                      std::size_t sets) noexcept {
    const Bytes* const powers = powers_end - kSet;
    SetCounters counters(nonce, counter);
    __m512i waiting[4];  // ciphertext, byte-reversed
    Sum sum = nothing();
    const auto make = [&]<bool hashes>(std::bool_constant<hashes>) DAEL_AVX512_LAMBDA {
        __m512i x[4];
        counters.take(x);
        __m512i key = _mm512_broadcast_i32x4(load_block(aes));
        for (__m512i& four : x) four = _mm512_xor_si512(four, key);
#pragma GCC unroll 16
        for (int round = 1; round < rounds; ++round) {
            key = _mm512_broadcast_i32x4(load_block(aes + kBlock * round));
            for (__m512i& four : x) four = _mm512_aesenc_epi128(four, key);
            if (hashes && (round == 3 || round == 6)) {
                const int i = round == 3 ? 0 : 2;
                add_two_products(
                    sum, waiting[i], _mm512_broadcast_i32x4(load_block(powers + i * kVector)),
                    waiting[i + 1], _mm512_broadcast_i32x4(load_block(powers + (i + 1) * kVector)));
            }
        }
        key = _mm512_broadcast_i32x4(load_block(aes + kBlock * rounds));
        for (int i = 0; i < 4; ++i) {
            const __m512i data = _mm512_loadu_si512(in + i * kVector);
            x[i] = _mm512_xor_si512(_mm512_aesenclast_epi128(x[i], key), data);
            _mm512_storeu_si512(out + i * kVector, x[i]);
            waiting[i] = reversed(encrypts ? x[i] : data);
        }
        in += kSet;
        out += kSet;
    };
    make(std::false_type{});
    waiting[0] = _mm512_xor_si512(waiting[0], _mm512_zextsi128_si512(y));
    for (std::size_t left = sets - 1; left > 0; --left) {
        sum = nothing();
        make(std::true_type{});
        waiting[0] = _mm512_xor_si512(waiting[0], reduced(sum));
    }
    return hashed(_mm_setzero_si128(), powers, waiting);
}

// Counters count modulo 2^32. What is hashed are whole blocks; ciphertext behind them goes to
// `part`, with zeros.
template <int rounds, bool encrypts>
DAEL_AVX512 void crypt_all(const Bytes* aes, const Bytes* powers_end, const Bytes* nonce,
                           std::uint32_t counter, Bytes* y, const Bytes* in, Bytes* out,
                           std::size_t size, Bytes* part) noexcept {
    __m128i hash = load_block(y);
    if (const std::size_t sets = size / kSet; sets >= 2) {
        hash = crypt_sets<rounds, encrypts>(aes, powers_end, nonce, counter, hash, in, out, sets);
        counter += static_cast<std::uint32_t>(sets * (kSet / kBlock));
        in += sets * kSet;
        out += sets * kSet;
        size -= sets * kSet;
    }
    __m512i next =
        _mm512_add_epi32(_mm512_broadcast_i32x4(reversed(counter_block(nonce, counter))),
                         _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0));
    const __m512i by_four = _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4);
    in_sets(size, [&](auto& x, std::size_t at, std::size_t some) DAEL_AVX512_LAMBDA {
        constexpr int kCount = sizeof x / sizeof *x;
        for (auto& four : x) {
            four = reversed(next);
            next = _mm512_add_epi32(next, by_four);
        }
        transform<true, rounds>(aes, x);
        __m512i data[kCount];
        load_set(data, in + at, some);
        for (int i = 0; i < kCount; ++i) x[i] = _mm512_xor_si512(x[i], data[i]);
        store_set(x, out + at, some);
        const std::size_t whole = some / kBlock * kBlock;
        if (whole != some)
            for (std::size_t i = 0; i < kCount; ++i)
                if (i == whole / kVector) {
                    const __m512i lane = _mm512_add_epi64(
                        _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0),
                        _mm512_set1_epi64(static_cast<long long>(whole % kVector / 8)));
                    store_block(part,
                                _mm_maskz_mov_epi8(static_cast<__mmask16>(first(some - whole)),
                                                   _mm512_castsi512_si128(_mm512_permutexvar_epi64(
                                                       lane, encrypts ? x[i] : data[i]))));
                }
        if (whole == 0) return;
        for (std::size_t i = 0; i < kCount; ++i) {
            const __m512i ciphertext = reversed(encrypts ? x[i] : data[i]);
            const std::size_t before = i * kVector;
            x[i] =
                whole >= before + kVector
                    ? ciphertext
                    : _mm512_maskz_mov_epi8(first(whole > before ? whole - before : 0), ciphertext);
        }
        hash = hashed(hash, powers_end - whole, x);
    });
    store_block(y, hash);
}

DAEL_AVX512_INLINE __m128i hashed_block(__m128i y, __m128i x, const Bytes* powers_end) noexcept {
    const __m128i polynomial = _mm_set1_epi64x(static_cast<long long>(0xc200000000000000));
    const __m128i h = load_block(powers_end - kBlock);
    x = _mm_xor_si128(x, y);
    const __m128i low = _mm_clmulepi64_si128(x, h, 0x00), high = _mm_clmulepi64_si128(x, h, 0x11);
    __m128i middle =
        _mm_xor_si128(_mm_clmulepi64_si128(x, h, 0x01), _mm_clmulepi64_si128(x, h, 0x10));
    middle = _mm_ternarylogic_epi64(middle, _mm_shuffle_epi32(low, 0x4e),
                                    _mm_clmulepi64_si128(low, polynomial, 0x00), kXor3);
    return _mm_ternarylogic_epi64(high, _mm_shuffle_epi32(middle, 0x4e),
                                  _mm_clmulepi64_si128(middle, polynomial, 0x00), kXor3);
}
DAEL_AVX512 void absorb_block(Bytes* y, const Bytes* powers_end, const Bytes* in) noexcept {
    store_block(y, hashed_block(load_block(y), reversed(load_block(in)), powers_end));
}
template <int rounds, bool encrypts>
DAEL_AVX512 void crypt_block(const Bytes* aes, const Bytes* powers_end, const Bytes* nonce,
                             std::uint32_t counter, Bytes* y, const Bytes* in,
                             Bytes* out) noexcept {
    const __m128i data = load_block(in);
    const __m128i x = _mm_xor_si128(encrypted<rounds>(aes, counter_block(nonce, counter)), data);
    store_block(out, x);
    store_block(y, hashed_block(load_block(y), reversed(encrypts ? x : data), powers_end));
}

template <int rounds>
DAEL_AVX512 void keystream_block(const Bytes* aes, const Bytes* nonce, std::uint32_t counter,
                                 Bytes* out) noexcept {
    store_block(out, encrypted<rounds>(aes, counter_block(nonce, counter)));
}

template <int rounds>
DAEL_AVX512 void finish(const Bytes* aes, const Bytes* powers_end, const Bytes* nonce,
                        const Bytes* y, const Bytes* part, bool begun, std::uint64_t aad_bits,
                        std::uint64_t bits, Bytes* tag) noexcept {
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(aad_bits), static_cast<long long>(bits));
    __m512i x[1] = {_mm512_zextsi128_si512(lengths)};
    if (begun)
        x[0] = _mm512_inserti64x2(_mm512_zextsi128_si512(reversed(load_block(part))), lengths, 1);
    const __m128i hash = begun ? hashed(load_block(y), powers_end - 2 * kBlock, x)
                               : hashed_block(load_block(y), lengths, powers_end);
    store_block(tag,
                _mm_xor_si128(reversed(hash), encrypted<rounds>(aes, counter_block(nonce, 1))));
}

}  // namespace

void VectorGcmKey::set(const unsigned char* key, std::size_t size) noexcept {
    expand(aes_, key, size, false);
    std::memset(powers_ + kPowers * kBlock, 0, sizeof powers_ - kPowers * kBlock);
    DAEL_BY_ROUNDS(aes_.rounds, hash_subkey)(aes_.keys, powers_ + (kPowers - 1) * kBlock);
    made_ = 1;
}
void VectorGcmKey::make(int powers) noexcept {
    Bytes* const end = powers_ + kPowers * kBlock;
    if (made_ < 4 && powers > 1) {
        make_four(end);
        made_ = 4;
    }
    if (made_ < kPowers && powers > 4) {
        make_rest(end);
        made_ = kPowers;
    }
}

void VectorGcm::begin(const unsigned char* nonce) noexcept {
    std::memcpy(nonce_, nonce, sizeof nonce_);
    std::memset(y_, 0, sizeof y_);
    std::memset(part_, 0, sizeof part_);
    counter_ = 2;  // J0 is 1
    aad_size_ = size_ = 0;
    part_size_ = 0;
    mask_known_ = false;
}

void VectorGcm::aad(VectorGcmKey& key, const unsigned char* bytes, std::size_t size) noexcept {
    if (size == 0) return;
    const Bytes* const end = key.powers_ + VectorGcmKey::kPowers * kBlock;
    aad_size_ += size;
    if (part_size_ != 0) {
        const std::size_t some = std::min(size, kBlock - part_size_);
        std::memcpy(part_ + part_size_, bytes, some);
        part_size_ += static_cast<unsigned>(some);
        bytes += some;
        size -= some;
        if (part_size_ < kBlock) return;
        absorb_block(y_, end, part_);
        part_size_ = 0;
    }
    const std::size_t whole = size / kBlock * kBlock;
    key.make(static_cast<int>(std::min<std::size_t>(whole / kBlock, VectorGcmKey::kPowers)));
    absorb_all(y_, end, bytes, whole);
    part_size_ = static_cast<unsigned>(size - whole);
    std::memset(part_, 0, sizeof part_);
    std::memcpy(part_, bytes + whole, part_size_);
}

bool VectorGcm::crypt(VectorGcmKey& key, bool encrypts, const unsigned char* in, unsigned char* out,
                      std::size_t size) noexcept {
    if (size > kMaxData - size_) return false;
    if (size == 0) return true;
    const Bytes* const end = key.powers_ + VectorGcmKey::kPowers * kBlock;
    if (size_ == 0 && part_size_ != 0) {  // the end of the AAD
        absorb_block(y_, end, part_);
        part_size_ = 0;
    }
    size_ += size;
    if (part_size_ != 0) {
        if (!mask_known_) DAEL_BY_ROUNDS(key.aes_.rounds, keystream_block)
        (key.aes_.keys, nonce_, counter_, mask_);
        mask_known_ = true;
        for (; part_size_ < kBlock && size != 0; --size, ++in, ++out, ++part_size_) {
            const Bytes before = *in;
            *out = static_cast<Bytes>(before ^ mask_[part_size_]);
            part_[part_size_] = encrypts ? *out : before;
        }
        if (part_size_ < kBlock) return true;
        absorb_block(y_, end, part_);
        part_size_ = 0;
        mask_known_ = false;
        ++counter_;
        if (size == 0) return true;
    }
    const int rounds = key.aes_.rounds;
    if (size == kBlock) {
        const auto block = encrypts ? DAEL_BY_ROUNDS(rounds, crypt_block, true)
                                    : DAEL_BY_ROUNDS(rounds, crypt_block, false);
        block(key.aes_.keys, end, nonce_, counter_, y_, in, out);
        ++counter_;
        return true;
    }
    const std::size_t whole = size / kBlock * kBlock, rest = size - whole;
    key.make(static_cast<int>(std::min<std::size_t>(whole / kBlock, VectorGcmKey::kPowers)));
    const auto all = encrypts ? DAEL_BY_ROUNDS(rounds, crypt_all, true)
                              : DAEL_BY_ROUNDS(rounds, crypt_all, false);
    all(key.aes_.keys, end, nonce_, counter_, y_, in, out, size, part_);
    counter_ += static_cast<std::uint32_t>(whole / kBlock);
    part_size_ = static_cast<unsigned>(rest);
    return true;
}

void VectorGcm::tag(VectorGcmKey& key, unsigned char* tag) noexcept {
    const Bytes* const end = key.powers_ + VectorGcmKey::kPowers * kBlock;
    if (part_size_ != 0) key.make(2);
    // What is left of a block before the begun one came is zeros.
    if (part_size_ != 0) std::memset(part_ + part_size_, 0, kBlock - part_size_);
    DAEL_BY_ROUNDS(key.aes_.rounds, finish)
    (key.aes_.keys, end, nonce_, y_, part_, part_size_ != 0, 8 * aad_size_, 8 * size_, tag);
}

}  // namespace dael::provider

#else

namespace dael::provider {
// Never called, as promised.
void VectorGcmKey::set(const unsigned char*, std::size_t) noexcept {
    std::abort();
}
void VectorGcm::begin(const unsigned char*) noexcept {
    std::abort();
}
void VectorGcm::aad(VectorGcmKey&, const unsigned char*, std::size_t) noexcept {
    std::abort();
}
bool VectorGcm::crypt(VectorGcmKey&, bool, const unsigned char*, unsigned char*,
                      std::size_t) noexcept {
    std::abort();
}
void VectorGcm::tag(VectorGcmKey&, unsigned char*) noexcept {
    std::abort();
}
}  // namespace dael::provider
#endif
