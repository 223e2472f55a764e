// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/mend.hpp"

#include <algorithm>

#include "vpn/path/batch.hpp"
#include "vpn/path/inet.hpp"

namespace dael::vpn::path {
namespace {

using namespace inet;

constexpr std::uint8_t kNotEct = 0, kEct1 = 1, kCe = 3;

}  // namespace

bool clamp_mss(std::span<std::uint8_t> packet, std::size_t mtu) noexcept {
    const auto ip = parse(packet);
    if (!ip || ip->protocol != kTcp || ip->fragment || ip->payload + kTcpHeader > ip->size)
        return false;
    std::uint8_t* const tcp = packet.data() + ip->payload;
    const std::size_t header = (tcp[12] >> 4) * std::size_t{4};
    if ((tcp[13] & kSyn) == 0 || header < kTcpHeader || ip->payload + header > ip->size)
        return false;
    const std::size_t headers = (ip->version == 6 ? kIpv6Header : kIpv4Header) + kTcpHeader;
    if (mtu <= headers) return false;
    const std::size_t most = mtu - headers;
    for (std::size_t at = kTcpHeader; at < header;) {
        constexpr std::uint8_t kEnd = 0, kNothing = 1, kMss = 2;
        if (tcp[at] == kEnd) return false;
        if (tcp[at] == kNothing) {
            ++at;
            continue;
        }
        if (at + 2 > header) return false;
        const std::size_t size = tcp[at + 1];
        if (size < 2 || at + size > header) return false;
        if (tcp[at] == kMss && size == 4) {
            if (get16(tcp + at + 2) <= most) return false;
            // The two bytes may begin in the middle of a word, so words are summed, not fields.
            const std::size_t first = (at + 2) & ~std::size_t{1};
            const std::size_t words = (at + 3) / 2 - first / 2 + 1;
            std::uint16_t before[2] = {};
            for (std::size_t i = 0; i < words; ++i) before[i] = get16(tcp + first + 2 * i);
            put16(tcp + at + 2, most);
            std::uint16_t checksum = get16(tcp + 16);
            for (std::size_t i = 0; i < words; ++i)
                checksum = changed(checksum, before[i], get16(tcp + first + 2 * i));
            put16(tcp + 16, checksum);
            return true;
        }
        at += size;
    }
    return false;
}

bool take_ecn(std::span<std::uint8_t> packet, std::uint8_t outer_tos) noexcept {
    if (packet.size() < kIpv4Header) return true;
    std::uint8_t* const p = packet.data();
    const unsigned version = p[0] >> 4;
    if (version != 4 && (version != 6 || packet.size() < kIpv6Header)) return true;
    const auto inner = static_cast<std::uint8_t>(version == 4 ? p[1] & 3 : p[1] >> 4 & 3);
    const auto outer = static_cast<std::uint8_t>(outer_tos & 3);
    // Figure 4 of RFC 6040: what is outside counts where it says more; ECT(1) does beside ECT(0).
    std::uint8_t result = inner;
    if (outer == kCe) {
        if (inner == kNotEct) return false;
        result = kCe;
    } else if (outer == kEct1 && inner != kNotEct && inner != kCe) {
        result = kEct1;
    }
    if (result == inner) return true;
    if (version == 6) {
        p[1] = static_cast<std::uint8_t>((p[1] & 0xcf) | result << 4);
        return true;
    }
    const std::uint16_t before = get16(p);
    p[1] = static_cast<std::uint8_t>((p[1] & ~3) | result);
    put16(p + 10, changed(get16(p + 10), before, get16(p)));
    return true;
}

std::size_t too_big(std::span<const std::uint8_t> packet, std::size_t mtu, const Address& source,
                    std::span<std::uint8_t, kMostTooBig> answer) noexcept {
    const auto ip = parse(packet);
    if (!ip || source.family != ip->version || !ip->first || mtu > 0xffff) return 0;
    const bool six = ip->version == 6;
    const std::uint8_t* const from = ip->source;
    const std::size_t size = ip->address_size();
    const auto zero = [](std::uint8_t byte) { return byte == 0; };
    // From nobody, or from many.
    if (std::all_of(from, from + size, zero) || (six ? from[0] == 0xff : from[0] >= 224)) return 0;
    // To many, IPv6 does tell: paths to them have MTUs, too (RFC 4443, 2.4(e.3)).
    if (!six && (!ip->dont_fragment || ip->destination[0] >= 224)) return 0;
    // About errors nobody is told. (What the header does not show to be a question counts as one.)
    if (ip->protocol == (six ? kIcmp6 : kIcmp)) {
        if (ip->payload >= ip->size) return 0;
        const std::uint8_t type = packet[ip->payload];
        constexpr std::uint8_t kRedirect6 = 137;
        if (six ? type < 128 || type == kRedirect6
                : type != 0 && type != 8 && type != 13 && type != 14)
            return 0;
    }
    // As much of it as goes: RFC 4443, 3.2 (1,280 bytes), RFC 1812, 4.3.2.3 (576).
    constexpr std::size_t kHeader = 8;
    const std::size_t before = (six ? kIpv6Header : kIpv4Header) + kHeader;
    const std::size_t part = std::min(ip->size, (six ? 1280u : 576u) - before);
    const std::size_t total = before + part;
    std::uint8_t* const p = answer.data();
    std::memset(p, 0, before);
    std::uint8_t* const icmp = p + before - kHeader;
    std::memcpy(icmp + kHeader, packet.data(), part);
    std::uint64_t sum_before = 0;
    if (six) {
        p[0] = 0x60;
        put16(p + 4, kHeader + part);
        p[6] = kIcmp6, p[7] = 64;
        std::memcpy(p + 8, source.bytes.data(), 16);
        std::memcpy(p + 24, from, 16);
        icmp[0] = 2;
        put32(icmp + 4, static_cast<std::uint32_t>(mtu));
        sum_before =
            sum(p + 8, 32) + word(kIcmp6) + word(static_cast<std::uint16_t>(kHeader + part));
    } else {
        p[0] = 0x45, p[1] = 0xc0;  // internetwork control (RFC 1812, 4.3.2.5)
        put16(p + 2, total);
        p[8] = 64, p[9] = kIcmp;
        std::memcpy(p + 12, source.bytes.data(), 4);
        std::memcpy(p + 16, from, 4);
        write_header_sum(p, kIpv4Header);
        icmp[0] = 3, icmp[1] = 4;
        put16(icmp + 6, mtu);
    }
    store_sum(icmp + 2, finish(sum(icmp, kHeader + part, sum_before)));
    return total;
}

std::size_t inner_mtu(std::size_t outer_mtu, bool six) noexcept {
    const std::size_t outer = (six ? kIpv6Header : kIpv4Header) + kUdpHeader;
    const std::size_t least = kEspWire.size(0);
    if (outer_mtu < outer + least) return 0;
    // The packet, and two bytes of trailer, fill up to the last whole word.
    const std::size_t room = outer_mtu - outer - kEspWire.head - kEspWire.tail;
    return room / kEspWire.align * kEspWire.align - kEspWire.fixed;
}

}  // namespace dael::vpn::path
