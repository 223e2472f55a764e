// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/joiner.hpp"

namespace dael::vpn::path {
namespace {

using namespace inet;

constexpr std::size_t kMostTotal = 65535;  // what an IP header can say

std::uint32_t mix(std::uint32_t hash, const std::uint8_t* p, std::size_t size) noexcept {
    for (; size >= 4; p += 4, size -= 4) {
        std::uint32_t value;
        std::memcpy(&value, p, 4);
        hash = (hash ^ value) * 0x9e3779b1u;
        hash ^= hash >> 15;
    }
    return hash;
}

bool same(const std::uint8_t* a, const std::uint8_t* b, std::size_t size) noexcept {
    return std::memcmp(a, b, size) == 0;
}

}  // namespace

struct Joiner::Seen {
    std::uint8_t* ip = nullptr;
    std::size_t l4 = 0, header = 0, payload = 0;
    std::uint8_t protocol = 0;  // TCP or UDP, with ports at l4; else 0
    bool six = false;
    bool joins = false;  // may be joined, and its checksum is right
    bool is_ip = false;
    std::uint32_t hosts = 0, ports = 0;

    const std::uint8_t* addresses() const noexcept { return ip + (six ? 8 : 12); }
    std::size_t addresses_size() const noexcept { return six ? 32 : 8; }
};

Joiner::Joiner(const Offloads& offloads)
    : offloads_(offloads), flows_(std::make_unique<Flow[]>(kMostFlows)) {}

// Fills `seen`; says whether the packet may be one of several.
bool Joiner::look(std::span<std::uint8_t> packet, Seen& seen) noexcept {
    std::uint8_t* const p = seen.ip = packet.data();
    const auto ip = parse(packet);
    if (!ip) return false;
    seen.is_ip = true;
    seen.six = ip->version == 6;
    seen.hosts = mix(ip->version, seen.addresses(), seen.addresses_size());
    const bool tcp = ip->protocol == kTcp;
    if ((!tcp && ip->protocol != kUdp) || ip->fragment || ip->payload + kUdpHeader > ip->size)
        return false;
    seen.protocol = ip->protocol;
    seen.l4 = ip->payload;
    seen.ports = mix(seen.hosts ^ seen.protocol, p + seen.l4, 4);

    if (ip->size != packet.size()) return false;  // something follows, of which IP knows nothing
    const bool allowed = !tcp ? offloads_.udp : seen.six ? offloads_.tcp6 : offloads_.tcp4;
    if (!offloads_.vnet_header || !offloads_.checksum || !allowed) return false;
    if (seen.six) {
        if (seen.l4 != kIpv6Header || p[24] == 0xff) return false;  // to many: each by itself
    } else {
        if (seen.l4 != kIpv4Header || (p[6] & ~0x40) != 0 || p[16] >= 224) return false;
    }
    if (tcp) {
        if (seen.l4 + kTcpHeader > ip->size) return false;
        const std::size_t size = (p[seen.l4 + 12] >> 4) * std::size_t{4};
        seen.header = seen.l4 + size;
        if (size < kTcpHeader || (p[seen.l4 + 13] & ~kPsh) != kAck) return false;
    } else {
        seen.header = seen.l4 + kUdpHeader;
        if (get16(p + seen.l4 + 4) != ip->size - seen.l4 || load_sum(p + seen.l4 + 6) == 0)
            return false;
    }
    if (seen.header >= ip->size) return false;
    seen.payload = ip->size - seen.header;
    // A right sum comes to all ones, with the checksum in it. What is joined gets a new IP header.
    const std::size_t length = ip->size - seen.l4;
    if (fold(sum(p + seen.l4, length, pseudo(*ip, seen.protocol, length))) != 0xffff ||
        (!seen.six && fold(sum(p, kIpv4Header)) != 0xffff)) {
        ++counters_.bad_checksums;
        return false;
    }
    return true;
}

// Whether cutting the two together would give back both.
bool Joiner::joins(const Flow& f, const Seen& s) const noexcept {
    const std::uint8_t *const a = f.ip, *const b = s.ip;
    if (!f.open || f.header != s.header || s.payload > f.size || f.parts > kMostParts - 1 ||
        f.total + s.payload > kMostTotal)
        return false;
    if (s.six) {
        if (!same(a, b, 4) || a[7] != b[7]) return false;  // class, flow label; hop limit
    } else {
        if (a[1] != b[1] || a[8] != b[8] || a[6] != b[6]) return false;  // TOS, TTL, DF
        // The identification counts up; under DF it has no meaning (RFC 6864, 4.1).
        if ((a[6] & 0x40) == 0 && get16(b + 4) != f.id) return false;
    }
    if (s.protocol == kUdp) return true;
    const std::uint8_t *const x = a + s.l4, *const y = b + s.l4;
    return get32(y + 4) == f.next && same(x + 8, y + 8, 5) &&  // acknowledgement, header's length
           same(x + 14, y + 14, 2) && same(x + 18, y + 18, s.header - s.l4 - 18);
}

bool Joiner::add(std::span<std::uint8_t> packet) noexcept {
    if (count_ == kMostFlows) return false;
    Seen seen;
    seen.joins = look(packet, seen);
    ++counters_.packets;
    counters_.bytes += packet.size();

    const bool tcp = seen.protocol == kTcp;
    if (seen.protocol != 0) {
        // The newest of its flow; the others are closed already.
        for (std::size_t i = count_; i-- > 0;) {
            Flow& f = flows_[i];
            if (ports_[i] != seen.ports || f.protocol != seen.protocol || f.six != seen.six ||
                !same(f.ip + (f.six ? 8 : 12), seen.addresses(), seen.addresses_size()) ||
                !same(f.ip + f.l4, seen.ip + seen.l4, 4))
                continue;
            if (!seen.joins || !joins(f, seen)) {
                f.open = false;
                break;
            }
            f.part[++f.parts] = {seen.ip + seen.header, seen.payload};
            f.total += seen.payload;
            f.next += static_cast<std::uint32_t>(seen.payload);
            ++f.id;
            bool ends = seen.payload < f.size;
            if (tcp && (seen.ip[seen.l4 + 13] & kPsh) != 0) {
                f.ip[f.l4 + 13] |= kPsh;
                ends = true;
            }
            if (ends) f.open = false;
            return true;
        }
    } else if (seen.is_ip) {
        // A fragment, or what we cannot read: it may be of any flow between the two.
        for (std::size_t i = 0; i < count_; ++i)
            if (hosts_[i] == seen.hosts) flows_[i].open = false;
    }

    hosts_[count_] = seen.hosts;
    ports_[count_] = seen.ports;
    Flow& f = flows_[count_++];
    f.ip = seen.ip, f.l4 = seen.l4, f.header = seen.header, f.size = seen.payload;
    f.total = packet.size(), f.protocol = seen.protocol, f.six = seen.six;
    f.open = seen.joins && !(tcp && (seen.ip[seen.l4 + 13] & kPsh) != 0);
    if (seen.joins) {
        f.next = get32(seen.ip + seen.l4 + 4) + static_cast<std::uint32_t>(seen.payload);
        f.id = static_cast<std::uint16_t>(get16(seen.ip + 4) + 1);
    }
    f.parts = 1;
    f.part[1] = {packet.data(), packet.size()};
    return true;
}

std::span<const iovec> Joiner::seal(Flow& f) noexcept {
    ++counters_.writes;
    f.vnet = {};
    if (f.parts > 1) {
        std::uint8_t* const p = f.ip;
        if (f.six) {
            put16(p + 4, f.total - kIpv6Header);
        } else {
            put16(p + 2, f.total);
            write_header_sum(p, f.l4);
        }
        const bool udp = f.protocol == kUdp;
        const std::size_t length = f.total - f.l4;
        if (udp) put16(p + f.l4 + 4, length);
        f.vnet.flags = VnetHeader::kNeedsCsum;
        f.vnet.gso_type = udp ? VnetHeader::kUdp : f.six ? VnetHeader::kTcp6 : VnetHeader::kTcp4;
        f.vnet.hdr_len = static_cast<std::uint16_t>(f.header);
        f.vnet.gso_size = static_cast<std::uint16_t>(f.size);
        f.vnet.csum_start = static_cast<std::uint16_t>(f.l4);
        f.vnet.csum_offset = udp ? 6 : 16;
        // The pseudo-header's sum alone: the kernel, or a device, adds the rest.
        const std::uint64_t s = sum(p + (f.six ? 8 : 12), f.six ? 32 : 8) + word(f.protocol) +
                                word(static_cast<std::uint16_t>(length));
        store_sum(p + f.l4 + f.vnet.csum_offset, fold(s));
    }
    f.part[0] = {&f.vnet, sizeof f.vnet};
    const std::size_t skip = offloads_.vnet_header ? 0 : 1;
    return std::span<const iovec>(f.part).subspan(skip, f.parts + 1 - skip);
}

}  // namespace dael::vpn::path
