// SPDX-License-Identifier: Apache-2.0
// The steps of AES-GCM-SIV (RFC 8452) by the instructions of x86-64: what its two forms have alike.
// siv.hpp is what the backend calls.
//
// Constant time: no branch and no address depends on anything but sizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/message.hpp>

#include "core/key_schedule.hpp"

namespace dael::cpu::siv {

// What is derived of a key and a nonce, for as long as a message takes: in locked memory, wiped
// afterwards.
struct alignas(64) Keys {
    std::uint8_t round_keys[core::kMaxRounds + 1][kBlockSize];  // of the message-encryption key
    int rounds;
    // Powers of the message-authentication key H: H^64, H^60, ..., H^4, and the sums of their
    // halves for long messages; and H^5 to H^1, with room behind them, so that four may be read
    // from any place: what is there is multiplied by zeros.
    alignas(64) std::uint8_t far[16][kBlockSize];
    alignas(64) std::uint8_t far_sums[16][kBlockSize];
    alignas(64) std::uint8_t near[5 + 3][kBlockSize];
};

// Messages under one key whose keys are derived together.
inline constexpr std::size_t kFour = 4;
struct KeysOfCall {
    Keys of[kFour];
};

struct Form {
    // Whether it has too few registers, so that some of what is secret is left on the stack.
    bool spills;
    // Derive (4): the keys of a message of `size` bytes of data or AAD, whichever are more.
    void (*derive)(const core::KeySchedule& key, const std::uint8_t* nonce, std::uint64_t size,
                   Keys& keys) noexcept;
    // The tag of a plaintext and AAD (4: POLYVAL, and its cipher).
    Block (*tag)(const Keys& keys, const std::uint8_t* nonce, const Message& message,
                 const std::uint8_t* plaintext) noexcept;
    // The message's data with the keystream that starts at a tag (4: AES-CTR).
    void (*crypt)(const Keys& keys, const std::uint8_t* tag, const Message& message) noexcept;
    // That with the message's own tag, and the tag that it should have had.
    Block (*open)(const Keys& keys, const std::uint8_t* nonce, const Message& message) noexcept;
    // Derive for four messages, of at most `size` bytes each; null: one by one. What is secret may
    // be left on the stack.
    void (*derive_four)(const core::KeySchedule& key, const Message* messages, std::uint64_t size,
                        KeysOfCall& keys) noexcept = nullptr;
};
extern const Form kAesni;   // AES-NI, PCLMULQDQ and SSE4.1
extern const Form kAvx512;  // AVX-512, VAES and VPCLMULQDQ

}  // namespace dael::cpu::siv
