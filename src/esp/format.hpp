// SPDX-License-Identifier: Apache-2.0
// How an ESP packet lies in memory (RFC 4303 2, RFC 4106 3, RFC 3948 2): what is written around a
// payload, and what is read before a packet is authentic, and after.
#pragma once

#include <array>
#include <cstdint>

#include <daelstrom/esp.hpp>

namespace dael::esp {

inline constexpr std::size_t kIvAt = 8;  // from the SPI on
inline constexpr std::size_t kPlainAad = 8, kEsnAad = 12;
using EsnAad = std::array<std::uint8_t, kEsnAad>;

// Packets that are worked on together, in arrays on the stack.
inline constexpr std::size_t kTogether = 32;

inline void put16(std::uint8_t* to, std::uint32_t value) noexcept {
    to[0] = static_cast<std::uint8_t>(value >> 8);
    to[1] = static_cast<std::uint8_t>(value);
}
inline void put32(std::uint8_t* to, std::uint32_t value) noexcept {
    put16(to, value >> 16);
    put16(to + 2, value);
}
inline std::uint32_t get16(const std::uint8_t* from) noexcept {
    return std::uint32_t{from[0]} << 8 | from[1];
}
inline std::uint32_t get32(const std::uint8_t* from) noexcept {
    return get16(from) << 16 | get16(from + 2);
}

// SPI and the whole number (RFC 4106 5).
inline void put_esn_aad(EsnAad& aad, std::uint32_t spi, std::uint64_t number) noexcept {
    put32(aad.data(), spi);
    put32(aad.data() + 4, static_cast<std::uint32_t>(number >> 32));
    put32(aad.data() + 8, static_cast<std::uint32_t>(number));
}

Result<> check(const Options& options, bool receiving);

// Bytes before the payload.
constexpr std::size_t headers(const Options& options) noexcept {
    return kHeader + (options.udp_source != 0 ? kUdpHeader : 0);
}

// The bytes that are encrypted: payload, TFC padding, padding to whole words, two bytes more.
constexpr std::uint64_t encrypted_size(std::uint64_t size, std::uint64_t pad_to) noexcept {
    const std::uint64_t padded = size < pad_to ? pad_to : size;
    return (padded + 2 + 3) / 4 * 4;
}

// Whether there is room around the payload for all that an SA adds.
bool has_room(const Packet& packet, const Options& options) noexcept;
// Writes trailer and headers around a payload that has room, all but sequence number, IV and ICV.
// Returns where the SPI is.
std::uint8_t* wrap(const Packet& packet, const Options& options) noexcept;
// After encryption: the packet is now the ESP packet.
void grow(Packet& packet, const Options& options) noexcept;

// What lies in front of anything encrypted. `spi_at`: where the ESP header is. Verdicts: ok,
// truncated, malformed, ike (which is taken out), keepalive.
struct Outside {
    Verdict verdict = Verdict::ok;
    std::uint8_t* at = nullptr;  // the SPI
    std::size_t size = 0;        // bytes from there on
};
inline Outside look_outside(Packet& p, Framing framing) noexcept {
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

// An inner packet says its own length, and what follows is TFC padding (RFC 4303 2.7).
inline bool inner_size(std::uint8_t next_header, const std::uint8_t* inner,
                       std::size_t& size) noexcept {
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

// What was encrypted, and is authentic: `size` bytes, at least 4. Verdicts: ok, bad_padding,
// bad_inner, dummy.
struct Inside {
    Verdict verdict = Verdict::ok;
    std::size_t payload = 0;  // bytes
    std::uint8_t next_header = 0;
};
inline Inside look_inside(const std::uint8_t* plain, std::size_t size) noexcept {
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
