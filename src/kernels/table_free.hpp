// SPDX-License-Identifier: Apache-2.0
// AES encryption without a table, for what is encrypted seldom and finds no room for one: the
// S-box is computed, four bytes at once. No branch and no address depends on data.
#pragma once

#include <cstdint>

#include "core/aes_math.hpp"
#include "kernels/hd.hpp"
#include "kernels/rounds.hpp"

namespace dael::kernels {

// MixColumns on one column (FIPS 197 5.1.3).
DAEL_HD std::uint32_t mix_column(std::uint32_t column) {
    const std::uint32_t below = rotate24(column);  // the next row in each row's place
    return xor3(core::xtime_each(column), core::xtime_each(below) ^ below,
                rotate16(column) ^ rotate8(column));
}

template <int kRounds>
DAEL_HD Words4 encrypt_table_free(const RoundKeys& keys, const Words4& block) {
    Words4 s = block;
    DAEL_UNROLL(1)
    for (int r = 0;; ++r) {
        const std::uint32_t* k = keys.w + 4 * r;
        s = {s.x ^ k[0], s.y ^ k[1], s.z ^ k[2], s.w ^ k[3]};
        if (r == kRounds) return s;
        s = {core::sub_each(s.x), core::sub_each(s.y), core::sub_each(s.z), core::sub_each(s.w)};
        const auto shift_rows = [](std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                   std::uint32_t d) {
            return (a & 0xffu) | (b & 0xff00u) | (c & 0xff0000u) | (d & 0xff000000u);
        };
        s = {shift_rows(s.x, s.y, s.z, s.w), shift_rows(s.y, s.z, s.w, s.x),
             shift_rows(s.z, s.w, s.x, s.y), shift_rows(s.w, s.x, s.y, s.z)};
        if (r + 1 < kRounds)
            s = {mix_column(s.x), mix_column(s.y), mix_column(s.z), mix_column(s.w)};
    }
}

}  // namespace dael::kernels
