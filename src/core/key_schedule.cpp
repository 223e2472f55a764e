// SPDX-License-Identifier: Apache-2.0
#include "core/key_schedule.hpp"

#include <algorithm>
#include <bit>

#include <daelstrom/device/detail/aes_math.hpp>

namespace dael::core {

void expand_key(std::span<const std::uint8_t> key, KeySchedule& schedule) noexcept {
    const int nk = static_cast<int>(key.size() / 4);  // words in the key (FIPS 197 5.2)
    const int rounds = nk + 6;
    schedule.key_bytes = static_cast<int>(key.size());
    schedule.rounds = rounds;
    std::copy(key.begin(), key.end(), schedule.raw.begin());

    // A word is held with its first byte lowest, so RotWord is a rotation to the right.
    std::uint8_t* const w = schedule.encrypt.data();
    std::copy(key.begin(), key.end(), w);
    std::uint32_t temp = load_le<std::uint32_t>(w + 4 * (nk - 1));
    std::uint8_t rcon = 1;
    for (int i = nk; i < 4 * (rounds + 1); ++i) {
        if (i % nk == 0) {
            temp = sub_each(std::rotr(temp, 8)) ^ rcon;
            rcon = xtime(rcon);
        } else if (nk > 6 && i % nk == 4) {
            temp = sub_each(temp);
        }
        temp ^= load_le<std::uint32_t>(w + 4 * (i - nk));
        store_le(w + 4 * i, temp);
    }

    for (int round = 0; round <= rounds; ++round) {
        const bool middle = round > 0 && round < rounds;
        for (int half = 0; half < 16; half += 8) {
            const auto columns = load_le<std::uint64_t>(w + 16 * (rounds - round) + half);
            store_le(schedule.decrypt.data() + 16 * round + half,
                     middle ? inv_mix_columns_each(columns) : columns);
        }
    }
}

}  // namespace dael::core
