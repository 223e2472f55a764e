// SPDX-License-Identifier: Apache-2.0
// AEGIS (RFC 10032): authenticated encryption of AES rounds alone, without a key schedule: faster
// than AES-GCM, above all where each message has a key of its own.
//
// | mode       | key, bytes | nonce, bytes | tag, bytes | for                                     |
// |------------|------------|--------------|------------|-----------------------------------------|
// | aegis128l  | 16         | 16           | 16 or 32   | what the RFC says to take first         |
// | aegis256   | 32         | 32           | 16 or 32   | 256-bit security, nonces without limits |
// | aegis128x2 | 16         | 16           | 16 or 32   | both sides have wide vectors, or a GPU  |
// | aegis128x4 | 16         | 16           | 16 or 32   | the same, and messages are long         |
//
// The four are not each other's: what one has sealed no other opens. Nor is a tag of 16 bytes a
// part of one of 32.
//
// Safety: a nonce must never repeat under one key: whoever sees two messages of one nonce may
// recover the state, and with it read and forge both. Random nonces are for at most 2^48 messages
// under a key, and without limits in aegis256 (RFC 10032, "Security Considerations"). A batch that
// would repeat one is refused; two calls are not known to each other. Fewer than 2^61 bytes of data
// and of AAD each.
//
// Opening: AEGIS decrypts in one pass, and learns at its end whether the tag is right. When a call
// ends, nothing of a forgery's plaintext is left all the same. Where the output is apart from the
// input it holds zeros or what it held before; where it is the input it holds the ciphertext, as
// before. On the host and on a GPU alike; while the call runs others must not look at the output.
// In pieces: as pieces.hpp says, of which update_unverified() yields what nobody has verified.
//
// One message is one chain of steps: on a GPU it takes many messages at once, and of few that are
// long aegis128x4 is the fastest there.
//
// Batches: Engine::run with a key set, whose keys are all of the mode's size, and Engine::prepare
// in device memory. Pieces: Engine::begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/device/detail/hd.hpp>
#include <daelstrom/engine.hpp>
#include <daelstrom/message.hpp>

namespace dael::aegis {

// The most bytes of a message, and of AAD: fewer than 2^61 (RFC 10032, "Authenticated Encryption").
inline constexpr std::uint64_t kMaxData = (std::uint64_t{1} << 61) - 1;
inline constexpr std::uint64_t kMaxAad = (std::uint64_t{1} << 61) - 1;

constexpr std::size_t key_size(Mode mode) noexcept {  // bytes
    return mode == Mode::aegis256 ? 32 : 16;
}
constexpr std::size_t nonce_size(Mode mode) noexcept {  // bytes
    return mode == Mode::aegis256 ? 32 : 16;
}
constexpr bool valid_tag_size(std::size_t size) noexcept {
    return size == 16 || size == 32;
}

// `mode` is one of the four.
constexpr Cipher sealing(Mode mode, std::size_t tag_size = 16) noexcept {
    return {mode, Direction::encrypt, static_cast<std::uint8_t>(tag_size)};
}
constexpr Cipher opening(Mode mode, std::size_t tag_size = 16) noexcept {
    return {mode, Direction::decrypt, static_cast<std::uint8_t>(tag_size)};
}

// A message's start and start_rest, of a nonce of nonce_size(mode) bytes; on the host and in
// kernels, which make lists of messages.
DAEL_HD void set_start(Message& message, Mode mode, const std::uint8_t* nonce) noexcept {
    auto* const first = reinterpret_cast<std::uint8_t*>(&message.start);
    auto* const rest = reinterpret_cast<std::uint8_t*>(&message.start_rest);
    for (int i = 0; i < 16; ++i) {
        first[i] = nonce[i];
        rest[i] = mode == Mode::aegis256 ? nonce[16 + i] : std::uint8_t{0};
    }
}

// One message in host memory; tag.size() is the tag's size. Errors: as Engine::run; iv_size;
// invalid_argument (a mode that is not AEGIS, a key or tag of another size); open: authentication.
DAEL_API Result<Ran> seal(Engine& engine, Mode mode, const Key& key,
                          std::span<const std::uint8_t> nonce, HostIn aad, HostIn in, HostOut out,
                          std::span<std::uint8_t> tag);
DAEL_API Result<Ran> open(Engine& engine, Mode mode, const Key& key,
                          std::span<const std::uint8_t> nonce, HostIn aad, HostIn in, HostOut out,
                          std::span<const std::uint8_t> tag);

}  // namespace dael::aegis
