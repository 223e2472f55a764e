// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/xaes_avx512.hpp"

#include "backends/cpu/gcm_avx512_steps.hpp"

namespace dael::cpu::xaes_avx512 {
namespace {

using namespace avx512;
using gcm_avx512::Counters;
using gcm_avx512::encipher;
using gcm_avx512::finish;
using gcm_avx512::lengths;

constexpr int kRounds = static_cast<int>(Keys::kRounds);
constexpr std::size_t kLanes = Keys::kLanes, kTogether = kLanes * kGroups;
constexpr std::size_t kGroup = gcm_avx512::kTogether;  // bytes that are enciphered together

// CMAC's first subkey (SP 800-38B 6.1): the cipher of zeros, doubled. Big-endian.
DAEL_AVX512_INLINE __m128i subkey(const RoundKeys<kRounds>& keys) noexcept {
    const __m128i l = reversed(encrypted(keys, _mm_setzero_si128()));
    const __m128i top = _mm_srai_epi32(_mm_shuffle_epi32(l, 0xff), 31);
    const __m128i up = _mm_or_si128(_mm_slli_epi64(l, 1), _mm_slli_si128(_mm_srli_epi64(l, 63), 8));
    return reversed(_mm_xor_si128(up, _mm_and_si128(top, _mm_set_epi32(0, 0, 0, 0x87))));
}

// A block of each of four messages, or of the last one once more where there are fewer.
template <class Of>
DAEL_AVX512_INLINE __m512i gathered(std::span<const Message> messages, std::size_t first,
                                    Of of) noexcept {
    const auto at = [&](std::size_t i) DAEL_AVX512_LAMBDA -> __m128i {
        return of(messages[first + i < messages.size() ? first + i : messages.size() - 1]);
    };
    __m512i all = _mm512_castsi128_si512(at(0));
    all = _mm512_inserti64x2(all, at(1), 1);
    all = _mm512_inserti64x2(all, at(2), 2);
    return _mm512_inserti64x2(all, at(3), 3);
}

// What stands before N[:12]: 00, the number, "X", 00.
DAEL_AVX512_INLINE __m512i label(int number) noexcept {
    return _mm512_broadcast_i32x4(_mm_set_epi32(0, 0, 0, 0x00580000 | number << 8));
}

// 1, byte-reversed and times x.
DAEL_AVX512_INLINE __m512i one() noexcept {
    return _mm512_broadcast_i32x4(_mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1));
}
DAEL_AVX512_INLINE __m512i times_x_each(__m512i h) noexcept {
    const __m512i top = _mm512_srai_epi32(_mm512_shuffle_epi32(h, _MM_PERM_DDDD), 31);
    const __m512i up =
        _mm512_or_si512(_mm512_slli_epi64(h, 1), _mm512_bslli_epi128(_mm512_srli_epi64(h, 63), 8));
    const __m512i polynomial =
        _mm512_broadcast_i32x4(_mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1));
    return _mm512_ternarylogic_epi64(up, top, polynomial, 0x78);  // up ^ (top & polynomial)
}
// Of 4 * kCount messages at most.
template <std::size_t kCount>
DAEL_AVX512 void derive_groups(const core::KeySchedule& key, std::span<const Message> messages,
                               Keys* keys) noexcept {
    const RoundKeys<kRounds> master{key.encrypt.data()};
    const __m512i k1 = _mm512_broadcast_i32x4(subkey(master));
    // The derived key is CMAC's of two messages of one block.
    __m512i blocks[2 * kCount], j[kCount], h[kCount];
#pragma GCC unroll 4
    for (std::size_t g = 0; g < kCount; ++g) {
        const __m512i starts = gathered(messages, 4 * g, [](const Message& m) DAEL_AVX512_LAMBDA {
            return load_block(m.start.data());
        });
        const __m512i rests = gathered(messages, 4 * g, [](const Message& m) DAEL_AVX512_LAMBDA {
            return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(m.start_rest.data()));
        });
        const __m512i nonce = _mm512_xor_si512(_mm512_bslli_epi128(starts, 4), k1);
        blocks[2 * g] = _mm512_xor_si512(nonce, label(1));
        blocks[2 * g + 1] = _mm512_xor_si512(nonce, label(2));
        // J0 of N[12:], for which GCM's nonces have 12 bytes.
        j[g] = _mm512_ternarylogic_epi64(
            _mm512_bsrli_epi128(starts, 12), _mm512_bslli_epi128(rests, 4),
            _mm512_broadcast_i32x4(_mm_set_epi32(0x01000000, 0, 0, 0)), kXor3);
        _mm512_storeu_si512(keys[g].j0, j[g]);
    }
    transform<Direction::encrypt>(master, blocks);

    // Expanded, and with each round key at once the round of the hash subkey and of J0.
    const auto keep = [&](std::size_t g, int round, __m512i round_key) DAEL_AVX512_LAMBDA {
        _mm512_store_si512(keys[g].round_keys[round], round_key);
    };
#pragma GCC unroll 4
    for (std::size_t g = 0; g < kCount; ++g) {
        const __m512i first = blocks[2 * g], second = blocks[2 * g + 1];
        keep(g, 0, first);
        keep(g, 1, second);
        h[g] = _mm512_aesenc_epi128(first, second);
        j[g] = _mm512_aesenc_epi128(_mm512_xor_si512(j[g], first), second);
    }
    int rcon = 1;
    for (int round = 2; round < kRounds; round += 2, rcon <<= 1) {
#pragma GCC unroll 4
        for (std::size_t g = 0; g < kCount; ++g) {
            __m512i &even = blocks[2 * g], &odd = blocks[2 * g + 1];
            even = next_keys<true>(even, odd, rcon);
            odd = next_keys<false>(odd, even, 0);
            keep(g, round, even);
            keep(g, round + 1, odd);
            h[g] = _mm512_aesenc_epi128(_mm512_aesenc_epi128(h[g], even), odd);
            j[g] = _mm512_aesenc_epi128(_mm512_aesenc_epi128(j[g], even), odd);
        }
    }
#pragma GCC unroll 4
    for (std::size_t g = 0; g < kCount; ++g) {
        const __m512i last = next_keys<true>(blocks[2 * g], blocks[2 * g + 1], rcon);
        keep(g, kRounds, last);
        _mm512_store_si512(keys[g].masks, reversed(_mm512_aesenclast_epi128(j[g], last)));
        _mm512_store_si512(keys[g].far[3],
                           times_x_each(reversed(_mm512_aesenclast_epi128(h[g], last))));
    }
}
// Of the first kTogether messages.
void derive(const core::KeySchedule& key, std::span<const Message> messages, Keys* keys) noexcept {
    if (messages.size() > 8) return derive_groups<4>(key, messages, keys);
    if (messages.size() > 4) return derive_groups<2>(key, messages, keys);
    derive_groups<1>(key, messages, keys);
}

// The powers of four messages, of H that derive() left. Not there, but beside the first rounds,
// which other units of the processor do.
DAEL_AVX512_INLINE void make_powers(Keys& keys) noexcept {
    const __m512i h1 = _mm512_load_si512(keys.far[3]);
    const __m512i h2 = multiply_each(h1, h1), h4 = multiply_each(h2, h2);
    const __m512i h3 = multiply_each(h2, h1), h5 = multiply_each(h4, h1);
    const __m512i h8 = multiply_each(h4, h4), h12 = multiply_each(h8, h4);
    _mm512_store_si512(keys.far[0], multiply_each(h8, h8));
    _mm512_store_si512(keys.far[1], h12);
    _mm512_store_si512(keys.far[2], h8);
    _mm512_store_si512(keys.far[3], h4);
    _mm512_store_si512(keys.far[4], one());
    const __m512i high01 = _mm512_shuffle_i64x2(h4, h3, 0x44);
    const __m512i high23 = _mm512_shuffle_i64x2(h4, h3, 0xee);
    const __m512i low01 = _mm512_shuffle_i64x2(h2, h1, 0x44);
    const __m512i low23 = _mm512_shuffle_i64x2(h2, h1, 0xee);
    auto* const near = keys.near;
    store_block(near[0][0], _mm512_castsi512_si128(h5));
    store_block(near[1][0], _mm512_extracti64x2_epi64(h5, 1));
    store_block(near[2][0], _mm512_extracti64x2_epi64(h5, 2));
    store_block(near[3][0], _mm512_extracti64x2_epi64(h5, 3));
    _mm512_storeu_si512(near[0][1], _mm512_shuffle_i64x2(high01, low01, 0x88));
    _mm512_storeu_si512(near[1][1], _mm512_shuffle_i64x2(high01, low01, 0xdd));
    _mm512_storeu_si512(near[2][1], _mm512_shuffle_i64x2(high23, low23, 0x88));
    _mm512_storeu_si512(near[3][1], _mm512_shuffle_i64x2(high23, low23, 0xdd));
}

// One power, in every lane.
struct InEachLane {
    const std::uint8_t* at;  // as in Keys::far
    DAEL_AVX512_INLINE InEachLane operator+(std::size_t bytes) const noexcept {
        return {at + bytes};
    }
    DAEL_AVX512_INLINE __m512i get() const noexcept {
        return _mm512_broadcast_i32x4(load_block(at));
    }
};
DAEL_AVX512_INLINE void add_two(Sum& sum, __m512i x0, __m512i x1, InEachLane h) noexcept {
    add_two_products(sum, x0, h.get(), x1, (h + kVector).get());
}

// GHASH by Horner's rule, since few powers are all that a key of one message is worth: each lane
// of the vectors hashes every fourth block, by powers of H^4, and at the end the lanes are
// multiplied by H^4 to H^1 and added. So sums are reduced lane by lane.
class Hash {
  public:
    DAEL_AVX512_INLINE Hash(const Keys& keys, std::size_t lane) noexcept
        : far_{keys.far[0][lane]}, near_(keys.near[lane][0]) {}

    // H^16, H^12, H^8, H^4, which four whole vectors are multiplied by, where others follow.
    DAEL_AVX512_INLINE InEachLane far() const noexcept { return far_; }
    // What is added to the next vector.
    __m512i before = _mm512_setzero_si512();

    // The last vectors but those that follow with another length: into `before`, in one lane.
    template <std::size_t count>
    DAEL_AVX512_INLINE void add_last(__m512i (&x)[count]) noexcept {
        before = _mm512_zextsi128_si512(reduce(lasts(x, near_ + kBlockSize)));
    }
    DAEL_AVX512_INLINE void add_aad(const std::uint8_t* bytes, std::size_t size) noexcept {
        for (std::size_t i = 0; i < size; i += kVector) {
            const std::size_t part = size - i < kVector ? size - i : kVector;
            Sum sum = nothing();
            add_products(
                sum,
                _mm512_xor_si512(reversed(_mm512_maskz_loadu_epi8(first_of_64(part), bytes + i)),
                                 before),
                powers(blocks_of(part)));
            before = _mm512_zextsi128_si512(reduce(sum));
        }
    }
    // The last vectors, of which the last one has four blocks; or one vector that has `blocks`; or
    // nothing. And then the lengths.
    template <std::size_t count>
    DAEL_AVX512_INLINE __m128i end(__m512i (&x)[count], __m128i sizes) noexcept {
        Sum sum = lasts(x, near_);
        return ended(sum, sizes);
    }
    DAEL_AVX512_INLINE __m128i end(__m512i x, std::size_t blocks, __m128i sizes) noexcept {
        Sum sum = nothing();
        add_products(sum, _mm512_xor_si512(x, before), powers(blocks + 1));
        return ended(sum, sizes);
    }
    DAEL_AVX512_INLINE __m128i end(__m128i sizes) noexcept {
        Sum sum = nothing();
        return ended(sum, _mm_xor_si128(sizes, _mm512_castsi512_si128(before)));
    }

  private:
    // H^`count` and three less high ones, of which there may be fewer.
    DAEL_AVX512_INLINE __m512i powers(std::size_t count) const noexcept {
        return _mm512_loadu_si512(near_ + kBlockSize * (5 - count));
    }
    template <std::size_t count>
    DAEL_AVX512_INLINE Sum lasts(__m512i (&x)[count], const std::uint8_t* h) noexcept {
        x[0] = _mm512_xor_si512(x[0], before);
        if constexpr (count > 1) {
            Sum sum = nothing();
#pragma GCC unroll 4
            for (std::size_t i = 0; i + 1 < count; ++i)
                add_products(sum, x[i], (far_ + kVector * (5 - count + i)).get());
            x[count - 1] = _mm512_xor_si512(x[count - 1], reduced(sum));
        }
        Sum sum = nothing();
        add_products(sum, x[count - 1], _mm512_loadu_si512(h));
        return sum;
    }
    DAEL_AVX512_INLINE __m128i ended(Sum& sum, __m128i sizes) noexcept {
        add_product(sum, sizes, near_ + 4 * kBlockSize);
        return reduce(sum);
    }

    const InEachLane far_;
    const std::uint8_t* const near_;
};

// Messages of one call, one after another.
template <Direction direction>
class Chain {
  public:
    // `nowhere`: where a tag goes before there is any message, and after one that ends amid a
    // vector, which is done by itself. What waits then is nothing, and is hashed all the same
    // (gcm_avx512_lists.cpp says why).
    DAEL_AVX512_INLINE Chain(const Keys& keys, Block& nowhere) noexcept
        : nowhere_(nowhere.data()), keys_(&keys) {
        nothing_waits();
    }

    // Its keys must stay until another one has been added, or finish_last().
    DAEL_AVX512_INLINE void add(const Message& m, const Keys& keys, std::size_t lane,
                                std::uint8_t* tag) noexcept {
        const RoundKeys<kRounds, kLanes * kBlockSize> round_keys{keys.round_keys[0][lane]};
        Hash hash(keys, lane);
        if (m.aad_size != 0) hash.add_aad(m.aad, m.aad_size);
        Counters counters = Counters::of_data(keys.j0[lane]);
        const std::uint8_t* in = m.in;
        std::uint8_t* out = m.out;
        std::size_t size = m.size;
        const bool whole = size >= kGroup;
        if (whole) {
            __m512i keystream[4];
            Sum sum = nothing();
            encipher<true>(round_keys, counters, keystream, sum, waiting_, waiting_h());
            put_tag(sum);
            for (;;) {
                finish<direction>(keystream, in, out, waiting_);
                waiting_[0] = _mm512_xor_si512(waiting_[0], hash.before);
                hash.before = _mm512_setzero_si512();
                in += kGroup;
                out += kGroup;
                size -= kGroup;
                if (size < kGroup) break;
                sum = nothing();
                encipher<true>(round_keys, counters, keystream, sum, waiting_, hash.far());
                hash.before = reduced(sum);
            }
            wait_for(m, keys, lane, tag);
            if (size == 0) return;
        } else if (size == 0) {
            return store_tag(tag, keys, lane, hash.end(lengths(m.aad_size, 0)));
        }
        gcm_avx512::by_vectors(size, [&](auto count) DAEL_AVX512_LAMBDA {
            constexpr std::size_t kEmpty = 4 - count();  // zeros, which go before the others
            const std::size_t blocks = (size - 1) % kVector / kBlockSize + 1;  // of the last vector
            __m512i x[count()], ciphertext[count()];
            if (whole && (blocks == 4 || count() > 1)) {
                Sum sum = nothing();
                encipher<true>(round_keys, counters, x, sum, waiting_, hash.far());
                hash.before = reduced(sum);
            } else {
                counters.take(x);
                transform<Direction::encrypt>(round_keys, x);
                if (whole) hash.add_last(waiting_);
            }
            gcm_avx512::finish_part<direction>(x, in, out, size, ciphertext);
            if (whole && blocks == 4) {
#pragma GCC unroll 4
                for (std::size_t i = 0; i < 4; ++i)
                    waiting_[i] = i < kEmpty ? _mm512_setzero_si512() : ciphertext[i - kEmpty];
                waiting_[kEmpty] = _mm512_xor_si512(waiting_[kEmpty], hash.before);
                return;
            }
            if (whole) nothing_waits();
            const __m128i sizes = lengths(m.aad_size, m.size);
            if (blocks == 4) return store_tag(tag, keys, lane, hash.end(ciphertext, sizes));
            if constexpr (count() > 1) {
                __m512i before_it[count() - 1];
                for (std::size_t i = 0; i + 1 < count(); ++i) before_it[i] = ciphertext[i];
                hash.add_last(before_it);
            }
            store_tag(tag, keys, lane, hash.end(ciphertext[count() - 1], blocks, sizes));
        });
    }
    // Of the last one.
    DAEL_AVX512_INLINE void finish_last() noexcept {
        Sum sum = nothing();
        gcm_avx512::add_all(sum, waiting_, waiting_h());
        put_tag(sum);
    }

  private:
    // H^12, H^8, H^4 and 1.
    DAEL_AVX512_INLINE InEachLane waiting_h() const noexcept {
        return Hash(*keys_, lane_).far() + kVector;
    }
    DAEL_AVX512_INLINE void wait_for(const Message& m, const Keys& keys, std::size_t lane,
                                     std::uint8_t* tag) noexcept {
        sizes_ = lengths(m.aad_size, m.size);
        keys_ = &keys;
        lane_ = lane;
        tag_ = tag;
    }
    DAEL_AVX512_INLINE void nothing_waits() noexcept {
#pragma GCC unroll 4
        for (__m512i& four : waiting_) four = _mm512_setzero_si512();
        tag_ = nowhere_;
    }
    DAEL_AVX512_INLINE void put_tag(const Sum& sum) noexcept {
        store_tag(tag_, *keys_, lane_, Hash(*keys_, lane_).end(reduced(sum), 4, sizes_));
    }
    DAEL_AVX512_INLINE void store_tag(std::uint8_t* tag, const Keys& keys, std::size_t lane,
                                      __m128i hashed) noexcept {
        store_block(tag, reversed(_mm_xor_si128(hashed, load_block(keys.masks[lane]))));
    }

    std::uint8_t* const nowhere_;
    // Ciphertext of a message's end that is not hashed yet, and whose it is.
    __m512i waiting_[4];
    __m128i sizes_ = _mm_setzero_si128();
    const Keys* keys_;
    std::size_t lane_ = 0;
    std::uint8_t* tag_;
};

template <Direction direction>
DAEL_AVX512 void crypt(const core::KeySchedule& key, std::span<const Message> messages,
                       KeysOfCall& all_keys, Block* tags) noexcept {
    Block nowhere;
    Chain<direction> chain(all_keys[0], nowhere);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const std::size_t lane = i % kLanes;
        Keys* const keys = &all_keys[i / kLanes % all_keys.size()];
        if (i % kTogether == 0) derive(key, messages.subspan(i), keys);
        if (lane == 0) make_powers(*keys);
        chain.add(messages[i], *keys, lane, tags ? tags[i].data() : messages[i].tag);
    }
    chain.finish_last();
}

}  // namespace

void messages(Direction direction, const core::KeySchedule& key, std::span<const Message> messages,
              KeysOfCall& keys, Block* tags) noexcept {
    if (direction == Direction::encrypt)
        crypt<Direction::encrypt>(key, messages, keys, tags);
    else
        crypt<Direction::decrypt>(key, messages, keys, tags);
}

}  // namespace dael::cpu::xaes_avx512
