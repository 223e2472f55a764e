// SPDX-License-Identifier: Apache-2.0
#include "core/key_schedule.hpp"

#include <algorithm>

#include "core/aes_math.hpp"

namespace dael::core {

void expand_key(std::span<const std::uint8_t> key, KeySchedule& schedule) noexcept {
    const int nk = static_cast<int>(key.size() / 4);  // words in the key (FIPS 197 5.2)
    const int rounds = nk + 6;
    schedule.key_bytes = static_cast<int>(key.size());
    schedule.rounds = rounds;
    std::copy(key.begin(), key.end(), schedule.raw.begin());

    std::uint8_t* w = schedule.encrypt.data();
    std::copy(key.begin(), key.end(), w);
    std::uint8_t rcon = 1;
    for (int i = nk; i < 4 * (rounds + 1); ++i) {
        std::uint8_t t[4];
        std::copy_n(w + 4 * (i - 1), 4, t);
        if (i % nk == 0) {
            std::rotate(t, t + 1, t + 4);
            for (auto& byte : t) byte = sub_byte(byte);
            t[0] ^= rcon;
            rcon = xtime(rcon);
        } else if (nk > 6 && i % nk == 4) {
            for (auto& byte : t) byte = sub_byte(byte);
        }
        for (int b = 0; b < 4; ++b)
            w[4 * i + b] = static_cast<std::uint8_t>(w[4 * (i - nk) + b] ^ t[b]);
    }

    for (int round = 0; round <= rounds; ++round) {
        std::uint8_t* d = schedule.decrypt.data() + 16 * round;
        std::copy_n(w + 16 * (rounds - round), 16, d);
        if (round > 0 && round < rounds)
            for (int column = 0; column < 4; ++column) inv_mix_column(d + 4 * column);
    }
}

}  // namespace dael::core
