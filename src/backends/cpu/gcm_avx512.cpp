// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gcm_avx512.hpp"

#include <cstring>

#include "backends/cpu/gcm_avx512_steps.hpp"

namespace dael::cpu::gcm_avx512 {
namespace {

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
    Pass<direction, rounds> pass{
        {key.encrypt.data()}, powers, Counters::of_data(j0), _mm_setzero_si128(), in, out, size};
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

}  // namespace dael::cpu::gcm_avx512
