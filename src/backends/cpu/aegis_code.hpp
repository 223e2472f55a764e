// SPDX-License-Identifier: Apache-2.0
// AEGIS (RFC 10032) by the AES instructions of x86-64: what its three forms have alike, each for
// the vector units of its name. aegis.hpp is what the backend calls.
//
// Constant time: no branch and no address depends on anything but sizes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/message.hpp>

namespace dael::cpu::aegis {

inline constexpr std::size_t kMaxRate = 128, kMaxTag = 32;

// A message's state between the calls below: of AEGIS-128X4 eight times four blocks. Secret.
struct alignas(64) State {
    std::array<std::uint8_t, 512> bytes;
};

// A message, and where its key and its tag are.
struct Job {
    const std::uint8_t* key;  // 16 bytes, or 32
    const Message* message;
    std::uint8_t* tag;  // gets it
};

struct Form {
    // Whether it has too few registers for some states, so that parts of them are on the stack
    // below a call that has returned.
    bool spills;
    // Messages side by side where that is faster, decrypted without a look at their tags.
    void (*run)(Mode mode, Direction direction, std::span<const Job> jobs,
                std::size_t tag_size) noexcept;

    // One in pieces. `size` is a multiple of the rate, but for the last AAD's, which is filled up
    // with zeros.
    void (*begin)(Mode mode, const std::uint8_t* key, const Block& nonce, const Block& nonce_rest,
                  State& state) noexcept;
    void (*absorb)(Mode mode, State& state, const std::uint8_t* aad, std::size_t size) noexcept;
    void (*crypt)(Mode mode, Direction direction, State& state, const std::uint8_t* in,
                  std::uint8_t* out, std::size_t size) noexcept;
    // What the next `rate` bytes are XORed with. absorb() of the plaintext then does the step.
    void (*keystream)(Mode mode, const State& state, std::uint8_t* to) noexcept;
    // The state is used up. Sizes in bytes.
    void (*finish)(Mode mode, State& state, std::uint64_t aad_size, std::uint64_t size,
                   std::uint8_t* tag, std::size_t tag_size) noexcept;
};
extern const Form kAesni;    // AES-NI and SSE4.2
extern const Form kVaes256;  // AVX2 and VAES
extern const Form kVaes512;  // AVX-512 and VAES

}  // namespace dael::cpu::aegis
