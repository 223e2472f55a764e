// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/cutter.hpp"

#include <algorithm>

namespace dael::vpn::path {
namespace {

using namespace inet;

constexpr std::size_t kTcpSum = 16, kUdpSum = 6;  // where the checksum is
// Headers are repeated in each segment: longer ones would make much of little, and nobody has them.
constexpr std::size_t kMostHeader = 1024;

std::uint64_t without(std::uint64_t sum, std::uint64_t part) noexcept {
    return sum + static_cast<std::uint16_t>(~fold(part));
}

}  // namespace

Cutter::Cutter(const VnetHeader& header, std::span<const std::uint8_t> packet) noexcept
    : packet_(packet) {
    fault_ = look(header);
}

Cutter::Fault Cutter::look(const VnetHeader& header) noexcept {
    const auto ip = parse(packet_);
    if (!ip) return Fault::not_ip;
    ip_ = *ip;
    const std::uint8_t* const p = packet_.data();
    partial_ = (header.flags & VnetHeader::kNeedsCsum) != 0;
    const bool tcp_there =
        ip_.protocol == kTcp && ip_.first && ip_.payload + kTcpHeader <= ip_.size;

    const unsigned type = header.gso_type & ~unsigned{VnetHeader::kEcn};
    if (type == VnetHeader::kNone) {
        header_ = largest_ = ip_.size;
        count_ = 1;
        syn_ = tcp_there && (p[ip_.payload + 13] & kSyn) != 0;
        if (!partial_) return Fault::none;
        l4_ = header.csum_start;
        checksum_ = l4_ + header.csum_offset;
        // The checksum may be that of a header further inside.
        const std::size_t least = ip_.version == 6 ? kIpv6Header : kIpv4Header;
        return l4_ >= least && checksum_ + 2 <= ip_.size ? Fault::none : Fault::bad_header;
    }

    if (type != VnetHeader::kTcp4 && type != VnetHeader::kTcp6 && type != VnetHeader::kUdp)
        return Fault::unknown_type;
    super_ = true;
    l4_ = ip_.payload;
    protocol_ = type == VnetHeader::kUdp ? kUdp : kTcp;
    if (type != VnetHeader::kUdp && ip_.version != (type == VnetHeader::kTcp4 ? 4 : 6))
        return Fault::bad_header;
    if (ip_.protocol != protocol_ || ip_.fragment || header.gso_size == 0) return Fault::bad_header;
    const std::size_t offset = protocol_ == kTcp ? kTcpSum : kUdpSum;
    if (partial_ && (header.csum_start != l4_ || header.csum_offset != offset))
        return Fault::bad_header;
    checksum_ = l4_ + offset;
    // hdr_len is not looked at: where packets were forwarded it says something else.
    if (protocol_ == kTcp) {
        if (!tcp_there) return Fault::bad_header;
        const std::size_t size = (p[l4_ + 12] >> 4) * std::size_t{4};
        if (size < kTcpHeader) return Fault::bad_header;
        header_ = l4_ + size;
    } else {
        header_ = l4_ + kUdpHeader;
    }
    if (header_ > ip_.size || header_ > kMostHeader) return Fault::bad_header;
    segment_ = header.gso_size;
    payload_ = ip_.size - header_;
    count_ = std::max<std::size_t>(1, (payload_ + segment_ - 1) / segment_);
    largest_ = header_ + std::min(segment_, payload_);

    // The pseudo-header without the length, and the transport header without what changes. Its
    // addresses are the packet's; where there are hops between, the last is known only by the half
    // checksum that is there, which has the whole length in it.
    const std::size_t whole = ip_.size - l4_;
    if (ip_.version == 4)  // without length, identification and checksum
        ip_base_ = sum(p, 2) + sum(p + 6, 4) + sum(p + 12, l4_ - 12);
    transport_base_ = ip_.routed && partial_ ? without(load_sum(p + checksum_),
                                                       word(static_cast<std::uint16_t>(whole)))
                                             : pseudo(ip_, protocol_, 0);
    if (protocol_ == kTcp) {
        transport_base_ += sum(p + l4_, 4) + sum(p + l4_ + 8, 4) + sum(p + l4_ + 14, 2) +
                           sum(p + l4_ + 18, header_ - l4_ - 18);
    } else {
        transport_base_ += sum(p + l4_, 4);
    }
    return Fault::none;
}

std::size_t Cutter::size(std::size_t i) const noexcept {
    if (!super_) return header_;
    return header_ + std::min(segment_, payload_ - i * segment_);
}

void Cutter::lay(std::size_t i, std::uint8_t* to) const noexcept {
    if (super_)
        lay_segment(i, to);
    else
        lay_alone(to);
}

void Cutter::lay_alone(std::uint8_t* to) const noexcept {
    std::memcpy(to, packet_.data(), ip_.size);
    if (!partial_) return;
    // The field holds the pseudo-header's sum, and so is part of what is summed.
    std::uint16_t checksum = finish(sum(to + l4_, ip_.size - l4_));
    // UDP: 0 would say that there is none (RFC 768). For TCP it means the same as 0xffff, but no
    // sender makes that of it.
    if (checksum == 0 && checksum_ - l4_ == kUdpSum) checksum = 0xffff;
    store_sum(to + checksum_, checksum);
}

void Cutter::lay_segment(std::size_t i, std::uint8_t* to) const noexcept {
    const std::uint8_t* const from = packet_.data();
    const std::size_t done = i * segment_;
    const std::size_t payload = std::min(segment_, payload_ - done);
    const bool last = i + 1 == count_;
    std::memcpy(to, from, header_);
    const std::uint64_t data = copy_and_sum(to + header_, from + header_ + done, payload);

    if (ip_.version == 6) {
        put16(to + 4, header_ - kIpv6Header + payload);
    } else {
        const auto size = static_cast<std::uint16_t>(header_ + payload);
        const auto id = static_cast<std::uint16_t>(get16(from + 4) + i);
        put16(to + 2, size);
        put16(to + 4, id);
        store_sum(to + 10, finish(ip_base_ + word(size) + word(id)));
    }
    const std::size_t length = header_ - l4_ + payload;
    std::uint64_t s = transport_base_ + data + word(static_cast<std::uint16_t>(length));
    std::uint8_t* const transport = to + l4_;
    if (protocol_ == kTcp) {
        const std::uint32_t sequence = get32(from + l4_ + 4) + static_cast<std::uint32_t>(done);
        put32(transport + 4, sequence);
        // FIN and PSH are of the last byte, CWR is said once (RFC 3168, 6.1.2).
        unsigned flags = from[l4_ + 13];
        if (!last) flags &= ~unsigned{kFin | kPsh};
        if (i != 0) flags &= ~unsigned{kCwr};
        transport[13] = static_cast<std::uint8_t>(flags);
        s += word(static_cast<std::uint16_t>(sequence >> 16)) +
             word(static_cast<std::uint16_t>(sequence)) +
             word(static_cast<std::uint16_t>(from[l4_ + 12] << 8 | flags));
        store_sum(to + checksum_, finish(s));
        return;
    }
    put16(transport + 4, length);
    // Where the sender wanted none, each has none.
    if (!partial_ && load_sum(from + checksum_) == 0 && ip_.version == 4) return;
    s += word(static_cast<std::uint16_t>(length));  // which stands in it, too
    const std::uint16_t checksum = finish(s);
    store_sum(to + checksum_, checksum == 0 ? 0xffff : checksum);
}

std::size_t Cutter::lay(std::size_t first, Batch& batch, std::uint8_t tos) const noexcept {
    const std::uint8_t next = ip_.version == 6 ? esp::kIpv6 : esp::kIpv4;
    for (; first < count_; ++first) {
        std::uint8_t* const to = batch.place(size(first), tos, next);
        if (to == nullptr) break;
        lay(first, to);
    }
    return first;
}

}  // namespace dael::vpn::path
