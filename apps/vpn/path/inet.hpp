// SPDX-License-Identifier: Apache-2.0
// IP, TCP and UDP headers as they lie in packets: where things are, and sums. Nothing here reads a
// byte that was not shown to be there. No state, so any thread may call anything.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace dael::vpn::inet {

inline constexpr std::uint8_t kIcmp = 1, kTcp = 6, kUdp = 17, kIcmp6 = 58;
inline constexpr std::size_t kIpv4Header = 20, kIpv6Header = 40;  // without options
inline constexpr std::size_t kTcpHeader = 20, kUdpHeader = 8;
inline constexpr std::uint8_t kFin = 0x01, kSyn = 0x02, kPsh = 0x08, kAck = 0x10, kCwr = 0x80;

inline std::uint16_t get16(const std::uint8_t* p) noexcept {
    return static_cast<std::uint16_t>(p[0] << 8 | p[1]);
}
inline std::uint32_t get32(const std::uint8_t* p) noexcept {
    return std::uint32_t{get16(p)} << 16 | get16(p + 2);
}
inline void put16(std::uint8_t* p, std::size_t value) noexcept {
    p[0] = static_cast<std::uint8_t>(value >> 8);
    p[1] = static_cast<std::uint8_t>(value);
}
inline void put32(std::uint8_t* p, std::uint32_t value) noexcept {
    put16(p, value >> 16);
    put16(p + 2, value & 0xffff);
}

// Sums of 16-bit words in the machine's own byte order (RFC 1071, 2(B)), so that what is folded is
// stored as it is; an odd last byte counts as if a zero followed. 64 bits never overflow here.
std::uint64_t sum(const std::uint8_t* from, std::size_t size, std::uint64_t start = 0) noexcept;
// The same while copying. The two must not overlap.
std::uint64_t copy_and_sum(std::uint8_t* to, const std::uint8_t* from, std::size_t size,
                           std::uint64_t start = 0) noexcept;
// What is added where a number stands that is no byte of the packet.
inline std::uint64_t word(std::uint16_t value) noexcept {
    return std::endian::native == std::endian::little
               ? static_cast<std::uint16_t>(value << 8 | value >> 8)
               : value;
}
inline std::uint16_t fold(std::uint64_t sum) noexcept {
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
}
inline std::uint16_t finish(std::uint64_t sum) noexcept {  // what a checksum field holds
    return static_cast<std::uint16_t>(~fold(sum));
}
inline std::uint16_t load_sum(const std::uint8_t* p) noexcept {
    std::uint16_t value;
    std::memcpy(&value, p, sizeof value);
    return value;
}
inline void store_sum(std::uint8_t* p, std::uint16_t value) noexcept {
    std::memcpy(p, &value, sizeof value);
}
// RFC 1624: the checksum after a 16-bit field changed from `before` to `after` (both as get16()).
std::uint16_t changed(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) noexcept;

// What an IP header says of a packet. `header` and `size` lie within the bytes that were given.
struct Ip {
    std::uint8_t version = 0;    // 4 or 6
    std::uint8_t tos = 0;        // or traffic class: DSCP and ECN
    std::uint8_t protocol = 0;   // of what lies at `payload`; IPv6: after the extension headers
    std::uint8_t hops = 0;       // TTL or hop limit
    bool fragment = false;       // one of several: only the first has its transport header
    bool first = true;           // not a fragment, or the first one
    bool dont_fragment = false;  // IPv4's DF; IPv6 never may be fragmented on the way
    bool routed = false;      // an IPv6 routing header names other hops: not the last destination
    std::size_t payload = 0;  // where the IP header, and all extension headers, end
    std::size_t size = 0;     // of the whole packet, as it says; at least `payload`
    const std::uint8_t* source = nullptr;  // 4 or 16 bytes in the packet
    const std::uint8_t* destination = nullptr;
    std::size_t address_size() const noexcept { return version == 6 ? 16 : 4; }
};
// Nothing: not IP, cut short, or lengths that cannot be. Bytes after the packet are allowed, also a
// total length of 0 is not (jumbograms). Checksums are not looked at.
std::optional<Ip> parse(std::span<const std::uint8_t> packet) noexcept;

// The pseudo-header's part of a TCP or UDP checksum (RFC 9293 3.1, RFC 768, RFC 8200 8.1).
std::uint64_t pseudo(const Ip& ip, std::uint8_t protocol, std::size_t size) noexcept;
// Makes an IPv4 header's own checksum right; `header` bytes lie at `packet`.
void write_header_sum(std::uint8_t* packet, std::size_t header) noexcept;

}  // namespace dael::vpn::inet
