// SPDX-License-Identifier: Apache-2.0
// How the messages of the handshake lie in datagrams, and what their parts are called: docs/vpn.md
// has the same as tables. All numbers are big-endian; each type has one size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "vpn/handshake/noise.hpp"

namespace dael::vpn {

enum class MessageType : std::uint8_t {
    initiation = 1,
    response = 2,
    shared_initiation = 3,  // with a pre-shared secret (IKpsk2)
    shared_response = 4,
    cookie_reply = 5,
    hint = 6,
};

inline constexpr std::size_t kMacSize = 16, kSaltSize = 16, kCookieSize = 16;
using Mac = std::array<std::uint8_t, kMacSize>;

// At the beginning of each: four zero bytes, which no ESP packet has (RFC 3948 2.2), the type, and
// three bytes of 0.
inline constexpr std::size_t kHeadSize = 8;

namespace layout {

struct Initiation {
    static constexpr std::size_t sender = kHeadSize;  // 4: what the answer names
    static constexpr std::size_t noise = sender + 4;
    static constexpr std::size_t payload_size = 12 + 4;  // timestamp, SPI
    static constexpr std::size_t noise_size = Noise::kFirst + payload_size;
    static constexpr std::size_t mac1 = noise + noise_size, mac2 = mac1 + kMacSize;
    static constexpr std::size_t size = mac2 + kMacSize;
};
struct Response {
    static constexpr std::size_t sender = kHeadSize;
    static constexpr std::size_t receiver = sender + 4;  // 4: the initiation's sender
    static constexpr std::size_t noise = receiver + 4;
    static constexpr std::size_t payload_size = 4;  // SPI
    static constexpr std::size_t noise_size = Noise::kSecond + payload_size;
    static constexpr std::size_t mac1 = noise + noise_size, mac2 = mac1 + kMacSize;
    static constexpr std::size_t size = mac2 + kMacSize;
};
struct CookieReply {
    static constexpr std::size_t receiver = kHeadSize;  // 4: sender of what is answered
    static constexpr std::size_t salt = receiver + 4;
    static constexpr std::size_t sealed = salt + kSaltSize;
    static constexpr std::size_t sealed_size = kCookieSize + kTagSize;
    static constexpr std::size_t size = sealed + sealed_size;
};
struct Hint {
    static constexpr std::size_t spi = kHeadSize;  // 4: the one that is not known
    static constexpr std::size_t mac = spi + 4;
    static constexpr std::size_t size = mac + kMacSize;
};

static_assert(Initiation::size == 156 && Response::size == 100 && CookieReply::size == 60 &&
              Hint::size == 28);
// Nothing that is answered without being authentic is shorter than its answer.
static_assert(CookieReply::size <= Response::size && Response::size <= Initiation::size);

}  // namespace layout

inline constexpr std::size_t kLargestMessage = layout::Initiation::size;

// Labels: what is hashed with public keys, and into the keys of ESP. They tell this protocol and
// version from others.
inline constexpr std::string_view kPrologue = "daelstrom vpn 1";
inline constexpr std::string_view kMacLabel = "daelstrom vpn 1 mac";
inline constexpr std::string_view kCookieLabel = "daelstrom vpn 1 cookie";
inline constexpr std::string_view kEspLabel = "daelstrom vpn 1 esp";

inline BytesIn bytes_of(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline void put_u32(BytesOut bytes, std::size_t at, std::uint32_t number) noexcept {
    for (std::size_t i = 0; i < 4; ++i)
        bytes[at + i] = static_cast<std::uint8_t>(number >> (24 - 8 * i));
}
inline std::uint32_t get_u32(BytesIn bytes, std::size_t at) noexcept {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) number = number << 8 | bytes[at + i];
    return number;
}

// The type of a message that is as long as its type says, and has the head; else nothing.
std::optional<MessageType> type_of(BytesIn datagram) noexcept;
// Zeroes `bytes`, and writes the head.
void begin_message(BytesOut bytes, MessageType type) noexcept;

// Where a session's initiator tells the time: as TAI64N has it, but without leap seconds. Of two,
// the later one is the greater one, byte by byte.
using Timestamp = std::array<std::uint8_t, 12>;
Timestamp timestamp_of(std::uint64_t nanoseconds) noexcept;  // since 1970

}  // namespace dael::vpn
