// SPDX-License-Identifier: Apache-2.0
// AES without a table, for what is encrypted seldom and finds no room for one, and for hosts: the
// S-box is computed, four bytes at once. No branch and no address depends on data. For daelstrom's
// own use.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/device/detail/rounds.hpp>

namespace dael::kernels {

// MixColumns on one column (FIPS 197 5.1.3).
DAEL_HD std::uint32_t mix_column(std::uint32_t column) {
    const std::uint32_t below = rotate24(column);  // the next row in each row's place
    return xor3(core::xtime_each(column), core::xtime_each(below) ^ below,
                rotate16(column) ^ rotate8(column));
}

// Rows 0 to 3 of columns a to d (FIPS 197 5.1.2, 5.3.1).
DAEL_HD std::uint32_t gather_rows(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                  std::uint32_t d) {
    return (a & 0xffu) | (b & 0xff00u) | (c & 0xff0000u) | (d & 0xff000000u);
}

template <int kRounds, class Keys>
DAEL_HD Words4 encrypt_table_free(const Keys& keys, const Words4& block) {
    Words4 s = block;
    DAEL_UNROLL(1)
    for (int r = 0;; ++r) {
        const std::uint32_t* k = keys.w + 4 * r;
        s = {s.x ^ k[0], s.y ^ k[1], s.z ^ k[2], s.w ^ k[3]};
        if (r == kRounds) return s;
        s = {core::sub_each(s.x), core::sub_each(s.y), core::sub_each(s.z), core::sub_each(s.w)};
        s = {gather_rows(s.x, s.y, s.z, s.w), gather_rows(s.y, s.z, s.w, s.x),
             gather_rows(s.z, s.w, s.x, s.y), gather_rows(s.w, s.x, s.y, s.z)};
        if (r + 1 < kRounds)
            s = {mix_column(s.x), mix_column(s.y), mix_column(s.z), mix_column(s.w)};
    }
}

// By the equivalent inverse cipher (FIPS 197 5.3.5), whose round keys are `keys`.
template <int kRounds, class Keys>
DAEL_HD Words4 decrypt_table_free(const Keys& keys, const Words4& block) {
    const auto inv_mix = [](std::uint32_t& a, std::uint32_t& b) {
        const std::uint64_t mixed =
            core::inv_mix_columns_each(static_cast<std::uint64_t>(b) << 32 | a);
        a = static_cast<std::uint32_t>(mixed);
        b = static_cast<std::uint32_t>(mixed >> 32);
    };
    Words4 s = block;
    DAEL_UNROLL(1)
    for (int r = 0;; ++r) {
        const std::uint32_t* k = keys.w + 4 * r;
        s = {s.x ^ k[0], s.y ^ k[1], s.z ^ k[2], s.w ^ k[3]};
        if (r == kRounds) return s;
        s = {core::inv_sub_each(s.x), core::inv_sub_each(s.y), core::inv_sub_each(s.z),
             core::inv_sub_each(s.w)};
        s = {gather_rows(s.x, s.w, s.z, s.y), gather_rows(s.y, s.x, s.w, s.z),
             gather_rows(s.z, s.y, s.x, s.w), gather_rows(s.w, s.z, s.y, s.x)};
        if (r + 1 < kRounds) {
            inv_mix(s.x, s.y);
            inv_mix(s.z, s.w);
        }
    }
}

}  // namespace dael::kernels
