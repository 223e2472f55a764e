// SPDX-License-Identifier: Apache-2.0
// AES-GCM by AVX-512 of lists of short messages. What a message costs besides its data, the
// beginning in which nothing can be hashed yet and the end in which nothing is left to encipher,
// overlaps with its neighbours': its last blocks are hashed between the rounds of the next one's
// first. E(J0) is made of four messages at once.
#include "backends/cpu/gcm_avx512_steps.hpp"

namespace dael::cpu::gcm_avx512 {
namespace {

// Of one sum, and with no call on the way, around which registers would be kept on the stack.
constexpr bool is_short(const Message& m) noexcept {
    return m.aad_size <= kBlockSize && m.size <= kSpan && m.size != 0;
}

// J0 of up to four messages.
DAEL_AVX512_INLINE __m512i starts(const Message* m, std::size_t count) noexcept {
    __m512i all = _mm512_zextsi128_si512(load_block(m[0].start.data()));
    if (count > 1) all = _mm512_inserti64x2(all, load_block(m[1].start.data()), 1);
    if (count > 2) all = _mm512_inserti64x2(all, load_block(m[2].start.data()), 2);
    if (count > 3) all = _mm512_inserti64x2(all, load_block(m[3].start.data()), 3);
    return all;
}

// Of one message after another.
template <Direction direction, int rounds>
class Chain {
  public:
    // `nowhere`: where a tag goes before there is any message. What waits then is nothing, and is
    // hashed all the same: a compiler moves products that are needed sometimes to where they are,
    // away from the rounds.
    DAEL_AVX512_INLINE Chain(const core::KeySchedule& key, const Powers& powers,
                             std::size_t tag_size, Block& nowhere) noexcept
        : keys_{key.encrypt.data()},
          powers_(powers),
          h_(powers.bytes),
          tag_(nowhere.data()),
          tag_bytes_(first_of_16(tag_size)) {
#pragma GCC unroll 4
        for (__m512i& four : waiting_) four = _mm512_setzero_si512();
    }

    DAEL_AVX512_INLINE __m512i masks(const Message* m, std::size_t count) noexcept {
        __m512i x[1] = {starts(m, count)};
        transform<Direction::encrypt>(keys_, x);
        return reversed(x[0]);
    }

    // A short message; `mask` is E(J0), byte-reversed.
    DAEL_AVX512_INLINE void add(const Message& m, std::uint8_t* tag, __m128i mask) noexcept {
        Counters counters = Counters::of_data(m.start);
        const std::uint8_t* const h = powers_.last(blocks_of(m.size) + 1);
        if (m.size < kTogether) {
            // So little that it overlaps with its neighbours as it is.
            by_vectors(m.size, [&](auto count) DAEL_AVX512_LAMBDA {
                __m512i x[count()], ciphertext[count()];
                counters.take(x);
                transform<Direction::encrypt>(keys_, x);
                finish_part<direction>(x, m.in, m.out, m.size, ciphertext);
                Sum sum = begun(m, h, mask);
#pragma GCC unroll 4
                for (std::size_t i = 0; i < count(); ++i)
                    add_products(sum, ciphertext[i], _mm512_loadu_si512(h + kVector * i));
                put_tag(tag, sum);
            });
            return;
        }
        const std::uint8_t* in = m.in;
        std::uint8_t* out = m.out;
        std::size_t size = m.size;
        whole(counters, in, out);  // and what waits of the one before
        put_tag(tag_, sum_);
        sum_ = begun(m, h, mask);
        tag_ = tag;
        for (h_ = h;; h_ += kTogether) {
            in += kTogether;
            out += kTogether;
            size -= kTogether;
            if (size < kTogether) break;
            whole(counters, in, out);
        }
        if (size == 0) return;
        by_vectors(size, [&](auto count) DAEL_AVX512_LAMBDA {
            constexpr std::size_t kEmpty = 4 - count();  // zeros, which go before the others
            __m512i x[count()], ciphertext[count()];
            encipher<true>(keys_, counters, x, sum_, waiting_, h_);
            finish_part<direction>(x, in, out, size, ciphertext);
#pragma GCC unroll 4
            for (std::size_t i = 0; i < 4; ++i)
                waiting_[i] = i < kEmpty ? _mm512_setzero_si512() : ciphertext[i - kEmpty];
            h_ += kTogether - kVector * kEmpty;
        });
    }

    // Of the last one.
    DAEL_AVX512_INLINE void finish_last() noexcept {
        add_all(sum_, waiting_, h_);
        put_tag(tag_, sum_);
    }

  private:
    // A sum that has all but the data. The mask is added here, so that it need not be kept beside.
    DAEL_AVX512_INLINE Sum begun(const Message& m, const std::uint8_t* h, __m128i mask) noexcept {
        Sum sum = nothing();
        sum.high = _mm512_zextsi128_si512(mask);
        add_product(sum, lengths(m.aad_size, m.size), powers_.last(1));
        if (m.aad_size != 0)
            add_product(sum, reversed(_mm_maskz_loadu_epi8(first_of_16(m.aad_size), m.aad)),
                        h - kBlockSize);
        return sum;
    }
    DAEL_AVX512_INLINE void put_tag(std::uint8_t* tag, const Sum& sum) noexcept {
        _mm_mask_storeu_epi8(tag, tag_bytes_, reversed(reduce(sum)));
    }

    DAEL_AVX512_INLINE void whole(Counters& counters, const std::uint8_t* in,
                                  std::uint8_t* out) noexcept {
        __m512i keystream[4];
        encipher<true>(keys_, counters, keystream, sum_, waiting_, h_);
        finish<direction>(keystream, in, out, waiting_);
    }

    const RoundKeys<rounds> keys_;
    const Powers& powers_;
    // Ciphertext that is not hashed yet, its first power, and the sum of what is.
    __m512i waiting_[4];
    const std::uint8_t* h_;
    Sum sum_ = nothing();
    std::uint8_t* tag_;  // where that of what waits goes
    const __mmask16 tag_bytes_;
};

template <int rounds, Direction direction>
DAEL_AVX512 void crypt_short(const core::KeySchedule& key, const Powers& powers,
                             std::span<const Message> messages, Block* tags,
                             std::size_t tag_size) noexcept {
    Block nowhere;
    Chain<direction, rounds> chain(key, powers, tag_size, nowhere);
    for (std::size_t at = 0; at < messages.size();) {
        const Message* const m = messages.data() + at;
        const std::size_t count = messages.size() - at < 4 ? messages.size() - at : 4;
        __m512i masks = chain.masks(m, count);
        for (std::size_t i = 0; i < count; ++i) {
            chain.add(m[i], tags ? tags[at + i].data() : m[i].tag, _mm512_castsi512_si128(masks));
            masks = _mm512_shuffle_i64x2(masks, masks, 0x39);  // the next lane's
        }
        at += count;
    }
    chain.finish_last();
}

}  // namespace

void messages(Direction direction, const core::KeySchedule& key, const Powers& powers,
              std::span<const Message> messages, Block* tags, std::size_t tag_size) noexcept {
    for (std::size_t i = 0; i < messages.size();) {
        const std::size_t first = i;
        while (i < messages.size() && is_short(messages[i])) ++i;
        const auto these = messages.subspan(first, i - first);
        Block* const its_tags = tags ? tags + first : nullptr;
        if (these.size() > 1) {  // which have neighbours
            for_rounds(key.rounds, [&](auto rounds) {
                if (direction == Direction::encrypt)
                    crypt_short<rounds(), Direction::encrypt>(key, powers, these, its_tags,
                                                              tag_size);
                else
                    crypt_short<rounds(), Direction::decrypt>(key, powers, these, its_tags,
                                                              tag_size);
            });
            continue;
        }
        const Message& m = messages[first];
        message(direction, key, powers, m.start, m.aad, m.aad_size, m.in, m.out, m.size,
                tags ? its_tags->data() : m.tag, tag_size);
        i = first + 1;
    }
}

}  // namespace dael::cpu::gcm_avx512
