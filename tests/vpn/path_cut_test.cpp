// SPDX-License-Identifier: Apache-2.0
// Sums, headers and cutting, against what is written down.
#include <gtest/gtest.h>

#include "support/bytes.hpp"
#include "support/guarded.hpp"
#include "support/thorough.hpp"
#include "vpn/path/cutter.hpp"
#include "vpn/path_packets.hpp"

namespace {

namespace esp = dael::esp;
using namespace dael::test;
using namespace dael::vpn;
using namespace dael::vpn::path;

std::uint16_t stored(std::uint16_t sum) {  // as get16() would read it
    std::uint8_t bytes[2];
    inet::store_sum(bytes, sum);
    return inet::get16(bytes);
}

TEST(VpnSum, IsThatOfRfc1071AtEveryLengthAndPlace) {
    Random random(1);
    for (std::size_t size = 0; size < thorough<std::size_t>(1500, 300); ++size)
        for (const bool ones : {false, true}) {
            Bytes content = ones ? Bytes(size, 0xff) : random.bytes(size);
            Poisoned from(content, size % 9), to(size, size % 7);
            const auto start = static_cast<std::uint16_t>(random.number());
            const std::uint16_t expected = sum_by_hand(content, start);
            const std::uint64_t first = inet::word(start);
            ASSERT_EQ(stored(inet::fold(inet::sum(from.data(), size, first))), expected) << size;
            ASSERT_EQ(stored(inet::fold(inet::copy_and_sum(to.data(), from.data(), size, first))),
                      expected)
                << size;
            ASSERT_EQ(to.bytes(), content);
            ASSERT_TRUE(to.intact());
        }
    // Folding all carries, whatever they are.
    EXPECT_EQ(inet::fold(~std::uint64_t{0}), 0xffff);
    EXPECT_EQ(inet::fold(0), 0);
    EXPECT_EQ(inet::fold(0xffff0000ffff0001), 0xffff * 2 % 0xffff + 1);
}

TEST(VpnSum, FollowsAChange) {
    Random random(2);
    for (int i = 0; i < 2000; ++i) {
        Bytes bytes = random.bytes(20);
        const auto before = static_cast<std::uint16_t>(~sum_by_hand(bytes));
        const std::size_t at = 2 * random.below(10);
        const std::uint16_t old = inet::get16(&bytes[at]);
        const auto value = static_cast<std::uint16_t>(i % 3 == 0   ? 0
                                                      : i % 3 == 1 ? 0xffff
                                                                   : random.number());
        inet::put16(&bytes[at], value);
        const std::uint16_t changed = inet::changed(before, old, value);
        ASSERT_EQ(sum_by_hand(bytes, changed), 0xffff);
    }
}

// ---- headers

TEST(VpnHeaders, NothingIsReadBeyondAnEnd) {
    report_faults();
    Random random(3);
    Guarded memory(256);
    for (int i = 0; i < thorough(3000, 500); ++i) {
        InnerPacket p = some_packet(random, i % 2 != 0, i % 4 < 2);
        p.payload = random.bytes(random.below(60));
        if (i % 3 == 0) p.ip_options = random.bytes(4 * random.below(11));
        Bytes whole = p.bytes();
        if (i % 5 == 0)
            whole[random.below(whole.size())] = static_cast<std::uint8_t>(random.number());
        if (p.six && i % 7 == 1) {  // whatever extension headers
            constexpr std::uint8_t kNext[] = {0, 43, 44, 51, 60, 135, 139, 140};
            whole[6] = kNext[random.below(8)];
            whole[40] = kNext[random.below(8)];
            whole[41] = static_cast<std::uint8_t>(random.below(3));
        }
        whole.resize(std::min<std::size_t>(whole.size(), 256));
        for (std::size_t n = 0; n <= whole.size(); ++n) {
            const auto at = memory.at_end(n);
            std::copy_n(whole.begin(), n, at.begin());
            const auto ip = inet::parse(at);
            if (!ip) continue;
            ASSERT_LE(ip->size, n);
            ASSERT_LE(ip->payload, ip->size);
            ASSERT_EQ(ip->version, whole[0] >> 4);
        }
    }
}

TEST(VpnHeaders, ACutPacketIsNone) {
    Random random(4);
    for (const bool six : {false, true})
        for (const bool tcp : {false, true}) {
            InnerPacket p = some_packet(random, six, tcp);
            p.payload = random.bytes(9);
            const Bytes whole = p.bytes();
            for (std::size_t n = 0; n < whole.size(); ++n)
                EXPECT_FALSE(inet::parse({whole.data(), n})) << n;
            const auto ip = inet::parse(whole);
            ASSERT_TRUE(ip);
            EXPECT_EQ(ip->version, six ? 6 : 4);
            EXPECT_EQ(ip->tos, p.tos);
            EXPECT_EQ(ip->hops, p.hops);
            EXPECT_EQ(ip->protocol, tcp ? 6 : 17);
            EXPECT_EQ(ip->payload, p.ip_header());
            EXPECT_EQ(ip->size, whole.size());
            EXPECT_EQ(Bytes(ip->source, ip->source + ip->address_size()), p.source);
            EXPECT_EQ(Bytes(ip->destination, ip->destination + ip->address_size()), p.destination);
            EXPECT_FALSE(ip->fragment);
            EXPECT_TRUE(ip->first);
            EXPECT_EQ(ip->dont_fragment, !six && p.dont_fragment);
            Bytes longer = whole;
            longer.push_back(0);
            ASSERT_TRUE(inet::parse(longer));
            EXPECT_EQ(inet::parse(longer)->size, whole.size());
        }
}

TEST(VpnHeaders, ExtensionHeadersArePassedBy) {
    Random random(5);
    InnerPacket p = some_packet(random, true, true);
    p.payload = random.bytes(30);
    p.next = 0;  // hop by hop of 16 bytes, a routing header with hops to go, a fragment header
    p.extensions = random.bytes(16 + 24 + 8);
    p.extensions[0] = 43, p.extensions[1] = 1;
    p.extensions[16] = 44, p.extensions[17] = 2, p.extensions[19] = 1;
    p.extensions[40] = 6, p.extensions[42] = 0, p.extensions[43] = 0;
    auto ip = inet::parse(p.bytes());
    ASSERT_TRUE(ip);
    EXPECT_EQ(ip->protocol, 6);
    EXPECT_EQ(ip->payload, 88u);
    EXPECT_TRUE(ip->routed);
    EXPECT_FALSE(ip->fragment);  // "atomic": the only one
    p.extensions[43] = 1;        // more come
    ip = inet::parse(p.bytes());
    EXPECT_TRUE(ip->fragment);
    EXPECT_TRUE(ip->first);
    p.extensions[43] = 9;
    ip = inet::parse(p.bytes());
    EXPECT_TRUE(ip->fragment);
    EXPECT_FALSE(ip->first);
    p.extensions[17] = 100;  // longer than the packet: what it is is known, not what follows
    ip = inet::parse(p.bytes());
    ASSERT_TRUE(ip);
    EXPECT_EQ(ip->protocol, 43);
    EXPECT_EQ(ip->payload, 56u);
    // A jumbogram says 0.
    Bytes jumbo = p.bytes();
    jumbo[4] = jumbo[5] = 0;
    EXPECT_FALSE(inet::parse(jumbo));
}

// ---- cutting

void expect_cut(const InnerPacket& packet, std::size_t segment) {
    const Bytes super = packet.bytes(true);
    const Cutter cutter(packet.super(segment), super);
    ASSERT_EQ(cutter.fault(), Cutter::Fault::none);
    const auto expected = packet.segments(segment);
    ASSERT_EQ(cutter.count(), expected.size());
    std::size_t bytes = 0, largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const Bytes right = expected[i].bytes();
        ASSERT_EQ(cutter.size(i), right.size());
        Poisoned to(right.size(), i % 5);
        cutter.lay(i, to.data());
        ASSERT_EQ(difference(right, to.span()), "") << "segment " << i;
        ASSERT_TRUE(to.intact());
        bytes += right.size();
        largest = std::max(largest, right.size());
    }
    EXPECT_EQ(cutter.bytes(), bytes);
    EXPECT_EQ(cutter.largest(), largest);
}

TEST(VpnCutter, EveryLength) {
    Random random(6);
    for (const bool six : {false, true})
        for (const bool tcp : {false, true})
            for (std::size_t n = 0; n < thorough<std::size_t>(450, 200); ++n) {
                InnerPacket p = some_packet(random, six, tcp);
                p.payload = random.bytes(n);
                p.flags = static_cast<std::uint8_t>(random.number()) & 0xfd;  // any but SYN
                expect_cut(p, 100);
            }
}

TEST(VpnCutter, SuperPackets) {
    Random random(7);
    for (int i = 0; i < thorough(600, 60); ++i) {
        InnerPacket p = some_packet(random, i % 2 != 0, i % 4 < 2);
        if (i % 8 == 0) p.ip_options = random.bytes(4 * random.below(11));
        const std::size_t segment = 1 + random.below(i % 3 == 0 ? 9000 : 1500);
        p.payload = random.bytes(random.below(65535 - p.header()));
        if (segment < 20) p.payload.resize(std::min<std::size_t>(p.payload.size(), 3000));
        p.flags = static_cast<std::uint8_t>(random.number()) & 0xfd;
        expect_cut(p, segment);
    }
}

TEST(VpnCutter, BehindExtensionHeaders) {
    Random random(8);
    InnerPacket p = some_packet(random, true, true);
    p.payload = random.bytes(5000);
    p.next = 60;
    p.extensions = Bytes(8);
    p.extensions[0] = 6;
    expect_cut(p, 1400);
    // With hops between, the last destination is known by the half checksum alone.
    p.next = 43;
    p.extensions = random.bytes(24);
    p.extensions[0] = 6, p.extensions[1] = 2, p.extensions[3] = 1;
    const Bytes last = random.bytes(16);
    InnerPacket as_summed = p;
    as_summed.destination = last;
    Bytes super = p.bytes(true);
    const Bytes other = as_summed.bytes(true);
    std::copy_n(&other[64 + 16], 2, &super[64 + 16]);
    const Cutter cutter(p.super(1400), super);
    ASSERT_EQ(cutter.fault(), Cutter::Fault::none);
    const auto expected = as_summed.segments(1400);
    ASSERT_EQ(cutter.count(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        Bytes right = expected[i].bytes(), got(right.size());
        std::ranges::copy(p.destination, &right[24]);
        cutter.lay(i, got.data());
        EXPECT_EQ(difference(right, got), "");
    }
}

TEST(VpnCutter, OnesAlone) {
    Random random(9);
    for (int i = 0; i < thorough(4000, 400); ++i) {
        InnerPacket p = some_packet(random, i % 2 != 0, i % 4 < 2);
        p.payload = random.bytes(random.below(1500));
        p.flags = static_cast<std::uint8_t>(random.number());
        const bool half = i % 3 != 0;
        const Bytes whole = p.bytes(half), right = p.bytes();
        VnetHeader v{};
        if (half) {
            v = p.super(0);
            v.gso_type = 0;
        }
        Bytes with_more = whole;
        if (i % 5 == 0) with_more.resize(whole.size() + 7, 0xee);  // none of IP's
        const Cutter cutter(v, with_more);
        ASSERT_EQ(cutter.fault(), Cutter::Fault::none);
        ASSERT_EQ(cutter.count(), 1u);
        ASSERT_EQ(cutter.size(0), right.size());
        EXPECT_EQ(cutter.largest(), right.size());
        EXPECT_EQ(cutter.bytes(), right.size());
        EXPECT_EQ(cutter.is_syn(), p.tcp && (p.flags & 2) != 0);
        Poisoned to(right.size(), i % 3u);
        cutter.lay(0, to.data());
        ASSERT_EQ(difference(right, to.span()), "");
        ASSERT_TRUE(to.intact());
    }
}

// A checksum of UDP that comes to 0 is sent as 0xffff, in segments too; and none stays none.
TEST(VpnCutter, UdpChecksumsOfZero) {
    Random random(10);
    for (const bool six : {false, true}) {
        InnerPacket p = some_packet(random, six, false);
        p.payload = Bytes(300);
        // The payload's first word is what is missing to all ones.
        auto parts = p.segments(100);
        const Bytes zero = parts[0].bytes();
        const std::uint16_t missing = inet::get16(&zero[p.ip_header() + 6]);
        for (std::size_t at : {0u, 100u, 200u}) inet::put16(&p.payload[at], missing);
        for (const auto& part : p.segments(100)) {
            const Bytes bytes = part.bytes();
            ASSERT_EQ(inet::get16(&bytes[p.ip_header() + 6]), 0xffff);
        }
        expect_cut(p, 100);
        // One that is not cut.
        const InnerPacket alone = p.segments(100)[0];
        VnetHeader v = alone.super(0);
        v.gso_type = VnetHeader::kNone;
        const Bytes half = alone.bytes(true);
        const Cutter cutter(v, half);
        ASSERT_EQ(cutter.fault(), Cutter::Fault::none);
        Bytes got(cutter.size(0));
        cutter.lay(0, got.data());
        EXPECT_EQ(difference(alone.bytes(), got), "");
    }
    InnerPacket p = some_packet(random, false, false);
    p.payload = random.bytes(250);
    p.checksum = false;
    VnetHeader v = p.super(100);
    v.flags = 0, v.csum_start = v.csum_offset = 0;
    const Bytes super = p.bytes();
    const Cutter cutter(v, super);
    ASSERT_EQ(cutter.count(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
        Bytes got(cutter.size(i));
        cutter.lay(i, got.data());
        EXPECT_EQ(difference(p.segments(100)[i].bytes(), got), "");
    }
}

TEST(VpnCutter, WhatDoesNotFitIsRefused) {
    Random random(11);
    InnerPacket tcp4 = some_packet(random, false, true), tcp6 = some_packet(random, true, true);
    InnerPacket udp = some_packet(random, false, false);
    for (InnerPacket* p : {&tcp4, &tcp6, &udp}) p->payload = random.bytes(500);
    using Fault = Cutter::Fault;
    const auto fault = [](VnetHeader v, const Bytes& bytes) { return Cutter(v, bytes).fault(); };
    const auto with = [](const InnerPacket& p, auto change) {
        VnetHeader v = p.super(100);
        change(v);
        return v;
    };
    EXPECT_EQ(fault({}, {}), Fault::not_ip);
    EXPECT_EQ(fault({}, Bytes(40, 0x55)), Fault::not_ip);
    EXPECT_EQ(fault(with(tcp4, [](auto& v) { v.gso_type = 3; }), tcp4.bytes(true)),
              Fault::unknown_type);
    EXPECT_EQ(fault(with(tcp4, [](auto& v) { v.gso_type = 2; }), tcp4.bytes(true)),
              Fault::unknown_type);
    EXPECT_EQ(fault(with(tcp4, [](auto& v) { v.gso_size = 0; }), tcp4.bytes(true)),
              Fault::bad_header);
    EXPECT_EQ(fault(tcp6.super(100), tcp4.bytes(true)), Fault::bad_header);
    EXPECT_EQ(fault(tcp4.super(100), tcp6.bytes(true)), Fault::bad_header);
    EXPECT_EQ(fault(tcp4.super(100), udp.bytes(true)), Fault::bad_header);
    EXPECT_EQ(fault(udp.super(100), tcp4.bytes(true)), Fault::bad_header);
    for (const int wrong : {0, 19, 21, 24, 65535}) {
        EXPECT_EQ(
            fault(with(tcp4, [&](auto& v) { v.csum_start = static_cast<std::uint16_t>(wrong); }),
                  tcp4.bytes(true)),
            Fault::bad_header);
        EXPECT_EQ(
            fault(with(tcp4, [&](auto& v) { v.csum_offset = static_cast<std::uint16_t>(wrong); }),
                  tcp4.bytes(true)),
            Fault::bad_header);
    }
    // hdr_len is nobody's business, the ECN bit says nothing new.
    EXPECT_EQ(
        fault(with(tcp4, [](auto& v) { v.hdr_len = 60000, v.gso_type |= 0x80; }), tcp4.bytes(true)),
        Fault::none);
    Bytes short_header = tcp4.bytes(true);
    short_header[20 + 12] = 0x40;
    EXPECT_EQ(fault(tcp4.super(100), short_header), Fault::bad_header);
    Bytes long_header = InnerPacket(tcp4).bytes(true);
    long_header.resize(45), inet::put16(&long_header[2], 45), long_header[20 + 12] = 0xf0;
    EXPECT_EQ(fault(tcp4.super(100), long_header), Fault::bad_header);
    InnerPacket fragment = tcp4;
    fragment.dont_fragment = false, fragment.fragment = 0x2000;
    EXPECT_EQ(fault(fragment.super(100), fragment.bytes(true)), Fault::bad_header);
    // One that is not cut, with a checksum that would lie elsewhere.
    for (const auto& [start, offset] : {std::pair{19, 16}, {20, 507}, {65535, 65535}, {535, 6}}) {
        VnetHeader v{};
        v.flags = VnetHeader::kNeedsCsum;
        v.csum_start = static_cast<std::uint16_t>(start);
        v.csum_offset = static_cast<std::uint16_t>(offset);
        EXPECT_EQ(fault(v, udp.bytes(true)), Fault::bad_header) << start << " " << offset;
    }
}

// Whatever comes: what is laid stays within what was said, and nothing is read outside.
TEST(VpnCutter, NonsenseStaysWithinItsBounds) {
    report_faults();
    Random random(12);
    Guarded memory(4096), target(70000);
    std::size_t accepted = 0;
    for (int i = 0; i < thorough(60000, 6000); ++i) {
        InnerPacket p = some_packet(random, i % 2 != 0, i % 4 < 2);
        p.payload = random.bytes(random.below(1200));
        if (i % 6 == 0) p.ip_options = random.bytes(4 * random.below(11));
        if (p.six && i % 7 == 0) {
            p.next = i % 3 == 0 ? 43 : 60;
            p.extensions = random.bytes(8 + 8 * random.below(4));
            p.extensions[0] = p.tcp ? 6 : 17;
            p.extensions[1] = static_cast<std::uint8_t>(p.extensions.size() / 8 - 1);
        }
        Bytes bytes = p.bytes(true);
        VnetHeader v = p.super(1 + random.below(700));
        for (std::size_t k = random.below(4); k-- > 0;)
            bytes[random.below(std::min<std::size_t>(bytes.size(), 80))] =
                static_cast<std::uint8_t>(random.number());
        if (random.below(3) == 0) bytes.resize(random.below(bytes.size() + 1));
        if (random.below(3) == 0) {
            std::uint8_t raw[sizeof v];
            std::memcpy(raw, &v, sizeof v);
            raw[random.below(sizeof v)] = static_cast<std::uint8_t>(random.number());
            std::memcpy(&v, raw, sizeof v);
        }
        const auto packet = memory.at_end(bytes.size());
        std::ranges::copy(bytes, packet.begin());
        const Cutter cutter(v, packet);
        if (cutter.fault() != Cutter::Fault::none) continue;
        ++accepted;
        std::size_t sum = 0;
        for (std::size_t k = 0; k < cutter.count(); ++k) {
            const std::size_t size = cutter.size(k);
            ASSERT_LE(size, cutter.largest());
            cutter.lay(k, target.at_end(size).data());
            sum += size;
            const auto again = inet::parse(target.at_end(size));
            ASSERT_TRUE(again);
            ASSERT_EQ(again->size, size);
        }
        ASSERT_EQ(sum, cutter.bytes());
    }
    EXPECT_GT(accepted, thorough(10000u, 1000u));
}

// ---- batches

TEST(VpnBatch, SizesAreThoseOfEsp) {
    const esp::Options options{.spi = 256};
    for (std::size_t n = 0; n < 3000; ++n)
        ASSERT_EQ(kEspWire.size(n), esp::packet_size(options, n)) << n;
    EXPECT_EQ(kEspWire.size(esp::kMaxPayload), esp::packet_size(options, esp::kMaxPayload));
    for (std::size_t n = 0; n < 100; ++n) ASSERT_EQ(kPlainWire.size(n), n);
}

TEST(VpnBatch, PacketsLieWithoutAGap) {
    Random random(13);
    for (int round = 0; round < thorough(300, 40); ++round) {
        const WireFormat wire = round % 3 == 0 ? kPlainWire : kEspWire;
        Batch batch(wire, {.bytes = 500 + random.below(20000), .segments = 1 + random.below(64)});
        for (int turn = 0; turn < 4; ++turn) {
            std::size_t first = 0, total = 0, count = 0, payload = 0;
            bool shorter = false;
            while (true) {
                const std::size_t n = random.below(8) == 0 ? random.below(1500) : 700;
                std::uint8_t* const to = batch.place(n, 3, esp::kIpv6);
                if (to == nullptr) {
                    ASSERT_NE(count, 0u);
                    break;
                }
                ASSERT_FALSE(shorter) << "one after a shorter one";
                std::memset(to, 0xab, n);
                const auto& p = batch.packets().back();
                ASSERT_EQ(p.buffer, batch.packets().front().buffer + total);
                ASSERT_EQ(p.capacity, wire.size(n));
                ASSERT_EQ(p.offset, wire.head);
                ASSERT_EQ(p.size, n);
                ASSERT_EQ(p.next_header, esp::kIpv6);
                if (count == 0) first = p.capacity;
                ASSERT_LE(p.capacity, first);
                shorter = p.capacity < first;
                total += p.capacity, payload += n, ++count;
            }
            ASSERT_EQ(batch.packets().size(), count);
            EXPECT_EQ(batch.payload_bytes(), payload);
            EXPECT_EQ(batch.tos(), 3);
            batch.clear();
            EXPECT_TRUE(batch.empty());
        }
    }
    Batch batch(kEspWire);
    EXPECT_EQ(batch.place(65536), nullptr);
    EXPECT_NE(batch.place(65535), nullptr);
    batch.clear();
    ASSERT_NE(batch.place(100, 1), nullptr);
    EXPECT_EQ(batch.place(100, 2), nullptr) << "of another TOS";
    EXPECT_NE(batch.place(100, 1), nullptr);
    std::size_t n = 2;
    while (batch.place(100, 1) != nullptr) ++n;
    EXPECT_EQ(n, Batch::kMostSegments);
}

TEST(VpnBatch, TakesASuperPacketInPieces) {
    Random random(14);
    InnerPacket p = some_packet(random, false, true);
    p.payload = random.bytes(60000);
    const Bytes super = p.bytes(true);
    const Cutter cutter(p.super(1000), super);
    const auto expected = p.segments(1000);
    Batch batch(kEspWire, {.bytes = 65000, .segments = 7});
    std::size_t seen = 0;
    for (std::size_t i = 0; i < cutter.count();) {
        const std::size_t next = cutter.lay(i, batch, 2);
        ASSERT_EQ(next - i, batch.packets().size());
        for (const auto& one : batch.packets()) {
            EXPECT_EQ(one.next_header, esp::kIpv4);
            EXPECT_EQ(difference(expected[seen++].bytes(), {one.buffer + one.offset, one.size}),
                      "");
        }
        batch.clear();
        i = next;
    }
    EXPECT_EQ(seen, expected.size());
}

}  // namespace
