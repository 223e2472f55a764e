// SPDX-License-Identifier: Apache-2.0
// What an ESP packet takes on the wire: sizes, for interfaces' MTUs and for buffers, and the one
// checksum around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/esp.hpp>

namespace dael::esp {

// Bytes of the packet that a payload of `payload` bytes becomes, from its UDP header on where the
// SA has ports, else from its SPI on; outer IP headers come on top. `pad_to` as of Packet.
DAEL_API std::size_t packet_size(const Options& options, std::size_t payload,
                                 std::size_t pad_to = 0) noexcept;
// The longest payload whose packet takes no more than `room` bytes: the link's MTU without the
// outer IP header (20 bytes, of IPv6 40). 0 where not even an empty one fits, or nothing else.
DAEL_API std::size_t most_payload(const Options& options, std::size_t room) noexcept;

// Writes the checksum of a UDP datagram, from its header on, that travels over IPv6 (RFC 8200 8.1),
// from these addresses of 16 bytes: what encapsulate() makes has none, which receivers over IPv6
// drop. It goes over all of the packet, so it costs about what a copy of it does. Error:
// invalid_argument (below 8 bytes, above 65,535, or not the length that its header says).
DAEL_API Result<> udp6_checksum(std::span<std::uint8_t> datagram,
                                std::span<const std::uint8_t, 16> source,
                                std::span<const std::uint8_t, 16> destination);

}  // namespace dael::esp
