// SPDX-License-Identifier: Apache-2.0
// Joining: what is written is, cut again, what came, in each flow's order; and only what may be
// joined is.
#include <gtest/gtest.h>

#include <map>

#include "support/bytes.hpp"
#include "support/thorough.hpp"
#include "vpn/path/cutter.hpp"
#include "vpn/path/joiner.hpp"
#include "vpn/path_packets.hpp"

namespace {

using namespace dael::test;
using namespace dael::vpn;
using namespace dael::vpn::path;

constexpr Offloads kAll{true, true, true, true, true, true};

struct Written {
    VnetHeader header{};
    Bytes packet;
    std::size_t parts = 0;
};

std::vector<Written> flushed(Joiner& joiner, bool with_header = true) {
    std::vector<Written> all;
    joiner.flush([&](std::span<const iovec> parts) {
        Written one;
        if (with_header) {
            ASSERT_EQ(parts[0].iov_len, sizeof one.header);
            std::memcpy(&one.header, parts[0].iov_base, sizeof one.header);
            parts = parts.subspan(1);
        }
        one.parts = parts.size();
        for (const auto& part : parts) {
            const auto* const p = static_cast<const std::uint8_t*>(part.iov_base);
            one.packet.insert(one.packet.end(), p, p + part.iov_len);
        }
        all.push_back(std::move(one));
    });
    return all;
}

std::vector<Written> joined(std::vector<Bytes> packets, const Offloads& offloads = kAll) {
    Joiner joiner(offloads);
    for (auto& p : packets) EXPECT_TRUE(joiner.add(p));
    return flushed(joiner, offloads.vnet_header);
}

std::vector<Bytes> bytes_of(const std::vector<InnerPacket>& parts) {
    std::vector<Bytes> packets;
    for (const InnerPacket& one : parts) packets.push_back(one.bytes());
    return packets;
}

TEST(VpnJoiner, GivesBackASuperPacket) {
    Random random(1);
    for (int i = 0; i < thorough(500, 60); ++i) {
        InnerPacket p = some_packet(random, i % 2 != 0, i % 4 < 2);
        const std::size_t segment = 1 + random.below(1400), most = 64 * segment;
        p.payload =
            random.bytes(segment + 1 + random.below(std::min(most, 65535 - p.header()) - segment));
        p.flags = i % 3 != 0 ? 0x18 : 0x10;
        auto packets = bytes_of(p.segments(segment));
        const auto got = joined(packets);
        ASSERT_EQ(got.size(), 1u);
        EXPECT_EQ(got[0].parts, packets.size());
        ASSERT_EQ(difference(p.bytes(true), got[0].packet), "");
        const VnetHeader expected = p.super(segment);
        EXPECT_EQ(std::memcmp(&expected, &got[0].header, sizeof expected), 0);
    }
}

// What differs in a way that cutting could not give back, or is not what it says, is not joined.
TEST(VpnJoiner, WhatMayNotBeJoined) {
    Random random(2);
    for (const bool six : {false, true})
        for (const bool tcp : {false, true}) {
            InnerPacket base = some_packet(random, six, tcp);
            base.tcp_options = random.bytes(12);
            base.hops = 60;
            base.payload = random.bytes(300);
            base.dont_fragment = false;
            const auto parts = base.segments(100);
            const auto writes = [&](auto change, int which = 1) {
                auto changed = parts;
                change(changed[static_cast<std::size_t>(which)]);
                auto packets = bytes_of(changed);
                const auto got = joined(packets);
                // Whole, in any case.
                std::vector<Bytes> again;
                for (const auto& one : got) {
                    const Cutter cutter(one.header, one.packet);
                    EXPECT_EQ(cutter.fault(), Cutter::Fault::none);
                    for (std::size_t i = 0; i < cutter.count(); ++i) {
                        again.emplace_back(cutter.size(i));
                        cutter.lay(i, again.back().data());
                    }
                }
                // (Between flows there is no order.)
                std::ranges::sort(again);
                std::ranges::sort(packets);
                EXPECT_TRUE(again == packets);
                return got.size();
            };
            EXPECT_EQ(writes([](auto&) {}), 1u);
            // Sequence numbers, or identifications without DF, show that one is missing.
            const std::size_t without_one = tcp || !six ? 3 : 2;
            EXPECT_EQ(writes([](auto& p) { p.tos ^= 4; }), 3u);
            EXPECT_EQ(writes([](auto& p) { p.tos ^= 1; }), 3u) << "ECN";
            EXPECT_EQ(writes([](auto& p) { ++p.hops; }), 3u);
            EXPECT_EQ(writes([](auto& p) { ++p.from; }), without_one) << "another flow between";
            EXPECT_EQ(writes([](auto& p) { ++p.to; }), without_one);
            EXPECT_EQ(writes([](auto& p) { p.source.back() ^= 1; }), without_one);
            EXPECT_EQ(writes([](auto& p) { p.destination.back() ^= 1; }), without_one);
            EXPECT_EQ(writes([&](auto& p) { p.payload.push_back(0); }), tcp ? 3u : 2u)
                << "longer than the first";
            EXPECT_EQ(writes([&](auto& p) { p.payload.pop_back(); }), 2u)
                << "shorter: joined, and the last";
            if (six) {
                EXPECT_EQ(writes([](auto& p) { p.label ^= 1; }), 3u);
                EXPECT_EQ(writes([&](auto& p) {
                              p.next = 60;
                              p.extensions = {
                                  static_cast<std::uint8_t>(tcp ? 6 : 17), 0, 1, 4, 0, 0, 0, 0};
                          }),
                          3u);
            } else {
                EXPECT_EQ(writes([](auto& p) { p.dont_fragment = true; }), 3u);
                EXPECT_EQ(writes([](auto& p) { p.id += 2; }), 3u);
                EXPECT_EQ(writes([](auto& p) { p.ip_options = {1, 1, 1, 1}; }), 3u);
                EXPECT_EQ(writes([](auto& p) { p.fragment = 0x8000; }), 3u) << "the reserved bit";
            }
            if (tcp) {
                EXPECT_EQ(writes([](auto& p) { ++p.sequence; }), 3u);
                EXPECT_EQ(writes([](auto& p) { ++p.acknowledgement; }), 3u);
                EXPECT_EQ(writes([](auto& p) { ++p.window; }), 3u);
                EXPECT_EQ(writes([](auto& p) { ++p.urgent; }), 3u);
                EXPECT_EQ(writes([](auto& p) { p.tcp_options[3] ^= 1; }), 3u);
                EXPECT_EQ(writes([](auto& p) { p.tcp_options.resize(8); }), 3u);
                for (const int flag : {0x01, 0x02, 0x04, 0x20, 0x40, 0x80})
                    EXPECT_EQ(writes([&](auto& p) {
                                  p.flags = static_cast<std::uint8_t>(p.flags | flag);
                              }),
                              3u)
                        << flag;
                EXPECT_EQ(writes([](auto& p) { p.flags = 0; }), 3u);
                EXPECT_EQ(writes([](auto& p) { p.flags |= 8; }), 2u) << "PSH: joined, the last";
                EXPECT_EQ(writes([](auto& p) { p.flags |= 8; }, 0), 2u);
                EXPECT_EQ(writes([](auto& p) { p.payload.clear(); }), 3u);
            } else {
                EXPECT_EQ(writes([&](auto& p) { p.checksum = false; }), 3u);
            }
        }
}

TEST(VpnJoiner, BadChecksumsGoAlone) {
    Random random(3);
    for (const bool six : {false, true})
        for (const bool tcp : {false, true}) {
            InnerPacket p = some_packet(random, six, tcp);
            p.payload = random.bytes(500);
            auto packets = bytes_of(p.segments(100));
            for (std::size_t at = six ? 8 : 10; at < packets[2].size(); ++at) {
                auto changed = packets;
                changed[2][at] ^= static_cast<std::uint8_t>(1 + random.below(255));
                Joiner joiner(kAll);
                for (auto& one : changed) ASSERT_TRUE(joiner.add(one));
                const auto got = flushed(joiner);
                ASSERT_GE(got.size(), 2u) << at;
                std::size_t unchanged = 0;
                for (const auto& one : got) {
                    ASSERT_LE(one.packet.size(), p.header() + (tcp ? 200 : 400));
                    unchanged += one.packet == changed[2] && one.header.flags == 0;
                }
                EXPECT_EQ(unchanged, 1u) << at;
            }
        }
}

TEST(VpnJoiner, OffloadsThatAreMissingAreNotUsed) {
    Random random(4);
    for (const bool six : {false, true})
        for (const bool tcp : {false, true}) {
            InnerPacket p = some_packet(random, six, tcp);
            p.payload = random.bytes(500);
            auto packets = bytes_of(p.segments(100));
            const auto writes = [&](auto change) {
                Offloads some = kAll;
                change(some);
                return joined(packets, some).size();
            };
            EXPECT_EQ(writes([](auto&) {}), 1u);
            EXPECT_EQ(writes([](auto& o) { o.vnet_header = false; }), 5u);
            EXPECT_EQ(writes([](auto& o) { o.checksum = false; }), 5u);
            EXPECT_EQ(writes([](auto& o) { o.tcp4 = false; }), tcp && !six ? 5u : 1u);
            EXPECT_EQ(writes([](auto& o) { o.tcp6 = false; }), tcp && six ? 5u : 1u);
            EXPECT_EQ(writes([](auto& o) { o.udp = false; }), !tcp ? 5u : 1u);
        }
}

// A fragment is of no flow that we know: nothing may be joined past it.
TEST(VpnJoiner, NothingOvertakesAFragment) {
    Random random(5);
    InnerPacket p = some_packet(random, false, false);
    p.payload = random.bytes(300);
    p.dont_fragment = false;
    const auto parts = p.segments(100);
    InnerPacket fragment = parts[1];
    fragment.fragment = 5;
    const auto got =
        joined({parts[0].bytes(), fragment.bytes(), parts[1].bytes(), parts[2].bytes()});
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[1].packet, fragment.bytes());
    EXPECT_EQ(got[2].parts, 2u);
    // To many, too: each by itself.
    for (const bool six : {false, true}) {
        InnerPacket many = some_packet(random, six, false);
        many.destination[0] = six ? 0xff : 0xe0;
        many.payload = random.bytes(300);
        auto packets = bytes_of(many.segments(100));
        EXPECT_EQ(joined(packets).size(), 3u);
    }
}

TEST(VpnJoiner, BoundsOfOneAndOfAll) {
    Random random(6);
    InnerPacket p = some_packet(random, false, true);
    p.payload = random.bytes(65 * 100);
    auto packets = bytes_of(p.segments(100));
    auto got = joined(packets);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].parts, Joiner::kMostParts);
    // No more than an IP header can say.
    packets.clear();
    for (std::size_t i = 0, n = 20000; i < 4; ++i) {
        InnerPacket one = p;
        one.id = static_cast<std::uint16_t>(p.id + i);
        one.sequence += static_cast<std::uint32_t>(i * n);
        one.payload = random.bytes(n);
        packets.push_back(one.bytes());
    }
    got = joined(packets);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].parts, 3u);
    // Full: nothing is lost, and it goes on after flush().
    Joiner joiner(kAll);
    std::vector<Bytes> flows;
    for (std::size_t i = 0; i < Joiner::kMostFlows + 1; ++i) {
        InnerPacket one = some_packet(random, i % 2 != 0, true);
        one.payload = random.bytes(10);
        flows.push_back(one.bytes());
    }
    for (std::size_t i = 0; i < Joiner::kMostFlows; ++i) ASSERT_TRUE(joiner.add(flows[i]));
    EXPECT_FALSE(joiner.add(flows.back()));
    EXPECT_EQ(joiner.counters().packets, Joiner::kMostFlows);
    EXPECT_EQ(flushed(joiner).size(), Joiner::kMostFlows);
    EXPECT_TRUE(joiner.empty());
    EXPECT_TRUE(joiner.add(flows.back()));
    EXPECT_EQ(flushed(joiner).size(), 1u);
}

// Traffic as it may come: many flows, packets of every kind, altered, lost, out of order, not even
// IP. Cut again, each flow's packets are what came, in the order in which they came.
TEST(VpnJoiner, WhateverComesGoesOnAsItWas) {
    Random random(7);
    struct Tail {
        InnerPacket next;
        std::size_t segment = 0;
    };
    std::size_t joined_packets = 0, writes = 0;
    for (int round = 0; round < thorough(400, 40); ++round) {
        std::vector<Tail> flows(1 + random.below(12));
        for (std::size_t i = 0; i < flows.size(); ++i) {
            flows[i].next = some_packet(random, random.below(2) != 0, random.below(3) != 0);
            if (i > 0 && random.below(2) != 0) {  // between the same two
                auto& p = flows[i].next;
                const auto& before = flows[i - 1].next;
                p.six = before.six, p.source = before.source, p.destination = before.destination;
                if (random.below(2) != 0) p.from = before.from, p.to = before.to;
            }
            flows[i].segment = 1 + random.below(200);
        }
        std::vector<Bytes> packets;
        for (std::size_t n = random.below(300); n-- > 0;) {
            auto& [p, segment] = flows[random.below(flows.size())];
            if (random.below(30) == 0) {
                packets.push_back(random.bytes(random.below(100)));
                continue;
            }
            InnerPacket one = p;
            one.payload = random.bytes(random.below(15) == 0 ? random.below(250) : segment);
            if (random.below(15) == 0) one.flags = static_cast<std::uint8_t>(random.number());
            if (random.below(30) == 0) one.fragment = 1;
            if (random.below(30) == 0) one.tos ^= 1;
            p.sequence += static_cast<std::uint32_t>(one.payload.size());
            if (p.dont_fragment && random.below(2) != 0)
                p.id = static_cast<std::uint16_t>(random.number());
            else
                ++p.id;
            if (random.below(20) == 0) continue;  // lost
            packets.push_back(one.bytes());
            if (random.below(20) == 0) packets.back()[random.below(packets.back().size())] ^= 0x10;
            if (random.below(20) == 0 && packets.size() > 1)
                std::swap(packets.back(), packets[packets.size() - 2]);
        }
        // Under DF the identification means nothing, and is made anew.
        const auto plain = [](Bytes bytes) {
            if (bytes.size() >= 20 && bytes[0] == 0x45 && (bytes[6] & 0x40) != 0 &&
                sum_by_hand({bytes.data(), 20}) == 0xffff)
                bytes[4] = bytes[5] = bytes[10] = bytes[11] = 0;
            return bytes;
        };
        // Both addresses, protocol and ports where there are some.
        const auto flow = [](const Bytes& bytes) {
            const auto ip = inet::parse(bytes);
            if (!ip) return Bytes{};
            Bytes key(ip->source, ip->source + 2 * ip->address_size());
            key.push_back(ip->protocol);
            if (!ip->fragment && ip->payload + 4 <= bytes.size())
                key.insert(key.end(), &bytes[ip->payload], &bytes[ip->payload] + 4);
            return key;
        };
        std::map<Bytes, std::vector<Bytes>> came, went;
        for (const auto& one : packets) came[flow(one)].push_back(plain(one));
        Joiner joiner(kAll);
        auto buffers = packets;
        const auto write = [&] {
            for (const auto& one : flushed(joiner)) {
                ++writes;
                if (one.parts == 1) {
                    ASSERT_EQ(one.header.flags | one.header.gso_type, 0);
                    went[flow(one.packet)].push_back(plain(one.packet));
                    continue;
                }
                joined_packets += one.parts;
                const Cutter cutter(one.header, one.packet);
                ASSERT_EQ(cutter.fault(), Cutter::Fault::none);
                ASSERT_EQ(cutter.count(), one.parts);
                for (std::size_t i = 0; i < cutter.count(); ++i) {
                    Bytes part(cutter.size(i));
                    cutter.lay(i, part.data());
                    went[flow(part)].push_back(plain(part));
                }
            }
        };
        for (auto& one : buffers)
            if (!joiner.add(one)) {
                write();
                ASSERT_TRUE(joiner.add(one));
            }
        write();
        ASSERT_TRUE(came == went) << "round " << round;
        EXPECT_EQ(joiner.counters().packets, packets.size());
    }
    EXPECT_GT(joined_packets, writes / 4) << "hardly anything was joined";
}

}  // namespace
