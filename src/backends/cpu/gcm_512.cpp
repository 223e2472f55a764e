// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gcm_512.hpp"

#include <cstring>
#include <type_traits>

#include "backends/cpu/avx512.hpp"

namespace dael::cpu::gcm512 {
namespace {

using namespace wide;

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
        : next(reversed(
              _mm512_add_epi32(_mm512_broadcast_i32x4(reversed(load_block(first.data()))),
                               _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0)))) {
        std::memcpy(&last, first.data() + 12, 4);
        last = __builtin_bswap32(last);
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
};

// Enciphers vectors of counters, and hashes as many of ciphertext meanwhile, if `hashes`: a few
// products with each round, so that the units for both have work all the time, also where two
// threads share a core.
template <bool hashes, int rounds, std::size_t count>
DAEL_AVX512_INLINE void encipher(const RoundKeys<rounds>& schedule, Counters& counters,
                                 __m512i (&to)[count], Sum& sum, const __m512i (&x)[count],
                                 const std::uint8_t* h) noexcept {
    constexpr int kEach = 8 / (count / 2);  // rounds to a pair of vectors
    const auto keys = schedule.here();
    counters.take(to);
#pragma GCC unroll 8
    for (__m512i& four : to) four = _mm512_xor_si512(four, keys[0]);
#pragma GCC unroll 16
    for (int round = 1; round < rounds; ++round) {
#pragma GCC unroll 8
        for (__m512i& four : to) four = _mm512_aesenc_epi128(four, keys[round]);
        if (hashes && round % kEach == 0 && round / kEach <= static_cast<int>(count) / 2) {
            const auto pair = static_cast<std::size_t>(2 * (round / kEach - 1));
            add_two(sum, x[pair], x[pair + 1], h + kVector * pair);
        }
    }
#pragma GCC unroll 8
    for (__m512i& four : to) four = _mm512_aesenclast_epi128(four, keys[rounds]);
}
template <std::size_t count>
DAEL_AVX512_INLINE void add_all(Sum& sum, const __m512i (&x)[count],
                                const std::uint8_t* h) noexcept {
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

// A message's data on its way: what waits to be hashed, and what was hashed before it.
template <Direction direction, int rounds>
struct Pass {
    const RoundKeys<rounds> keys;
    const Powers& powers;
    Counters counters;
    __m128i hashed;
    const std::uint8_t* in;
    std::uint8_t* out;
    std::size_t size;  // bytes that are not enciphered

    // Into one sum, which is `sum` already: all that is left, at most a span, and `after` more
    // blocks that the caller adds. Nothing, if nothing is left.
    DAEL_AVX512_INLINE void rest(Sum& sum, std::size_t after) noexcept {
        if (size == 0) return;
        const std::uint8_t* h = powers.last(blocks_of(size) + after);
        __m512i waiting[4], keystream[4];
        __m512i y = _mm512_zextsi128_si512(hashed);
        if (size >= kTogether) {
            encipher<false>(keys, counters, keystream, sum, keystream, h);
            finish<direction>(keystream, in, out, waiting);
            step(kTogether);
            waiting[0] = _mm512_xor_si512(waiting[0], y);
            y = _mm512_setzero_si512();
            for (; size >= kTogether; h += kTogether) {
                encipher<true>(keys, counters, keystream, sum, waiting, h);
                finish<direction>(keystream, in, out, waiting);
                step(kTogether);
            }
            if (size == 0) return add_all(sum, waiting, h);
            // What waits is hashed with the last vectors' rounds.
            last_vectors<true>(sum, waiting, h, y);
        } else {
            last_vectors<false>(sum, waiting, h, y);
        }
    }

    // Whole spans, as many as leave at most one.
    DAEL_AVX512_INLINE void spans() noexcept {
        if (size <= kSpan) return;
        const std::uint8_t* const h = powers.last(kOfMany);
        __m512i waiting[8], keystream[8];
        Sum sum = nothing();
        encipher<false>(keys, counters, keystream, sum, keystream, h);
        finish<direction>(keystream, in, out, waiting);
        step(kManyTogether);
        for (;;) {
            waiting[0] = _mm512_xor_si512(waiting[0], _mm512_zextsi128_si512(hashed));
            sum = nothing();
            std::size_t i = 0;
            for (; i + kManyTogether < kSpan; i += kManyTogether) {
                encipher<true>(keys, counters, keystream, sum, waiting, h + i);
                finish<direction>(keystream, in, out, waiting);
                step(kManyTogether);
            }
            if (size <= kSpan) {
                add_all(sum, waiting, h + i);
                hashed = reduce(sum);
                return;
            }
            encipher<true>(keys, counters, keystream, sum, waiting, h + i);
            finish<direction>(keystream, in, out, waiting);
            step(kManyTogether);
            hashed = reduce(sum);
        }
    }

  private:
    DAEL_AVX512_INLINE void step(std::size_t done) noexcept {
        in += done;
        out += done;
        size -= done;
    }
    // Fewer than four whole vectors; with what waits before them, if `hashes`.
    template <bool hashes>
    DAEL_AVX512_INLINE void last_vectors(Sum& sum, const __m512i (&waiting)[4],
                                         const std::uint8_t* h, __m512i y) noexcept {
        switch ((size - 1) / kVector) {
            case 0:
                return last_of<hashes, 1>(sum, waiting, h, y);
            case 1:
                return last_of<hashes, 2>(sum, waiting, h, y);
            case 2:
                return last_of<hashes, 3>(sum, waiting, h, y);
            default:
                return last_of<hashes, 4>(sum, waiting, h, y);
        }
    }
    template <bool hashes, std::size_t count>
    DAEL_AVX512_INLINE void last_of(Sum& sum, const __m512i (&waiting)[4], const std::uint8_t* h,
                                    __m512i y) noexcept {
        __m512i x[count];
        counters.take(x);
        if constexpr (hashes) {
            add_all(sum, waiting, h);
            h += kTogether;
        }
        transform<Direction::encrypt>(keys, x);
        const __mmask64 mask = first_of_64((size - 1) % kVector + 1);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < count; ++i) {
            const bool last = i + 1 == count;
            const __m512i data = last ? _mm512_maskz_loadu_epi8(mask, in + kVector * i)
                                      : _mm512_loadu_si512(in + kVector * i);
            __m512i result = _mm512_xor_si512(data, x[i]);
            if (last) {
                _mm512_mask_storeu_epi8(out + kVector * i, mask, result);
                result = _mm512_maskz_mov_epi8(mask, result);
            } else {
                _mm512_storeu_si512(out + kVector * i, result);
            }
            __m512i ciphertext = reversed(direction == Direction::encrypt ? result : data);
            if (i == 0) ciphertext = _mm512_xor_si512(ciphertext, y);
            add_products(sum, ciphertext, _mm512_loadu_si512(h + kVector * i));
        }
    }
};

DAEL_AVX512_INLINE __m128i lengths(std::uint64_t aad_size, std::uint64_t size) noexcept {
    return _mm_set_epi64x(static_cast<long long>(8 * aad_size), static_cast<long long>(8 * size));
}

DAEL_AVX512 __m128i hash_bytes(const Powers& powers, __m128i hashed, const std::uint8_t* bytes,
                               std::size_t size) noexcept {
    while (size != 0) {
        const std::size_t part = size < kSpan ? size : kSpan;
        const std::uint8_t* const h = powers.last(blocks_of(part));
        Sum sum = nothing();
        __m512i y = _mm512_zextsi128_si512(hashed);
        for (std::size_t i = 0; i < part; i += kVector) {
            const __mmask64 mask = first_of_64(part - i < kVector ? part - i : kVector);
            const __m512i x = reversed(_mm512_maskz_loadu_epi8(mask, bytes + i));
            add_products(sum, _mm512_xor_si512(x, y), _mm512_loadu_si512(h + i));
            y = _mm512_setzero_si512();
        }
        hashed = reduce(sum);
        bytes += part;
        size -= part;
    }
    return hashed;
}

template <int rounds, Direction direction>
DAEL_AVX512 void crypt_data(const core::KeySchedule& key, const Powers& powers, State& state,
                            const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept {
    Pass<direction, rounds> pass{{key.encrypt.data()},
                                 powers,
                                 Counters(state.counter),
                                 reversed(load_block(state.hashed.data())),
                                 in,
                                 out,
                                 size};
    pass.spans();
    Sum sum = nothing();
    pass.rest(sum, 0);
    store_block(state.hashed.data(), reversed(reduce(sum)));
    store_block(state.counter.data(), Counters::after(state.counter, blocks_of(size)));
}

template <int rounds, Direction direction>
DAEL_AVX512 void crypt_message(const core::KeySchedule& key, const Powers& powers, const Block& j0,
                               const std::uint8_t* aad, std::size_t aad_size,
                               const std::uint8_t* in, std::uint8_t* out, std::size_t size,
                               std::uint8_t* tag, std::size_t tag_size) noexcept {
    Block first;
    store_block(first.data(), Counters::after(j0, 1));
    Pass<direction, rounds> pass{
        {key.encrypt.data()}, powers, Counters(first), _mm_setzero_si128(), in, out, size};
    __m128i end = lengths(aad_size, size);
    Sum sum = nothing();
    if (aad_size <= kBlockSize && size <= kSpan) {
        // A masked load of nothing is right at any address, and slow at those that nobody has.
        if (aad_size != 0)
            add_product(sum, reversed(_mm_maskz_loadu_epi8(first_of_16(aad_size), aad)),
                        powers.last(blocks_of(size) + 2));
    } else {
        pass.hashed = hash_bytes(powers, pass.hashed, aad, aad_size);
        pass.spans();
        if (size == 0) end = _mm_xor_si128(end, pass.hashed);
    }
    // Not before the calls above, around which it would be kept on the stack.
    const __m128i mask = encrypted(pass.keys, load_block(j0.data()));
    pass.rest(sum, 1);
    add_product(sum, end, powers.last(1));
    _mm_mask_storeu_epi8(tag, first_of_16(tag_size), _mm_xor_si128(reversed(reduce(sum)), mask));
}

DAEL_AVX512_INLINE __m128i multiply(__m128i a, __m128i b) noexcept {
    Sum sum = nothing();
    add_products(sum, _mm512_zextsi128_si512(a), _mm512_zextsi128_si512(b));
    return reduce(sum);
}

template <class Run>
inline void for_rounds(int rounds, Run run) noexcept {
    if (rounds == 10) return run(std::integral_constant<int, 10>{});
    if (rounds == 12) return run(std::integral_constant<int, 12>{});
    run(std::integral_constant<int, 14>{});
}

DAEL_AVX512 __m128i encrypt_block(const core::KeySchedule& key, __m128i block) noexcept {
    const std::uint8_t* const keys = key.encrypt.data();
    block = _mm_xor_si128(block, load_block(keys));
    for (int round = 1; round < key.rounds; ++round)
        block = _mm_aesenc_si128(block, load_block(keys + 16 * round));
    return _mm_aesenclast_si128(block, load_block(keys + 16 * key.rounds));
}

}  // namespace

DAEL_AVX512 void expand(const core::KeySchedule& key, Powers& powers, std::size_t most) noexcept {
    const __m128i hx = times_x(reversed(encrypt_block(key, _mm_setzero_si128())));
    std::memset(powers.bytes, 0, sizeof powers.bytes);
    // Four chains side by side, each by H^4, take a quarter of the time of one.
    const __m128i h2 = multiply(hx, hx), h4 = multiply(h2, h2);
    __m128i chains[4]{hx, h2, multiply(h2, hx), h4};
    for (std::size_t i = 0; i < most; i += 4) {
#pragma GCC unroll 4
        for (std::size_t k = 0; k < 4; ++k) {
            store_block(powers.bytes + kBlockSize * (kPowers - 1 - i - k), chains[k]);
            chains[k] = multiply(chains[k], h4);
        }
    }
}

DAEL_AVX512 void hash(const Powers& powers, Block& hashed, const std::uint8_t* bytes,
                      std::size_t size) noexcept {
    store_block(hashed.data(),
                reversed(hash_bytes(powers, reversed(load_block(hashed.data())), bytes, size)));
}

void crypt(Direction direction, const core::KeySchedule& key, const Powers& powers, State& state,
           const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept {
    if (size == 0) return;
    for_rounds(key.rounds, [&](auto rounds) {
        if (direction == Direction::encrypt)
            crypt_data<rounds(), Direction::encrypt>(key, powers, state, in, out, size);
        else
            crypt_data<rounds(), Direction::decrypt>(key, powers, state, in, out, size);
    });
}

DAEL_AVX512 void crypt_within(Direction direction, const Block& keystream, Block& ciphertext,
                              std::size_t at, const std::uint8_t* in, std::uint8_t* out,
                              std::size_t count) noexcept {
    const __mmask16 mask = first_of_16(count);
    const __m128i data = _mm_maskz_loadu_epi8(mask, in);
    const __m128i result = _mm_xor_si128(data, _mm_maskz_loadu_epi8(mask, keystream.data() + at));
    _mm_mask_storeu_epi8(out, mask, result);
    _mm_mask_storeu_epi8(ciphertext.data() + at, mask,
                         direction == Direction::encrypt ? result : data);
}

DAEL_AVX512 void next_keystream(const core::KeySchedule& key, State& state,
                                Block& keystream) noexcept {
    store_block(keystream.data(), encrypt_block(key, load_block(state.counter.data())));
    store_block(state.counter.data(), Counters::after(state.counter, 1));
}

DAEL_AVX512 Block tag(const core::KeySchedule& key, const Powers& powers, const State& state,
                      const Block& j0, std::uint64_t aad_size, std::uint64_t size) noexcept {
    Sum sum = nothing();
    add_product(sum,
                _mm_xor_si128(reversed(load_block(state.hashed.data())), lengths(aad_size, size)),
                powers.last(1));
    Block made;
    store_block(made.data(),
                _mm_xor_si128(reversed(reduce(sum)), encrypt_block(key, load_block(j0.data()))));
    return made;
}

void message(Direction direction, const core::KeySchedule& key, const Powers& powers,
             const Block& j0, const std::uint8_t* aad, std::size_t aad_size, const std::uint8_t* in,
             std::uint8_t* out, std::size_t size, std::uint8_t* tag,
             std::size_t tag_size) noexcept {
    for_rounds(key.rounds, [&](auto rounds) {
        if (direction == Direction::encrypt)
            crypt_message<rounds(), Direction::encrypt>(key, powers, j0, aad, aad_size, in, out,
                                                        size, tag, tag_size);
        else
            crypt_message<rounds(), Direction::decrypt>(key, powers, j0, aad, aad_size, in, out,
                                                        size, tag, tag_size);
    });
}

}  // namespace dael::cpu::gcm512
