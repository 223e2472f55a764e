// SPDX-License-Identifier: Apache-2.0
// The expanded key, in the forms that backends want. FIPS 197 section 5.2, computed without a
// secret-dependent branch or memory index.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <daelstrom/message.hpp>

namespace dael::core {

inline constexpr int kMaxRounds = 14;

struct alignas(64) KeySchedule {
    // Round keys as bytes in memory order, 16 bytes a round: FIPS 197's w[4*round] .. w[4*round+3].
    alignas(64) std::array<std::uint8_t, 16 * (kMaxRounds + 1)> encrypt;
    // The equivalent inverse cipher's (FIPS 197 5.3.5): reversed, with InvMixColumns on all but the
    // first and the last. What AESDEC and inverse T-tables want.
    alignas(64) std::array<std::uint8_t, 16 * (kMaxRounds + 1)> decrypt;
    std::array<std::uint8_t, 32> raw;  // the key itself, for libraries that expand it themselves
    int key_bytes;                     // 16, 24 or 32
    int rounds;                        // 10, 12 or 14

    std::span<const std::uint8_t> key() const noexcept {
        return {raw.data(), static_cast<std::size_t>(key_bytes)};
    }
};

// `key` is 16, 24 or 32 bytes; the caller has checked.
void expand_key(std::span<const std::uint8_t> key, KeySchedule& schedule) noexcept;

}  // namespace dael::core
