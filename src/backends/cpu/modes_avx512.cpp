// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/modes_avx512.hpp"

#include <cstring>

#include "backends/cpu/avx512.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/counter.hpp"

namespace dael::cpu {
namespace avx512 {
namespace {

// Vectors that are enciphered together. An AES round has a latency of three to five clocks and may
// begin in each; and beside these all round keys stay in registers.
constexpr std::size_t kTogether = 8;
// Counter blocks, one after another, counting modulo 2^128.
class Counters {
  public:
    DAEL_AVX512_INLINE explicit Counters(const Block& first) noexcept : at_(first) {
        next_ = _mm512_add_epi64(_mm512_broadcast_i32x4(_mm512_castsi512_si128(
                                     reversed(_mm512_castsi128_si512(load_block(first.data()))))),
                                 _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0));
        std::memcpy(&low_, first.data() + 8, 8);
        low_ = __builtin_bswap64(low_);
    }
    template <std::size_t count>
    DAEL_AVX512_INLINE void take(__m512i (&x)[count]) noexcept {
        constexpr std::uint64_t blocks = 4 * count;
        if (low_ + blocks < low_) [[unlikely]]
            return take_across(x);
#pragma GCC unroll 8
        for (__m512i& four : x) {
            four = reversed(next_);
            next_ = _mm512_add_epi64(next_, _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4));
        }
        low_ += blocks;
        taken_ += blocks;
    }

  private:
    // The lower half of some counter wraps.
    template <std::size_t count>
    DAEL_AVX512 __attribute__((noinline)) void take_across(__m512i (&x)[count]) noexcept {
        Block counter = modes::counter_add(at_, taken_);
#pragma GCC unroll 8
        for (__m512i& four : x) {
            alignas(kVector) std::uint8_t blocks[kVector];
            for (std::size_t i = 0; i < 4; ++i) {
                std::memcpy(blocks + kBlockSize * i, counter.data(), kBlockSize);
                counter = modes::counter_add(counter, 1);
            }
            four = _mm512_load_si512(blocks);
        }
        *this = Counters(counter);
    }

    Block at_;
    __m512i next_;
    std::uint64_t low_, taken_ = 0;  // the lower half of the next; how many since `at_`
};

// What each vector becomes, and what goes from one to the next.
template <int rounds, Direction direction>
struct Ecb {
    const RoundKeys<rounds> keys;
    DAEL_AVX512_INLINE Ecb(const std::uint8_t* schedule, const Block&) noexcept : keys{schedule} {}
    template <std::size_t count>
    DAEL_AVX512_INLINE void apply(__m512i (&x)[count]) noexcept {
        transform<direction>(keys, x);
    }
};

template <int rounds>
struct Ctr {
    const RoundKeys<rounds> keys;
    Counters counters;
    DAEL_AVX512_INLINE Ctr(const std::uint8_t* schedule, const Block& first) noexcept
        : keys{schedule}, counters(first) {}
    template <std::size_t count>
    DAEL_AVX512_INLINE void apply(__m512i (&x)[count]) noexcept {
        __m512i keystream[count];
        counters.take(keystream);
        transform<Direction::encrypt>(keys, keystream);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < count; ++i) x[i] = _mm512_xor_si512(x[i], keystream[i]);
    }
};

// CBC: P_j = D(C_j) ^ C_j-1; CFB: P_j = C_j ^ E(C_j-1).
template <int rounds, Mode mode>
struct Chained {
    const RoundKeys<rounds> keys;
    __m512i last;  // the block before in its uppermost quarter
    DAEL_AVX512_INLINE Chained(const std::uint8_t* schedule, const Block& iv) noexcept
        : keys{schedule}, last(_mm512_broadcast_i32x4(load_block(iv.data()))) {}
    template <std::size_t count>
    DAEL_AVX512_INLINE void apply(__m512i (&x)[count]) noexcept {
        __m512i before[count];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < count; ++i) {
            before[i] = _mm512_alignr_epi64(x[i], last, 6);
            last = x[i];
        }
        if constexpr (mode == Mode::cbc)
            transform<Direction::decrypt>(keys, x);
        else
            transform<Direction::encrypt>(keys, before);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < count; ++i) x[i] = _mm512_xor_si512(x[i], before[i]);
    }
};

// `count` vectors, the last of which has `rest` bytes, 1 to 64. Without input there are zeros.
template <std::size_t count, class Cipher>
DAEL_AVX512_INLINE void crypt(Cipher& cipher, const std::uint8_t* in, std::uint8_t* out,
                              std::size_t rest) noexcept {
    const __mmask64 mask = first_of_64(rest);
    __m512i x[count];
#pragma GCC unroll 8
    for (std::size_t i = 0; i + 1 < count; ++i)
        x[i] = in ? _mm512_loadu_si512(in + kVector * i) : _mm512_setzero_si512();
    x[count - 1] =
        in ? _mm512_maskz_loadu_epi8(mask, in + kVector * (count - 1)) : _mm512_setzero_si512();
    cipher.apply(x);
#pragma GCC unroll 8
    for (std::size_t i = 0; i + 1 < count; ++i) _mm512_storeu_si512(out + kVector * i, x[i]);
    _mm512_mask_storeu_epi8(out + kVector * (count - 1), mask, x[count - 1]);
}

template <class Cipher>
DAEL_AVX512 void crypt_all(const std::uint8_t* schedule, const Block& start, const std::uint8_t* in,
                           std::uint8_t* out, std::size_t size) noexcept {
    if (size == 0) return;
    Cipher cipher(schedule, start);
    constexpr std::size_t kStride = kTogether * kVector;
    for (; size > kStride; size -= kStride, out += kStride) {
        crypt<kTogether>(cipher, in, out, kVector);
        if (in) in += kStride;
    }
    // What is left goes together as well, in as few vectors as it fills.
    const std::size_t rest = (size - 1) % kVector + 1;
    switch ((size + kVector - 1) / kVector) {
        case 1:
            return crypt<1>(cipher, in, out, rest);
        case 2:
            return crypt<2>(cipher, in, out, rest);
        case 3:
            return crypt<3>(cipher, in, out, rest);
        case 4:
            return crypt<4>(cipher, in, out, rest);
        case 5:
            return crypt<5>(cipher, in, out, rest);
        case 6:
            return crypt<6>(cipher, in, out, rest);
        case 7:
            return crypt<7>(cipher, in, out, rest);
        default:
            return crypt<8>(cipher, in, out, rest);
    }
}

template <int rounds>
void run(Mode mode, Direction direction, const core::KeySchedule& key, const Block& start,
         const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept {
    const std::uint8_t *const encrypt = key.encrypt.data(), *const decrypt = key.decrypt.data();
    if (mode == Mode::ctr) return crypt_all<Ctr<rounds>>(encrypt, start, in, out, size);
    if (mode == Mode::cbc)
        return crypt_all<Chained<rounds, Mode::cbc>>(decrypt, start, in, out, size);
    if (mode == Mode::cfb)
        return crypt_all<Chained<rounds, Mode::cfb>>(encrypt, start, in, out, size);
    if (direction == Direction::encrypt)
        return crypt_all<Ecb<rounds, Direction::encrypt>>(encrypt, start, in, out, size);
    return crypt_all<Ecb<rounds, Direction::decrypt>>(decrypt, start, in, out, size);
}

void run(Mode mode, Direction direction, const core::KeySchedule& key, const Block& start,
         const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept {
    if (key.rounds == 10) return run<10>(mode, direction, key, start, in, out, size);
    if (key.rounds == 12) return run<12>(mode, direction, key, start, in, out, size);
    return run<14>(mode, direction, key, start, in, out, size);
}

}  // namespace
}  // namespace avx512

void run_avx512(Mode mode, Direction direction, const core::KeySchedule& key,
                const Message& m) noexcept {
    if (m.skip == 0) return avx512::run(mode, direction, key, m.start, m.in, m.out, m.size);
    // The first bytes lie in a counter block that others have begun.
    Block block{};
    const core::WipeAtEnd wipe(block);
    const std::size_t head = m.size < kBlockSize - m.skip ? m.size : kBlockSize - m.skip;
    if (m.in && head != 0) std::memcpy(block.data() + m.skip, m.in, head);
    avx512::run(mode, direction, key, m.start, block.data(), block.data(), block.size());
    if (head != 0) std::memcpy(m.out, block.data() + m.skip, head);
    avx512::run(mode, direction, key, modes::counter_add(m.start, 1), m.in ? m.in + head : nullptr,
                m.out + head, m.size - head);
}

}  // namespace dael::cpu
