// SPDX-License-Identifier: Apache-2.0
#include "core/key_schedule.hpp"

#include <algorithm>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/device/detail/key_expansion.hpp>

namespace dael::core {

void expand_key(std::span<const std::uint8_t> key, KeySchedule& schedule) noexcept {
    const int nk = static_cast<int>(key.size() / 4);  // words in the key (FIPS 197 5.2)
    const int rounds = nk + 6;
    schedule.key_bytes = static_cast<int>(key.size());
    schedule.rounds = rounds;
    std::copy(key.begin(), key.end(), schedule.raw.begin());

    std::uint8_t* const w = schedule.encrypt.data();
    std::uint8_t* const inverse = schedule.decrypt.data();
    std::copy(key.begin(), key.end(), w);
    const auto get = [w](int i) { return load_le<std::uint32_t>(w + 4 * i); };
    kernels::expand_words(
        nk, get, [w](int i, std::uint32_t word) { store_le(w + 4 * i, word); },
        [](std::uint32_t word) { return sub_each(word); });
    kernels::invert_words(
        rounds, get, [inverse](int i, std::uint32_t word) { store_le(inverse + 4 * i, word); });
}

}  // namespace dael::core
