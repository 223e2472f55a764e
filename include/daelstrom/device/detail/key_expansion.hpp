// SPDX-License-Identifier: Apache-2.0
// The key expansion (FIPS 197 5.2) and the round keys of the equivalent inverse cipher (5.3.5),
// wherever the words lie. No branch and no address depends on the key, unless sub_word's do. For
// daelstrom's own use.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/device/detail/hd.hpp>

namespace dael::kernels {

// Puts words nk to 4 * nk + 27, each from those before it; words 0 to nk - 1 are the key, and nk is
// 4, 6 or 8. A word is held with its first byte lowest, so RotWord is a rotation to the right.
template <class Get, class Put, class SubWord>
DAEL_HD void expand_words(int nk, Get get, Put put, SubWord sub_word) {
    std::uint32_t temp = get(nk - 1), rcon = 1;
    DAEL_UNROLL(60)
    for (int i = nk; i < 4 * (nk + 7); ++i) {
        if (i % nk == 0) {
            temp = sub_word(temp >> 8 | temp << 24) ^ rcon;
            rcon = core::xtime_each(rcon);
        } else if (nk > 6 && i % nk == 4) {
            temp = sub_word(temp);
        }
        temp ^= get(i - nk);
        put(i, temp);
    }
}

// The round keys reversed, with InvMixColumns on all but the first and the last.
template <class Get, class Put>
DAEL_HD void invert_words(int rounds, Get get, Put put) {
    DAEL_UNROLL(15)
    for (int round = 0; round <= rounds; ++round) {
        DAEL_UNROLL(2)
        for (int half = 0; half < 4; half += 2) {
            const int from = 4 * (rounds - round) + half;
            std::uint64_t columns = std::uint64_t{get(from + 1)} << 32 | get(from);
            if (round > 0 && round < rounds) columns = core::inv_mix_columns_each(columns);
            put(4 * round + half, static_cast<std::uint32_t>(columns));
            put(4 * round + half + 1, static_cast<std::uint32_t>(columns >> 32));
        }
    }
}

}  // namespace dael::kernels
