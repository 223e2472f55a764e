// SPDX-License-Identifier: Apache-2.0
#include "vpn/handshake/messages.hpp"

#include <algorithm>

namespace dael::vpn {

std::optional<MessageType> type_of(BytesIn datagram) noexcept {
    if (datagram.size() < kHeadSize || get_u32(datagram, 0) != 0) return std::nullopt;
    if (datagram[5] != 0 || datagram[6] != 0 || datagram[7] != 0) return std::nullopt;
    const auto type = static_cast<MessageType>(datagram[4]);
    std::size_t size = 0;
    switch (type) {
        case MessageType::initiation:
        case MessageType::shared_initiation:
            size = layout::Initiation::size;
            break;
        case MessageType::response:
        case MessageType::shared_response:
            size = layout::Response::size;
            break;
        case MessageType::cookie_reply:
            size = layout::CookieReply::size;
            break;
        case MessageType::hint:
            size = layout::Hint::size;
            break;
    }
    if (datagram.size() != size) return std::nullopt;  // of another type it is 0
    return type;
}

void begin_message(BytesOut bytes, MessageType type) noexcept {
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
    bytes[4] = static_cast<std::uint8_t>(type);
}

Timestamp timestamp_of(std::uint64_t nanoseconds) noexcept {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const std::uint64_t seconds = (std::uint64_t{1} << 62) + nanoseconds / kSecond;
    Timestamp stamp;
    put_u32(stamp, 0, static_cast<std::uint32_t>(seconds >> 32));
    put_u32(stamp, 4, static_cast<std::uint32_t>(seconds));
    put_u32(stamp, 8, static_cast<std::uint32_t>(nanoseconds % kSecond));
    return stamp;
}

}  // namespace dael::vpn
