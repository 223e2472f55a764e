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

// An inner packet says its own length, and what follows is TFC padding (RFC 4303 2.7).
bool inner_size(std::uint8_t next_header, const std::uint8_t* inner, std::size_t& size) noexcept {
    constexpr std::size_t kLeastIpv4 = 20, kIpv6Header = 40;
    if (next_header == kIpv4) {
        if (size < kLeastIpv4 || inner[0] >> 4 != 4) return false;
        const std::size_t header = 4 * std::size_t{inner[0] & 0x0fu}, total = get16(inner + 2);
        if (header < kLeastIpv4 || total < header || total > size) return false;
        size = total;
    } else if (next_header == kIpv6) {
        if (size < kIpv6Header || inner[0] >> 4 != 6) return false;
        const std::size_t total = kIpv6Header + get16(inner + 4);
        if (total > size) return false;
        size = total;
    }
    return true;
}

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

Outside look_outside(Packet& p, Framing framing) noexcept {
    if (!p.buffer || std::uint64_t{p.offset} + p.size > p.capacity) return {Verdict::malformed};
    std::uint8_t* at = p.buffer + p.offset;
    std::size_t size = p.size;
    if (framing == Framing::udp) {
        if (size < kUdpHeader) return {Verdict::truncated};
        const std::size_t said = get16(at + 4);
        if (said < kUdpHeader || said > size) return {Verdict::malformed};
        at += kUdpHeader;
        size = said - kUdpHeader;
    }
    constexpr std::size_t kMarker = 4;  // the "non-ESP marker": an SPI of zero
    if (framing != Framing::esp) {
        if (size == 1 && at[0] == 0xff) return {Verdict::keepalive};
        if (size >= kMarker && get32(at) == 0) {
            p.offset = static_cast<std::uint32_t>(at + kMarker - p.buffer);
            p.size = static_cast<std::uint32_t>(size - kMarker);
            return {Verdict::ike};
        }
    }
    if (size < kIvAt) return {Verdict::truncated};
    if (get32(at) == 0) return {Verdict::malformed};
    return {Verdict::ok, at, size};
}

Inside look_inside(const std::uint8_t* plain, std::size_t size) noexcept {
    const std::size_t padding = plain[size - 2];
    const std::uint8_t next_header = plain[size - 1];
    if (padding + 2 > size) return {Verdict::bad_padding};
    std::size_t payload = size - 2 - padding;
    for (std::size_t i = 0; i < padding; ++i)
        if (plain[payload + i] != i + 1) return {Verdict::bad_padding};
    if (next_header == kNoNext) return {Verdict::dummy};
    if (!inner_size(next_header, plain, payload)) return {Verdict::bad_inner};
    return {Verdict::ok, payload, next_header};
}

}  // namespace dael::esp
