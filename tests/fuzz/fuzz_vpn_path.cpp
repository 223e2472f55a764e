// SPDX-License-Identifier: Apache-2.0
// Packets of TUN as a hostile host or guest may hand them over, and opened packets as a hostile
// peer may send them: what is cut is what was said, what is joined cuts into what came, and nothing
// is touched outside.
#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz/fuzz.hpp"
#include "vpn/path/cutter.hpp"
#include "vpn/path/joiner.hpp"
#include "vpn/path/mend.hpp"

namespace {

using namespace dael::fuzz;
using namespace dael::vpn;
using namespace dael::vpn::path;

std::vector<Bytes> cut(const VnetHeader& header, const Bytes& packet) {
    std::vector<Bytes> parts;
    const Cutter cutter(header, packet);
    if (cutter.fault() != Cutter::Fault::none) return parts;
    std::size_t bytes = 0;
    const std::size_t count = std::min<std::size_t>(cutter.count(), 300);
    for (std::size_t i = 0; i < count; ++i) {
        parts.emplace_back(cutter.size(i));  // to the byte, so that a byte more is found
        cutter.lay(i, parts.back().data());
        bytes += parts.back().size();
        require(parts.back().size() <= cutter.largest(), "no packet is longer than the longest");
        const auto ip = inet::parse(parts.back());
        require(ip && ip->size == parts.back().size(), "what is cut is a packet of its size");
    }
    require(count != cutter.count() || bytes == cutter.bytes(), "bytes() are all bytes");
    return parts;
}

// Under DF the identification means nothing, and is made anew; a checksum of all ones is one of 0.
Bytes plain(Bytes bytes) {
    const auto ip = inet::parse(bytes);
    if (!ip) return bytes;
    const auto zero = [&](std::size_t at) {
        if (bytes[at] == 0xff && bytes[at + 1] == 0xff) bytes[at] = bytes[at + 1] = 0;
    };
    if (ip->protocol == inet::kTcp && ip->payload + inet::kTcpHeader <= ip->size)
        zero(ip->payload + 16);
    if (ip->version == 4) zero(10);
    if (ip->dont_fragment) bytes[4] = bytes[5] = bytes[10] = bytes[11] = 0;
    return bytes;
}

void join(std::vector<Bytes> packets) {
    Joiner joiner(Offloads{true, true, true, true, true, true});
    std::vector<Bytes> came, went;
    for (const Bytes& one : packets) came.push_back(plain(one));
    const auto write = [&](std::span<const iovec> parts) {
        VnetHeader header;
        require(parts.size() >= 2 && parts[0].iov_len == sizeof header, "a header goes before");
        std::memcpy(&header, parts[0].iov_base, sizeof header);
        Bytes packet;
        for (const iovec& part : parts.subspan(1)) {
            const auto* const p = static_cast<const std::uint8_t*>(part.iov_base);
            packet.insert(packet.end(), p, p + part.iov_len);
        }
        if (header.gso_type == VnetHeader::kNone) {
            went.push_back(plain(packet));
            return;
        }
        const auto again = cut(header, packet);
        require(again.size() == parts.size() - 1, "as many as were joined");
        for (const Bytes& one : again) went.push_back(plain(one));
    };
    for (Bytes& one : packets)
        if (!joiner.add(one)) {
            joiner.flush(write);
            require(joiner.add(one), "there is room after flush()");
        }
    joiner.flush(write);
    std::ranges::sort(came);
    std::ranges::sort(went);
    require(came == went, "what was joined is what came");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* begin, std::size_t size) {
    FuzzedDataProvider data(begin, size);
    const Bytes raw = bytes(data, sizeof(VnetHeader));
    VnetHeader header;
    std::memcpy(&header, raw.data(), sizeof header);
    const bool many = data.ConsumeBool();
    const auto tos = data.ConsumeIntegral<std::uint8_t>();
    const auto mtu = data.ConsumeIntegral<std::uint16_t>();
    std::vector<Bytes> packets;
    if (many) {
        while (data.remaining_bytes() > 0 && packets.size() < 200)
            packets.push_back(
                data.ConsumeBytes<std::uint8_t>(data.ConsumeIntegralInRange<std::size_t>(0, 300)));
    } else {
        packets = cut(header, data.ConsumeRemainingBytes<std::uint8_t>());
    }
    std::array<std::uint8_t, kMostTooBig> answer;
    for (Bytes& one : packets) {
        Bytes copy = one;
        clamp_mss(copy, mtu);
        take_ecn(copy, tos);
        for (const std::uint8_t family : {std::uint8_t{4}, std::uint8_t{6}}) {
            Address ours;
            ours.family = family;
            const std::size_t n = too_big(one, mtu, ours, answer);
            if (n == 0) continue;
            const auto ip = inet::parse(std::span<const std::uint8_t>(answer).first(n));
            require(ip && ip->size == n, "an answer is a packet");
        }
    }
    join(std::move(packets));
    return 0;
}
