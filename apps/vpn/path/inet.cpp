// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/inet.hpp"

namespace dael::vpn::inet {
namespace {

constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51,
                       kDestination = 60, kMobility = 135, kHip = 139, kShim6 = 140;

bool parse4(std::span<const std::uint8_t> packet, Ip& ip) noexcept {
    const std::uint8_t* const p = packet.data();
    const std::size_t header = (p[0] & 0xf) * 4u, size = get16(p + 2);
    if (header < kIpv4Header || size < header || size > packet.size()) return false;
    const std::uint16_t fragment = get16(p + 6);
    ip.tos = p[1], ip.hops = p[8], ip.protocol = p[9];
    ip.dont_fragment = (fragment & 0x4000) != 0;
    ip.fragment = (fragment & 0x3fff) != 0;
    ip.first = (fragment & 0x1fff) == 0;
    ip.payload = header, ip.size = size;
    ip.source = p + 12, ip.destination = p + 16;
    return true;
}

// RFC 8200, 4: extension headers up to the first that is none, or that is not all there.
void skip_extensions(const std::uint8_t* p, Ip& ip) noexcept {
    constexpr int kMost = 16;  // nobody sends more; hostile ones would keep us busy
    for (int i = 0; i < kMost; ++i) {
        const std::size_t at = ip.payload;
        if (at + 8 > ip.size) return;
        std::size_t size = (p[at + 1] + std::size_t{1}) * 8;
        switch (ip.protocol) {
            case kHopByHop:
            case kDestination:
            case kMobility:
            case kHip:
            case kShim6:
            case kRouting:
                break;
            case kFragment:
                size = 8;
                break;
            case kAuthentication:
                size = (p[at + 1] + std::size_t{2}) * 4;  // RFC 4302, 2.2
                break;
            default:
                return;
        }
        if (at + size > ip.size) return;
        if (ip.protocol == kRouting && p[at + 3] != 0) ip.routed = true;
        bool ends = false;
        if (ip.protocol == kFragment) {
            const std::uint16_t fragment = get16(p + at + 2);
            ip.fragment = ip.fragment || (fragment & 0xfff9) != 0;
            ends = (fragment & 0xfff8) != 0;  // what follows is no header
        }
        ip.protocol = p[at];
        ip.payload = at + size;
        if (ends) {
            ip.first = false;
            return;
        }
    }
}

bool parse6(std::span<const std::uint8_t> packet, Ip& ip) noexcept {
    const std::uint8_t* const p = packet.data();
    const std::size_t size = kIpv6Header + get16(p + 4);
    if (packet.size() < kIpv6Header || size > packet.size()) return false;
    if (size == kIpv6Header && p[6] == kHopByHop) return false;  // a jumbogram, or cut short
    ip.tos = static_cast<std::uint8_t>(get16(p) >> 4), ip.hops = p[7], ip.protocol = p[6];
    ip.payload = kIpv6Header, ip.size = size;
    ip.source = p + 8, ip.destination = p + 24;
    skip_extensions(p, ip);
    return true;
}

}  // namespace

std::optional<Ip> parse(std::span<const std::uint8_t> packet) noexcept {
    if (packet.size() < kIpv4Header) return std::nullopt;
    Ip ip;
    ip.version = packet[0] >> 4;
    if (ip.version == 4 ? parse4(packet, ip) : ip.version == 6 && parse6(packet, ip)) return ip;
    return std::nullopt;
}

std::uint64_t pseudo(const Ip& ip, std::uint8_t protocol, std::size_t size) noexcept {
    // IPv6 has 32 bits of length, of which the upper ones are 0 here.
    return sum(ip.source, 2 * ip.address_size()) + word(protocol) +
           word(static_cast<std::uint16_t>(size));
}

void write_header_sum(std::uint8_t* packet, std::size_t header) noexcept {
    store_sum(packet + 10, 0);
    store_sum(packet + 10, finish(sum(packet, header)));
}

}  // namespace dael::vpn::inet
