// SPDX-License-Identifier: Apache-2.0
// By AES-NI and PCLMULQDQ, block by block, for CPUs without VAES; as xor_ghash_avx512.cpp, which
// says more.
#include <algorithm>
#include <cstring>

#include "backends/cpu/pclmul.hpp"
#include "backends/cpu/xor_ghash.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu {
namespace pclmul {
namespace {

using core::CipherPacket;

DAEL_PCLMUL_INLINE __m128i reversed(__m128i block) noexcept {
    return _mm_shuffle_epi8(block,
                            _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
// Bytes of a block that is not whole, with zeros after them.
DAEL_PCLMUL_INLINE __m128i load_part(const std::uint8_t* from, std::size_t size) noexcept {
    Block block{};
    if (size != 0) std::memcpy(block.data(), from, size);
    return load(block.data());
}

enum class Do { encrypt, hash };

// Hashing has neither output nor keystream, and null takes no offset.
template <Do what, class Byte>
DAEL_PCLMUL_INLINE Byte* on(Byte* from, std::size_t offset) noexcept {
    return what == Do::encrypt ? from + offset : from;
}

template <Do what>
DAEL_PCLMUL_INLINE __m128i take(const std::uint8_t* in, std::uint8_t* out,
                                const std::uint8_t* keystream) noexcept {
    __m128i x = load(in);
    if constexpr (what == Do::encrypt) {
        x = _mm_xor_si128(x, load(keystream));
        store(out, x);
    }
    return reversed(x);
}

template <Do what>
DAEL_PCLMUL_INLINE void add_data(Sum& sum, const std::uint8_t* h, __m128i y, const std::uint8_t* in,
                                 std::uint8_t* out, const std::uint8_t* keystream, std::size_t size,
                                 const std::uint8_t* next) noexcept {
    std::size_t i = 0;
    for (; i + 64 <= size; i += 64) {
        if (next) _mm_prefetch(reinterpret_cast<const char*>(next + i), _MM_HINT_T0);
        const __m128i x0 = take<what>(in + i, on<what>(out, i), on<what>(keystream, i));
        const __m128i x1 =
            take<what>(in + i + 16, on<what>(out, i + 16), on<what>(keystream, i + 16));
        const __m128i x2 =
            take<what>(in + i + 32, on<what>(out, i + 32), on<what>(keystream, i + 32));
        const __m128i x3 =
            take<what>(in + i + 48, on<what>(out, i + 48), on<what>(keystream, i + 48));
        add_product(sum, _mm_xor_si128(y, x0), load(h + i));
        add_product(sum, x1, load(h + i + 16));
        add_product(sum, x2, load(h + i + 32));
        add_product(sum, x3, load(h + i + 48));
        y = _mm_setzero_si128();
    }
    for (; i + kBlockSize <= size; i += kBlockSize) {
        add_product(sum,
                    _mm_xor_si128(y, take<what>(in + i, on<what>(out, i), on<what>(keystream, i))),
                    load(h + i));
        y = _mm_setzero_si128();
    }
    if (i == size) return;
    const std::size_t rest = size - i;
    __m128i x = load_part(in + i, rest);
    if constexpr (what == Do::encrypt) {
        x = _mm_xor_si128(x, load_part(on<what>(keystream, i), rest));
        Block block;
        store(block.data(), x);
        std::memcpy(on<what>(out, i), block.data(), rest);
    }
    add_product(sum, _mm_xor_si128(y, reversed(x)), load(h + i));
}

template <Do what>
DAEL_PCLMUL_INLINE __m128i hash_packet(const Powers& powers, const CipherPacket& p) noexcept {
    const std::uint8_t *in = p.in, *keystream = nullptr, *next = p.soon;
    std::uint8_t* out = p.out;
    if constexpr (what == Do::encrypt) keystream = p.keystream + kBlockSize;
    std::size_t size = p.size, blocks = blocks_of(size);
    __m128i y = _mm_setzero_si128();
    Sum sum = nothing();
    const __m128i aad = reversed(load_part(p.aad, p.aad_size));
    bool first = true;
    for (; blocks + 2 > kPowers; blocks -= kOfMany) {
        constexpr std::size_t kPart = kOfMany * kBlockSize;
        if (first) add_product(sum, aad, load(powers.last(kOfMany + 1)));
        add_data<what>(sum, powers.last(kOfMany), y, in, out, keystream, kPart, next);
        y = reduce(sum);
        sum = nothing();
        first = false;
        in += kPart;
        out = on<what>(out, kPart);
        if constexpr (what == Do::encrypt) keystream += kPart;
        if (next) next += kPart;
        size -= kPart;
    }
    if (first) add_product(sum, aad, load(powers.last(blocks + 2)));
    add_data<what>(sum, powers.last(blocks + 1), y, in, out, keystream, size, next);
    const __m128i lengths =
        _mm_set_epi64x(static_cast<long long>(8 * p.aad_size), static_cast<long long>(8 * p.size));
    add_product(sum, lengths, load(powers.last(1)));
    return reduce(sum);
}

// As bytes, under the mask that the keystream begins with.
DAEL_PCLMUL_INLINE Block tag_of(__m128i y, const CipherPacket& p) noexcept {
    Block tag;
    store(tag.data(), _mm_xor_si128(reversed(y), load(p.keystream)));
    return tag;
}

DAEL_PCLMUL_INLINE __m128i encrypted(const core::KeySchedule& key, __m128i block) noexcept {
    const std::uint8_t* const keys = key.encrypt.data();
    block = _mm_xor_si128(block, load(keys));
    for (int round = 1; round < key.rounds; ++round)
        block = _mm_aesenc_si128(block, load(keys + 16 * round));
    return _mm_aesenclast_si128(block, load(keys + 16 * key.rounds));
}

DAEL_PCLMUL void expand(const core::KeySchedule& key, Powers& powers) noexcept {
    const __m128i h = reversed(encrypted(key, _mm_setzero_si128()));
    const __m128i top = _mm_srai_epi32(_mm_shuffle_epi32(h, _MM_SHUFFLE(3, 3, 3, 3)), 31);
    const __m128i up = _mm_or_si128(_mm_slli_epi64(h, 1), _mm_slli_si128(_mm_srli_epi64(h, 63), 8));
    const __m128i hx = _mm_xor_si128(
        up, _mm_and_si128(top, _mm_set_epi64x(static_cast<long long>(0xc200000000000000), 1)));
    std::memset(powers.bytes, 0, sizeof powers.bytes);
    __m128i last = hx;
    for (std::size_t i = 1; i <= kPowers; ++i) {
        store(powers.bytes + kBlockSize * (kPowers - i), last);
        last = multiply(last, hx);
    }
}

DAEL_PCLMUL void exclusive_or(std::uint8_t* out, const std::uint8_t* in,
                              const std::uint8_t* keystream, std::size_t size) noexcept {
    std::size_t i = 0;
    for (; i + kBlockSize <= size; i += kBlockSize)
        store(out + i, _mm_xor_si128(load(in + i), load(keystream + i)));
    for (; i < size; ++i) out[i] = in[i] ^ keystream[i];
}

DAEL_PCLMUL void seal(const Powers& powers, const CipherPacket& p) noexcept {
    const Block tag = tag_of(hash_packet<Do::encrypt>(powers, p), p);
    std::memcpy(p.tag, tag.data(), p.tag_size);
}

DAEL_PCLMUL bool open(const Powers& powers, const CipherPacket& p) noexcept {
    Block tag = tag_of(hash_packet<Do::hash>(powers, p), p);
    const core::WipeAtEnd wipe(tag);
    if (!modes::equal_tags(tag.data(), p.tag, p.tag_size)) return false;
    exclusive_or(p.out, p.in, p.keystream + kBlockSize, p.size);
    return true;
}

DAEL_PCLMUL void hash(const Powers& powers, Block& y, const std::uint8_t* bytes,
                      std::size_t size) noexcept {
    __m128i hashed = reversed(load(y.data()));
    while (size != 0) {
        const std::size_t part = std::min(size, kOfMany * kBlockSize);
        Sum sum = nothing();
        add_data<Do::hash>(sum, powers.last(blocks_of(part)), hashed, bytes, nullptr, nullptr, part,
                           nullptr);
        hashed = reduce(sum);
        bytes += part;
        size -= part;
    }
    store(y.data(), reversed(hashed));
}

// Eight blocks at a time, since a round takes several clocks and one can begin in each.
DAEL_PCLMUL void keystream(const core::KeySchedule& schedule, const Block& counter,
                           std::uint8_t* out, std::size_t blocks) noexcept {
    const std::uint8_t* const round_keys = schedule.encrypt.data();
    const int rounds = schedule.rounds;
    unsigned __int128 number = 0;
    for (const std::uint8_t byte : counter) number = number << 8 | byte;
    while (blocks != 0) {
        __m128i x[8];
        for (__m128i& one : x) {
            const __m128i as_number = _mm_set_epi64x(static_cast<long long>(number >> 64),
                                                     static_cast<long long>(number));
            one = _mm_xor_si128(reversed(as_number), load(round_keys));
            ++number;
        }
        for (int round = 1; round < rounds; ++round) {
            const __m128i key = load(round_keys + 16 * round);
            for (__m128i& one : x) one = _mm_aesenc_si128(one, key);
        }
        const __m128i last = load(round_keys + 16 * rounds);
        for (const __m128i& one : x) {
            if (blocks == 0) break;
            store(out, _mm_aesenclast_si128(one, last));
            out += kBlockSize;
            --blocks;
        }
    }
}

}  // namespace
}  // namespace pclmul

const XorGhash kXorGhashPclmul{pclmul::expand,       pclmul::seal,      pclmul::open, pclmul::hash,
                               pclmul::exclusive_or, pclmul::keystream, nullptr};

}  // namespace dael::cpu
