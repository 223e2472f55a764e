// SPDX-License-Identifier: Apache-2.0
// What a tunnel changes in, or answers to, the packets that it carries: TCP's MSS, ECN, and word
// that a packet is too big. No state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vpn/path/endpoint.hpp"

namespace dael::vpn::path {

// Lowers the MSS that a TCP SYN offers to what fits an IP packet of `mtu` bytes (RFC 6691: without
// IP and TCP options), and mends its checksum, which must be whole (not the kernel's half, so after
// Cutter::lay()). Says whether it changed anything. Other packets are left alone, and SYNs without
// the option too (IPv4's default of 536 fits any path).
bool clamp_mss(std::span<std::uint8_t> packet, std::size_t mtu) noexcept;

// ECN by RFC 6040, normal mode. Outside goes what is inside; DSCP too if asked for (RFC 2983: the
// uniform model), else 0.
constexpr std::uint8_t outer_tos(std::uint8_t inner, bool copy_dscp) noexcept {
    return copy_dscp ? inner : static_cast<std::uint8_t>(inner & 3);
}
// What is inside after it came in an outer header with this ECN field (RFC 6040 4.2, figure 4):
// changes the inner header where it must. False: to be dropped (congestion met one that cannot be
// told). `packet` is an IPv4 or IPv6 packet; others stay as they are.
bool take_ecn(std::span<std::uint8_t> packet, std::uint8_t outer_tos) noexcept;

// "Fragmentation needed" (RFC 1191) or "packet too big" (RFC 8201) for a packet of TUN that cannot
// go, from `source` (ours, inside, of the packet's family), to be written to TUN. Says how many
// bytes it is: at most kMostTooBig; 0: none may be sent (RFC 1812 4.3.2.7, RFC 4443 2.4(e): answers
// to ICMP errors, to fragments but the first, to many, from nobody; IPv4 without DF).
// The caller bounds the rate.
inline constexpr std::size_t kMostTooBig = 1280;
std::size_t too_big(std::span<const std::uint8_t> packet, std::size_t mtu, const Address& source,
                    std::span<std::uint8_t, kMostTooBig> answer) noexcept;

// The largest inner packet whose ESP packet fits an outer path of `mtu` bytes; `six`: IPv6 outside.
std::size_t inner_mtu(std::size_t outer_mtu, bool six) noexcept;

}  // namespace dael::vpn::path
