// SPDX-License-Identifier: Apache-2.0
// Registers of one, two and four AES blocks, and what AEGIS does with them. Included by each form's
// source (aegis_aesni.cpp and its like), in a namespace of its own and for its target, which is why
// there is no #pragma once: inline functions of one target cannot go into functions of another, and
// code for a target must not be where other sources find it by the same name.
//
// The form defines DAEL_AEGIS_TARGET, and DAEL_AEGIS_BLOCKS: how many blocks its largest register
// has. With four, AVX-512's instructions serve the smaller ones too.

#define DAEL_AEGIS __attribute__((target(DAEL_AEGIS_TARGET)))
#define DAEL_AEGIS_INLINE DAEL_AEGIS __attribute__((always_inline)) inline

struct Xmm {
    __m128i v;
    static constexpr std::size_t kBlocks = 1;

    static DAEL_AEGIS_INLINE Xmm zero() noexcept { return {_mm_setzero_si128()}; }
    static DAEL_AEGIS_INLINE Xmm load(const std::uint8_t* from) noexcept {
        return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))};
    }
    DAEL_AEGIS_INLINE void store(std::uint8_t* to) const noexcept {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v);
    }
    // The first `size` bytes, at most 16, and zeros.
    static DAEL_AEGIS_INLINE Xmm load_part(const std::uint8_t* from, std::size_t size) noexcept;
    DAEL_AEGIS_INLINE void store_part(std::uint8_t* to, std::size_t size) const noexcept;
    DAEL_AEGIS_INLINE Xmm first(std::size_t size) const noexcept;
    // One block in each lane, and the lanes.
    static DAEL_AEGIS_INLINE Xmm of(const Xmm (&blocks)[1]) noexcept { return blocks[0]; }
    DAEL_AEGIS_INLINE void to(Xmm (&blocks)[1]) const noexcept { blocks[0] = *this; }
};
DAEL_AEGIS_INLINE Xmm operator^(Xmm a, Xmm b) noexcept {
    return {_mm_xor_si128(a.v, b.v)};
}
// AESRound(in, key) of RFC 10032.
DAEL_AEGIS_INLINE Xmm aes_round(Xmm in, Xmm key) noexcept {
    return {_mm_aesenc_si128(in.v, key.v)};
}
#if DAEL_AEGIS_BLOCKS == 4
DAEL_AEGIS_INLINE Xmm xor3(Xmm a, Xmm b, Xmm c) noexcept {
    return {_mm_ternarylogic_epi64(a.v, b.v, c.v, 0x96)};
}
// (a & b) ^ c
DAEL_AEGIS_INLINE Xmm and_xor(Xmm a, Xmm b, Xmm c) noexcept {
    return {_mm_ternarylogic_epi64(a.v, b.v, c.v, 0x6a)};
}
DAEL_AEGIS_INLINE __mmask16 first_of_16(std::size_t bytes) noexcept {
    return static_cast<__mmask16>(_bzhi_u32(0xffff, static_cast<unsigned>(bytes)));
}
// A masked load of nothing is right at any address, and slow at those that nobody has.
Xmm Xmm::load_part(const std::uint8_t* from, std::size_t size) noexcept {
    if (size == 0) return zero();
    return {_mm_maskz_loadu_epi8(first_of_16(size), from)};
}
void Xmm::store_part(std::uint8_t* to, std::size_t size) const noexcept {
    if (size != 0) _mm_mask_storeu_epi8(to, first_of_16(size), v);
}
Xmm Xmm::first(std::size_t size) const noexcept {
    return {_mm_maskz_mov_epi8(first_of_16(size), v)};
}
#else
DAEL_AEGIS_INLINE Xmm xor3(Xmm a, Xmm b, Xmm c) noexcept {
    return a ^ b ^ c;
}
DAEL_AEGIS_INLINE Xmm and_xor(Xmm a, Xmm b, Xmm c) noexcept {
    return {_mm_xor_si128(_mm_and_si128(a.v, b.v), c.v)};
}
template <class Word>
DAEL_AEGIS_INLINE std::uint64_t word_at(const std::uint8_t* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
}
template <class Word>
DAEL_AEGIS_INLINE void put_word(std::uint8_t* to, std::uint64_t word) noexcept {
    const auto part = static_cast<Word>(word);
    std::memcpy(to, &part, sizeof part);
}
// Up to eight bytes by two words that overlap, without a byte that is not theirs.
DAEL_AEGIS_INLINE std::uint64_t load_bytes(const std::uint8_t* from, std::size_t size) noexcept {
    if (size >= 8) return word_at<std::uint64_t>(from);
    if (size >= 4)
        return word_at<std::uint32_t>(from) | word_at<std::uint32_t>(from + size - 4)
                                                  << (8 * (size - 4));
    if (size >= 2)
        return word_at<std::uint16_t>(from) | word_at<std::uint16_t>(from + size - 2)
                                                  << (8 * (size - 2));
    return size == 0 ? 0 : from[0];
}
DAEL_AEGIS_INLINE void store_bytes(std::uint8_t* to, std::uint64_t bytes,
                                   std::size_t size) noexcept {
    if (size >= 8) return put_word<std::uint64_t>(to, bytes);
    if (size >= 4) {
        put_word<std::uint32_t>(to, bytes);
        put_word<std::uint32_t>(to + size - 4, bytes >> (8 * (size - 4)));
    } else if (size >= 2) {
        put_word<std::uint16_t>(to, bytes);
        put_word<std::uint16_t>(to + size - 2, bytes >> (8 * (size - 2)));
    } else if (size == 1) {
        to[0] = static_cast<std::uint8_t>(bytes);
    }
}
Xmm Xmm::load_part(const std::uint8_t* from, std::size_t size) noexcept {
    if (size >= 16) return load(from);
    const std::uint64_t low = load_bytes(from, size);
    const std::uint64_t high = size > 8 ? load_bytes(from + 8, size - 8) : 0;
    return {_mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low))};
}
void Xmm::store_part(std::uint8_t* to, std::size_t size) const noexcept {
    if (size >= 16) return store(to);
    store_bytes(to, static_cast<std::uint64_t>(_mm_cvtsi128_si64(v)), size);
    if (size > 8)
        store_bytes(to + 8, static_cast<std::uint64_t>(_mm_extract_epi64(v, 1)), size - 8);
}
Xmm Xmm::first(std::size_t size) const noexcept {
    const __m128i numbers = _mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return {_mm_and_si128(v, _mm_cmpgt_epi8(_mm_set1_epi8(static_cast<char>(size)), numbers))};
}
#endif

#if DAEL_AEGIS_BLOCKS >= 2
struct Ymm {
    __m256i v;
    static constexpr std::size_t kBlocks = 2;

    static DAEL_AEGIS_INLINE Ymm load(const std::uint8_t* from) noexcept {
        return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
    }
    DAEL_AEGIS_INLINE void store(std::uint8_t* to) const noexcept {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
    }
    static DAEL_AEGIS_INLINE Ymm of(const Xmm (&blocks)[2]) noexcept {
        return {_mm256_inserti128_si256(_mm256_castsi128_si256(blocks[0].v), blocks[1].v, 1)};
    }
    DAEL_AEGIS_INLINE void to(Xmm (&blocks)[2]) const noexcept {
        blocks[0] = {_mm256_castsi256_si128(v)};
        blocks[1] = {_mm256_extracti128_si256(v, 1)};
    }
};
DAEL_AEGIS_INLINE Ymm operator^(Ymm a, Ymm b) noexcept {
    return {_mm256_xor_si256(a.v, b.v)};
}
DAEL_AEGIS_INLINE Ymm aes_round(Ymm in, Ymm key) noexcept {
    return {_mm256_aesenc_epi128(in.v, key.v)};
}
#if DAEL_AEGIS_BLOCKS == 4
DAEL_AEGIS_INLINE Ymm xor3(Ymm a, Ymm b, Ymm c) noexcept {
    return {_mm256_ternarylogic_epi64(a.v, b.v, c.v, 0x96)};
}
DAEL_AEGIS_INLINE Ymm and_xor(Ymm a, Ymm b, Ymm c) noexcept {
    return {_mm256_ternarylogic_epi64(a.v, b.v, c.v, 0x6a)};
}
#else
DAEL_AEGIS_INLINE Ymm xor3(Ymm a, Ymm b, Ymm c) noexcept {
    return a ^ b ^ c;
}
DAEL_AEGIS_INLINE Ymm and_xor(Ymm a, Ymm b, Ymm c) noexcept {
    return {_mm256_xor_si256(_mm256_and_si256(a.v, b.v), c.v)};
}
#endif
#endif

#if DAEL_AEGIS_BLOCKS == 4
struct Zmm {
    __m512i v;
    static constexpr std::size_t kBlocks = 4;

    static DAEL_AEGIS_INLINE Zmm load(const std::uint8_t* from) noexcept {
        return {_mm512_loadu_si512(from)};
    }
    DAEL_AEGIS_INLINE void store(std::uint8_t* to) const noexcept { _mm512_storeu_si512(to, v); }
    static DAEL_AEGIS_INLINE Zmm of(const Xmm (&blocks)[4]) noexcept {
        __m512i all = _mm512_castsi128_si512(blocks[0].v);
        all = _mm512_inserti64x2(all, blocks[1].v, 1);
        all = _mm512_inserti64x2(all, blocks[2].v, 2);
        return {_mm512_inserti64x2(all, blocks[3].v, 3)};
    }
    DAEL_AEGIS_INLINE void to(Xmm (&blocks)[4]) const noexcept {
        blocks[0] = {_mm512_castsi512_si128(v)};
        blocks[1] = {_mm512_extracti64x2_epi64(v, 1)};
        blocks[2] = {_mm512_extracti64x2_epi64(v, 2)};
        blocks[3] = {_mm512_extracti64x2_epi64(v, 3)};
    }
};
DAEL_AEGIS_INLINE Zmm operator^(Zmm a, Zmm b) noexcept {
    return {_mm512_xor_si512(a.v, b.v)};
}
DAEL_AEGIS_INLINE Zmm aes_round(Zmm in, Zmm key) noexcept {
    return {_mm512_aesenc_epi128(in.v, key.v)};
}
DAEL_AEGIS_INLINE Zmm xor3(Zmm a, Zmm b, Zmm c) noexcept {
    return {_mm512_ternarylogic_epi64(a.v, b.v, c.v, 0x96)};
}
DAEL_AEGIS_INLINE Zmm and_xor(Zmm a, Zmm b, Zmm c) noexcept {
    return {_mm512_ternarylogic_epi64(a.v, b.v, c.v, 0x6a)};
}
#endif
