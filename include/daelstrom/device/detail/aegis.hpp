// SPDX-License-Identifier: Apache-2.0
// The arithmetic of AEGIS (RFC 10032) on T-tables: blocks as four words of memory, a whole state in
// one lane. For daelstrom's own use. An AES round of AEGIS is AESENC, which is what a T-table round
// is: SubBytes, ShiftRows, MixColumns, and a round key that here is another block of the state.
//
// States whose blocks are spread over several lanes: backends/cuda/aegis/lanes.cuh.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/device/detail/block_access.hpp>
#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/device/detail/ttable.hpp>

namespace dael::kernels {

// "Conventions and Definitions": C0 and C1, as words of memory.
DAEL_HD constexpr Words4 aegis_c0() {
    return {0x02010100u, 0x0d080503u, 0x59372215u, 0x6279e990u};
}
DAEL_HD constexpr Words4 aegis_c1() {
    return {0x55183ddbu, 0xf12fc26du, 0x42311120u, 0xdd28b573u};
}

inline constexpr std::uint32_t kAegisBegin128 = 10;  // updates that a message begins with
inline constexpr std::uint32_t kAegisBegin256 = 16;  // four times four
inline constexpr std::uint32_t kAegisEnd = 7;        // and ends with

DAEL_HD Words4 xor3(const Words4& a, const Words4& b, const Words4& c) {
    return {xor3(a.x, b.x, c.x), xor3(a.y, b.y, c.y), xor3(a.z, b.z, c.z), xor3(a.w, b.w, c.w)};
}
DAEL_HD Words4 operator&(const Words4& a, const Words4& b) {
    return {a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w};
}
// (a & b) ^ c, in one LOP3.
DAEL_HD std::uint32_t and_xor(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#ifdef __CUDA_ARCH__
    std::uint32_t d;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    return (a & b) ^ c;
#endif
}
DAEL_HD Words4 and_xor(const Words4& a, const Words4& b, const Words4& c) {
    return {and_xor(a.x, b.x, c.x), and_xor(a.y, b.y, c.y), and_xor(a.z, b.z, c.z),
            and_xor(a.w, b.w, c.w)};
}

// AESRound(in, rk) of RFC 10032: columns of the shifted rows (FIPS 197 5.1.2), and the key.
// `Tables` is kernels::Tables<n, false>, or what has its column().
template <class Tables>
DAEL_HD Words4 aes_round(const Tables& tables, const Words4& s, const Words4& k = {}) {
    return {tables.column(s.x, s.y, s.z, s.w, k.x), tables.column(s.y, s.z, s.w, s.x, k.y),
            tables.column(s.z, s.w, s.x, s.y, k.z), tables.column(s.w, s.x, s.y, s.z, k.w)};
}

// AESRound(s, 0) of what is known when compiling.
DAEL_HD constexpr Words4 known_round(const Words4& s) {
    const auto column = [](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
        const std::uint32_t shifted =
            (a & 0xff) | (b & 0xff00) | (c & 0xff0000) | (d & 0xff000000u);
        return static_cast<std::uint32_t>(core::mix_columns_each(core::sub_each(shifted)));
    };
    return {column(s.x, s.y, s.z, s.w), column(s.y, s.z, s.w, s.x), column(s.z, s.w, s.x, s.y),
            column(s.w, s.x, s.y, s.z)};
}
DAEL_HD constexpr Words4 known_sum(const Words4& a, const Words4& b) {
    return {a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w};
}

// Update() of AEGIS-128L, and of one state of AEGIS-128X.
template <class Tables>
DAEL_HD void aegis_update(const Tables& tables, Words4 (&s)[8], const Words4& m0,
                          const Words4& m1) {
    const Words4 last = aes_round(tables, s[7]);
    DAEL_UNROLL(8)
    for (int i = 7; i > 0; --i) s[i] = aes_round(tables, s[i - 1], i == 4 ? s[i] ^ m1 : s[i]);
    s[0] = xor3(last, s[0], m0);
}
// And of AEGIS-256, whose updates take one block.
template <class Tables>
DAEL_HD void aegis_update(const Tables& tables, Words4 (&s)[6], const Words4& m, const Words4&) {
    const Words4 last = aes_round(tables, s[5]);
    DAEL_UNROLL(8)
    for (int i = 5; i > 0; --i) s[i] = aes_round(tables, s[i - 1], s[i]);
    s[0] = xor3(last, s[0], m);
}

// z0 and z1 of Enc() and Dec(); AEGIS-256 has one, and the other is zeros.
DAEL_HD void aegis_keystream(const Words4 (&s)[8], Words4& z0, Words4& z1) {
    z0 = and_xor(s[2], s[3], s[1]) ^ s[6];
    z1 = and_xor(s[6], s[7], s[5]) ^ s[2];
}
DAEL_HD void aegis_keystream(const Words4 (&s)[6], Words4& z0, Words4& z1) {
    z0 = xor3(and_xor(s[2], s[3], s[1]), s[4], s[5]);
    z1 = {};
}

// Block `i` of the state that Init() begins with. AEGIS-128L's and -128X's have 16 bytes of key and
// nonce, AEGIS-256's 32.
DAEL_HD Words4 aegis_first_128(std::uint32_t i, const Words4& key, const Words4& nonce) {
    return i % 4 == 0 ? key ^ nonce
           : i == 2   ? aegis_c0()
           : i < 4    ? aegis_c1()
           : i == 6   ? key ^ aegis_c1()
                      : key ^ aegis_c0();
}
DAEL_HD Words4 aegis_first_256(std::uint32_t i, const Words4 (&key)[2], const Words4 (&nonce)[2]) {
    return i < 2    ? key[i] ^ nonce[i]
           : i == 2 ? aegis_c1()
           : i == 3 ? aegis_c0()
           : i == 4 ? key[0] ^ aegis_c0()
                    : key[1] ^ aegis_c1();
}
// What update `i` of Init() takes there: k0, k1, k0 ^ n0, k1 ^ n1, in turn.
DAEL_HD Words4 aegis_begin_256(std::uint32_t i, const Words4 (&key)[2], const Words4 (&nonce)[2]) {
    const Words4 k = i % 2 != 0 ? key[1] : key[0], n = i % 2 != 0 ? nonce[1] : nonce[0];
    return i % 4 < 2 ? k : k ^ n;
}

// AEGIS-128L's state after the first three updates of Init(). The blocks that begin as C0 and C1
// are constants for a while, S4 begins as S0 and S7 as S5: 16 rounds do instead of 24.
template <class Tables>
DAEL_HD void aegis_third_128(const Tables& tables, Words4 (&s)[8], const Words4& key,
                             const Words4& nonce) {
    constexpr Words4 c0 = aegis_c0(), c1 = aegis_c1(), s2 = known_sum(known_round(c1), c0),
                     s3 = known_sum(known_round(c0), c1), s3_next = known_sum(known_round(s2), s3),
                     a1 = known_round(c1), a3 = known_round(s3), a3_next = known_round(s3_next);
    const Words4 t = aes_round(tables, key ^ nonce), u = aes_round(tables, key ^ c0);
    s[0] = u ^ key;  // S7 ^ S0 ^ nonce, and S0 is key ^ nonce
    s[1] = t ^ c1;
    s[4] = a1 ^ nonce;
    s[5] = xor3(t, key, c0);
    s[6] = xor3(u, key, c1);
    s[7] = aes_round(tables, key ^ c1, key ^ c0);

    Words4 last = aes_round(tables, s[7]);
    s[7] = aes_round(tables, s[6], s[7]);
    s[6] = aes_round(tables, s[5], s[6]);
    s[5] = aes_round(tables, s[4], s[5]);
    s[4] = xor3(s[4], a3, key);
    s[2] = aes_round(tables, s[1], s2);
    s[1] = aes_round(tables, s[0], s[1]);
    s[0] = xor3(last, s[0], nonce);

    last = aes_round(tables, s[7]);
    s[7] = aes_round(tables, s[6], s[7]);
    s[6] = aes_round(tables, s[5], s[6]);
    s[5] = aes_round(tables, s[4], s[5]);
    s[4] = xor3(s[4], a3_next, key);
    s[3] = aes_round(tables, s[2], s3_next);
    s[2] = aes_round(tables, s[1], s[2]);
    s[1] = aes_round(tables, s[0], s[1]);
    s[0] = xor3(last, s[0], nonce);
}

// ctx[d] of a state of AEGIS-128X: its first word, of which the others are 0.
DAEL_HD std::uint32_t aegis_context(std::uint32_t d, std::uint32_t degree) {
    return d | (degree - 1) << 8;
}

// LE64(ad_len_bits) || LE64(msg_len_bits) of Finalize().
DAEL_HD Words4 aegis_lengths(std::uint64_t aad_size, std::uint64_t size) {
    const std::uint64_t aad = aad_size * 8, data = size * 8;
    return {static_cast<std::uint32_t>(aad), static_cast<std::uint32_t>(aad >> 32),
            static_cast<std::uint32_t>(data), static_cast<std::uint32_t>(data >> 32)};
}

// What block `i` of a state of `kBlocks` is in a tag: of one of 16 bytes, a sum of all but S7 of
// AEGIS-128L's; of one of 32, its first 16 bytes are a sum of the first half, the others of the
// second.
template <std::uint32_t kBlocks>
DAEL_HD bool aegis_in_first(std::uint32_t i, std::uint32_t tag_size) {
    return tag_size == 16 ? i != 7 : i < kBlocks / 2;
}
template <std::uint32_t kBlocks>
DAEL_HD bool aegis_in_second(std::uint32_t i, std::uint32_t tag_size) {
    return tag_size == 32 && i >= kBlocks / 2;
}

}  // namespace dael::kernels
