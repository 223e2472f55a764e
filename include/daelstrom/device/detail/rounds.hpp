// SPDX-License-Identifier: Apache-2.0
// One AES block by T-tables: the rounds, both directions. For daelstrom's own use.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/block_access.hpp>
#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/device/detail/ttable.hpp>

namespace dael::kernels {

// Round keys in memory order: the schedule's `encrypt` or `decrypt` bytes, as words. Passed to
// kernels by value, so that they lie in the constant bank: free to read, safe across streams and
// threads. What follows takes any struct with as many words `w` as its rounds need.
struct RoundKeys {
    std::uint32_t w[60];
};

// Round `r` (1 to rounds - 1).
template <bool kInverse, int kTables, class Keys>
DAEL_HD Words4 round(const Tables<kTables, kInverse>& tables, const Keys& keys, int r,
                     const Words4& s) {
    const std::uint32_t* k = keys.w + 4 * r;
    if constexpr (kInverse)  // InvShiftRows: row i comes from column j - i (FIPS 197 5.3.1)
        return {tables.column(s.x, s.w, s.z, s.y, k[0]), tables.column(s.y, s.x, s.w, s.z, k[1]),
                tables.column(s.z, s.y, s.x, s.w, k[2]), tables.column(s.w, s.z, s.y, s.x, k[3])};
    else  // ShiftRows: row i comes from column j + i (FIPS 197 5.1.2)
        return {tables.column(s.x, s.y, s.z, s.w, k[0]), tables.column(s.y, s.z, s.w, s.x, k[1]),
                tables.column(s.z, s.w, s.x, s.y, k[2]), tables.column(s.w, s.x, s.y, s.z, k[3])};
}

// The last round without its round key; the caller adds that together with what else it has to XOR.
template <bool kInverse, int kTables>
DAEL_HD Words4 last_round(const Tables<kTables, kInverse>& tables, const Words4& s) {
    if constexpr (kInverse)
        return {tables.last_column(s.x, s.w, s.z, s.y), tables.last_column(s.y, s.x, s.w, s.z),
                tables.last_column(s.z, s.y, s.x, s.w), tables.last_column(s.w, s.z, s.y, s.x)};
    else
        return {tables.last_column(s.x, s.y, s.z, s.w), tables.last_column(s.y, s.z, s.w, s.x),
                tables.last_column(s.z, s.w, s.x, s.y), tables.last_column(s.w, s.x, s.y, s.z)};
}

// Rounds `kFirst` to the end, then the last round key and `mask` (the message or the previous
// block). `kUnroll` rounds make the body of the loop: fewer than all where code must be kept short.
template <int kRounds, int kFirst, int kUnroll = kRounds, bool kInverse, int kTables, class Keys>
DAEL_HD Words4 finish_masked(const Tables<kTables, kInverse>& tables, const Keys& keys, Words4 s,
                             const Words4& mask) {
    DAEL_UNROLL(kUnroll)
    for (int r = kFirst; r < kRounds; ++r) s = round<kInverse, kTables>(tables, keys, r, s);
    const Words4 t = last_round<kInverse, kTables>(tables, s);
    const std::uint32_t* k = keys.w + 4 * kRounds;
    return {xor3(t.x, k[0], mask.x), xor3(t.y, k[1], mask.y), xor3(t.z, k[2], mask.z),
            xor3(t.w, k[3], mask.w)};
}

// cipher(block) ^ mask: the whole block cipher, in the direction of the tables.
template <int kRounds, bool kInverse, int kTables, class Keys>
DAEL_HD Words4 crypt_masked(const Tables<kTables, kInverse>& tables, const Keys& keys,
                            const Words4& block, const Words4& mask) {
    const Words4 s{block.x ^ keys.w[0], block.y ^ keys.w[1], block.z ^ keys.w[2],
                   block.w ^ keys.w[3]};
    return finish_masked<kRounds, 1>(tables, keys, s, mask);
}

// The 128-bit big-endian counter `start` + `index`, modulo 2^128 (SP 800-38A B.1), as memory-order
// words.
DAEL_HD Words4 counter_block(const Words4& start, std::uint64_t index) {
    const std::uint64_t low =
        static_cast<std::uint64_t>(byte_swap(start.z)) << 32 | byte_swap(start.w);
    const std::uint64_t high =
        static_cast<std::uint64_t>(byte_swap(start.x)) << 32 | byte_swap(start.y);
    const std::uint64_t sum = low + index;
    const std::uint64_t carried = high + (sum < low);
    return {byte_swap(static_cast<std::uint32_t>(carried >> 32)),
            byte_swap(static_cast<std::uint32_t>(carried)),
            byte_swap(static_cast<std::uint32_t>(sum >> 32)),
            byte_swap(static_cast<std::uint32_t>(sum))};
}

}  // namespace dael::kernels
