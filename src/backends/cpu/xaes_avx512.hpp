// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM (C2SP) by AVX-512: AES-256-GCM under a key that is derived of each message's nonce.
// Keys of sixteen messages are derived and expanded together, a message a lane; a
// message's last vectors are hashed between the rounds of the next one's first, as in
// gcm_avx512_lists.cpp.
//
// Constant time: no branch and no address depends on anything but sizes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/message.hpp>

#include "core/key_schedule.hpp"

namespace dael::cpu::xaes_avx512 {

// The keys of four messages, a message a lane.
struct alignas(64) Keys {
    static constexpr std::size_t kLanes = 4, kRounds = 14;
    std::uint8_t round_keys[kRounds + 1][kLanes][kBlockSize];
    // Powers of the hash subkey, byte-reversed and times x: H^16, H^12, H^8, H^4 and 1 by lanes,
    // and of each message H^5 to H^1, with room behind them, so that four may be read from any
    // place: what is there is multiplied by zeros.
    std::uint8_t far[5][kLanes][kBlockSize];
    std::uint8_t near[kLanes][5 + 3][kBlockSize];
    std::uint8_t masks[kLanes][kBlockSize];  // E(J0), byte-reversed
    Block j0[kLanes];
};

// Of as many messages as are derived together, twice, since the last of some is not at its end when
// the first of the next begins: for as long as a call runs, in locked memory, wiped afterwards.
inline constexpr std::size_t kGroups = 4;
using KeysOfCall = std::array<Keys, 2 * kGroups>;
// How many of those so many messages use.
constexpr std::size_t groups_of(std::size_t messages) noexcept {
    constexpr std::size_t kLanes = Keys::kLanes;
    return messages > 2 * kLanes * kGroups ? 2 * kGroups
           : messages > kLanes * kGroups   ? kGroups + groups_of(messages - kLanes * kGroups)
           : messages > 2 * kLanes         ? 4
           : messages > kLanes             ? 2
                                           : 1;
}

// Messages under one key; `keys` is where theirs may lie meanwhile. Tags go to
// `tags`, as many, and decryption does not look at those that the messages have; null: to where
// each message has its own. Some of what is secret is left on the stack, which the caller clears
// (clear_stack.hpp).
void messages(Direction direction, const core::KeySchedule& key, std::span<const Message> messages,
              KeysOfCall& keys, Block* tags) noexcept;

}  // namespace dael::cpu::xaes_avx512
