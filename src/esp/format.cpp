// SPDX-License-Identifier: Apache-2.0
#include "esp/format.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace dael::esp {
namespace {

constexpr std::array<std::string_view, kVerdicts> kDescriptions{
    "accepted",
    "truncated",
    "malformed",
    "no SA of this SPI",
    "before the anti-replay window",
    "a replay",
    "the ICV does not match",
    "wrong padding",
    "the inner IP packet does not fit",
    "a dummy packet",
    "an IKE message",
    "a NAT keepalive",
    "the SA's sequence numbers are used up, or its lifetime is over",
    "no room in the buffer before or after the payload",
    "the cipher failed",
};

}  // namespace

std::string_view describe(Verdict verdict) noexcept {
    const auto index = static_cast<std::size_t>(verdict);
    return index < kDescriptions.size() ? kDescriptions[index] : "unknown verdict";
}

Result<> check(const Options& o, bool receiving) {
    const auto wrong = [&](std::string message) {
        return Error{Code::invalid_argument, "ESP: " + std::move(message)};
    };
    if (o.spi < 256)
        return wrong("SPI " + std::to_string(o.spi) +
                     "; 0 to 255 are reserved (RFC 4303 2.1), take 256 or above");
    if (o.icv_size != 8 && o.icv_size != 12 && o.icv_size != 16)
        return wrong("ICV of " + std::to_string(o.icv_size) +
                     " bytes; AES-GCM has 8, 12 or 16 (RFC 4106 6)");
    if (!receiving) {
        if ((o.udp_source == 0) != (o.udp_destination == 0))
            return wrong("one UDP port of two; give both, or none for ESP without UDP");
        return {};
    }
    constexpr std::uint32_t kLeast = 32, kMax = 1u << 20;
    if (o.window != 0 && (o.window < kLeast || o.window > kMax))
        return wrong("window of " + std::to_string(o.window) +
                     " packets; 32 to 1048576, or 0 for none (RFC 4303 3.4.3)");
    if (o.window == 0 && o.esn)
        return wrong(
            "extended sequence numbers need a window, 1024 for instance: their upper half "
            "is told by it (RFC 4303 2.2.1)");
    return {};
}

bool has_room(const Packet& p, const Options& options) noexcept {
    const std::uint64_t end = std::uint64_t{p.offset} + p.size;
    if (!p.buffer || end > p.capacity || std::max(p.size, p.pad_to) > kMaxPayload) return false;
    return p.offset >= headers(options) &&
           p.offset + encrypted_size(p.size, p.pad_to) + options.icv_size <= p.capacity;
}

std::uint8_t* wrap(const Packet& p, const Options& options) noexcept {
    std::uint8_t* const payload = p.buffer + p.offset;
    std::uint8_t* const esp = payload - kHeader;
    const std::size_t padded = std::max(p.size, p.pad_to);
    const std::size_t size = encrypted_size(p.size, p.pad_to), padding = size - 2 - padded;
    std::memset(payload + p.size, 0, padded - p.size);
    for (std::size_t i = 0; i < padding; ++i)
        payload[padded + i] = static_cast<std::uint8_t>(i + 1);
    payload[size - 2] = static_cast<std::uint8_t>(padding);
    payload[size - 1] = p.next_header;
    put32(esp, options.spi);
    if (options.udp_source != 0) {
        std::uint8_t* const udp = esp - kUdpHeader;
        put16(udp, options.udp_source);
        put16(udp + 2, options.udp_destination);
        put16(udp + 4, static_cast<std::uint32_t>(kUdpHeader + kHeader + size + options.icv_size));
        put16(udp + 6, 0);  // no checksum (RFC 3948 2.1)
    }
    return esp;
}

void grow(Packet& p, const Options& options) noexcept {
    const auto before = static_cast<std::uint32_t>(headers(options));
    p.size =
        before + static_cast<std::uint32_t>(encrypted_size(p.size, p.pad_to)) + options.icv_size;
    p.offset -= before;
}

}  // namespace dael::esp
