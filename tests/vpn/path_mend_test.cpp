// SPDX-License-Identifier: Apache-2.0
// TCP's MSS, ECN, "too big", addresses as text.
#include "vpn/path/mend.hpp"

#include <gtest/gtest.h>

#include <daelstrom/esp.hpp>

#include "support/bytes.hpp"
#include "support/guarded.hpp"
#include "support/thorough.hpp"
#include "vpn/path/inet.hpp"
#include "vpn/path/netlink.hpp"
#include "vpn/path_packets.hpp"

namespace {

namespace esp = dael::esp;
using namespace dael::test;
using namespace dael::vpn;
using namespace dael::vpn::path;

TEST(VpnMend, MssOfSynsIsLowered) {
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
        const bool six = i % 2 != 0;
        InnerPacket p = some_packet(random, six, true);
        const auto mss = static_cast<std::uint16_t>(i % 5 == 0 ? 0xffff : random.below(3000));
        const std::size_t mtu = 576 + random.below(1000), most = mtu - (six ? 60 : 40);
        // Before it a few others, so that it may begin at an odd place.
        p.tcp_options = {3, 3, 7};
        p.tcp_options.insert(p.tcp_options.begin(), random.below(6), 1);
        const std::size_t at = p.tcp_options.size() + 2;
        p.tcp_options.insert(p.tcp_options.end(), {2, 4, static_cast<std::uint8_t>(mss >> 8),
                                                   static_cast<std::uint8_t>(mss), 4, 2});
        while (p.tcp_options.size() % 4 != 0) p.tcp_options.push_back(0);
        p.flags = i % 3 == 0 ? 0x12 : 0xc2;
        Bytes packet = p.bytes();
        const bool lowered = clamp_mss(packet, mtu);
        EXPECT_EQ(lowered, mss > most);
        if (lowered) inet::put16(&p.tcp_options[at], most);
        ASSERT_EQ(difference(p.bytes(), packet), "") << "mss " << mss << " most " << most;
        // Others keep what looks like one.
        p.flags = 0x10;
        packet = p.bytes();
        EXPECT_FALSE(clamp_mss(packet, 600));
        EXPECT_EQ(packet, p.bytes());
    }
}

TEST(VpnMend, BrokenOptionsAreLeftAlone) {
    report_faults();
    Random random(2);
    Guarded memory(256);
    for (int i = 0; i < thorough(100000, 10000); ++i) {
        InnerPacket p = some_packet(random, i % 2 != 0, true);
        p.tcp_options = random.bytes(4 * random.below(11));
        for (auto& byte : p.tcp_options)
            if (random.below(2) != 0) byte = static_cast<std::uint8_t>(random.below(6));
        p.flags = 2;
        Bytes bytes = p.bytes();
        if (i % 4 == 0) bytes[p.ip_header() + 12] = static_cast<std::uint8_t>(random.number());
        if (i % 5 == 0) bytes.resize(random.below(bytes.size() + 1));
        const auto packet = memory.at_end(bytes.size());
        std::ranges::copy(bytes, packet.begin());
        const bool was_right = inet::parse(packet) && i % 4 != 0;
        if (!clamp_mss(packet, 540)) {
            ASSERT_TRUE(std::ranges::equal(bytes, packet));
        } else if (was_right) {
            const auto ip = inet::parse(packet);
            const std::size_t length = ip->size - ip->payload;
            ASSERT_EQ(inet::fold(inet::sum(packet.data() + ip->payload, length,
                                           inet::pseudo(*ip, 6, length))),
                      0xffff);
        }
    }
}

// RFC 6040, 4.2, figure 4, as it is written there: rows inside, columns outside.
TEST(VpnMend, EcnIsTakenAsRfc6040Says) {
    constexpr int kNot = 0, kEct1 = 1, kEct0 = 2, kCe = 3, kDrop = -1;
    const int outside[] = {kNot, kEct0, kEct1, kCe};
    struct Row {
        int inside, result[4];
    };
    const Row rows[] = {{kNot, {kNot, kNot, kNot, kDrop}},
                        {kEct0, {kEct0, kEct0, kEct1, kCe}},
                        {kEct1, {kEct1, kEct1, kEct1, kCe}},
                        {kCe, {kCe, kCe, kCe, kCe}}};
    Random random(3);
    for (const bool six : {false, true})
        for (const Row& row : rows)
            for (int column = 0; column < 4; ++column)
                for (int dscp = 0; dscp < 64; ++dscp) {
                    InnerPacket p = some_packet(random, six, true);
                    p.payload = random.bytes(20);
                    p.tos = static_cast<std::uint8_t>(dscp << 2 | row.inside);
                    Bytes packet = p.bytes();
                    const auto outer =
                        static_cast<std::uint8_t>(random.below(64) << 2 | outside[column]);
                    const int result = row.result[column];
                    EXPECT_EQ(take_ecn(packet, outer), result != kDrop);
                    if (result != kDrop) p.tos = static_cast<std::uint8_t>(dscp << 2 | result);
                    ASSERT_EQ(difference(p.bytes(), packet), "");
                }
    // What is no packet stays as it is.
    report_faults();
    Guarded memory(64);
    for (std::size_t n = 0; n < 40; ++n)
        for (const int first : {0x45, 0x60, 0x00}) {
            const auto packet = memory.at_end(n);
            std::ranges::fill(packet, std::uint8_t{0});
            if (n > 0) packet[0] = static_cast<std::uint8_t>(first);
            if (n > 1) packet[1] = 0x20;
            take_ecn(packet, 1);
        }
    EXPECT_EQ(outer_tos(0xff, false), 3);
    EXPECT_EQ(outer_tos(0xfd, true), 0xfd);
}

TEST(VpnMend, TooBigIsSaidAsTheRfcsSay) {
    Random random(4);
    std::array<std::uint8_t, kMostTooBig> answer;
    for (const bool six : {false, true})
        for (std::size_t n : {0u, 1u, 100u, 500u, 1200u, 1231u, 1232u, 1233u, 3000u, 60000u}) {
            InnerPacket p = some_packet(random, six, n % 2 == 0);
            p.source[0] = 10;
            p.dont_fragment = true;
            p.payload = random.bytes(n);
            const Bytes packet = p.bytes();
            const Address ours = *Address::parse(six ? "2001:db8::1" : "10.0.0.1");
            const std::size_t size = too_big(packet, 1300, ours, answer);
            const std::size_t before = six ? 48 : 28;
            ASSERT_EQ(size, std::min<std::size_t>(packet.size() + before, six ? 1280 : 576));
            const Bytes got(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(size));
            const auto ip = inet::parse(got);
            ASSERT_TRUE(ip);
            EXPECT_EQ(ip->size, size);
            EXPECT_EQ(ip->protocol, six ? 58 : 1);
            EXPECT_TRUE(std::ranges::equal(std::span(ip->source, ip->address_size()), ours.span()));
            EXPECT_EQ(Bytes(ip->destination, ip->destination + ip->address_size()), p.source);
            const std::uint8_t* const icmp = &got[ip->payload];
            EXPECT_EQ(icmp[0], six ? 2 : 3);
            EXPECT_EQ(icmp[1], six ? 0 : 4);
            EXPECT_EQ(six ? inet::get32(icmp + 4) : inet::get16(icmp + 6), 1300u);
            EXPECT_TRUE(std::equal(icmp + 8, icmp + size - ip->payload, packet.begin()));
            // Sums, by hand.
            Bytes summed(got.begin() + static_cast<std::ptrdiff_t>(ip->payload), got.end());
            if (six) {
                summed.insert(summed.begin(), got.begin() + 8, got.begin() + 40);
                const auto length = static_cast<std::uint16_t>(size - 40);
                const std::uint16_t pseudo =
                    sum_by_hand(Bytes{static_cast<std::uint8_t>(length >> 8),
                                      static_cast<std::uint8_t>(length), 0, 58});
                EXPECT_EQ(sum_by_hand(summed, pseudo), 0xffff);
            } else {
                EXPECT_EQ(sum_by_hand(summed), 0xffff);
                EXPECT_EQ(sum_by_hand({got.data(), 20}), 0xffff);
            }
        }
}

TEST(VpnMend, TooBigIsNotSaidToEverybody) {
    Random random(5);
    std::array<std::uint8_t, kMostTooBig> answer;
    for (const bool six : {false, true}) {
        const Address ours = *Address::parse(six ? "2001:db8::1" : "10.0.0.1");
        InnerPacket base = some_packet(random, six, false);
        base.source[0] = 10;
        base.dont_fragment = true;
        base.payload = random.bytes(100);
        const auto size = [&](auto change) {
            InnerPacket p = base;
            change(p);
            return too_big(p.bytes(), 1300, ours, answer);
        };
        EXPECT_NE(size([](auto&) {}), 0u);
        EXPECT_EQ(size([](auto& p) { std::ranges::fill(p.source, std::uint8_t{0}); }), 0u);
        EXPECT_EQ(size([&](auto& p) { p.source[0] = six ? 0xff : 0xe1; }), 0u);
        EXPECT_EQ(size([&](auto& p) { p.destination[0] = six ? 0xff : 0xe1; }) != 0, six);
        if (!six) {
            EXPECT_EQ(size([](auto& p) { p.dont_fragment = false; }), 0u);
            EXPECT_EQ(size([](auto& p) { p.fragment = 4; }), 0u);
            EXPECT_NE(size([](auto& p) { p.fragment = 0x2000; }), 0u) << "the first";
        }
        const Address other = *Address::parse(six ? "10.0.0.1" : "2001:db8::1");
        EXPECT_EQ(too_big(base.bytes(), 1300, other, answer), 0u);
        EXPECT_EQ(too_big(base.bytes(), 70000, ours, answer), 0u);
        // About errors: none; about questions: yes.
        for (int type = 0; type < 256; ++type) {
            Bytes icmp = base.bytes();
            icmp[six ? 6 : 9] = six ? 58 : 1;
            icmp[base.ip_header()] = static_cast<std::uint8_t>(type);
            const bool question = six ? type >= 128 && type != 137
                                      : type == 0 || type == 8 || type == 13 || type == 14;
            EXPECT_EQ(too_big(icmp, 1300, ours, answer) != 0, question) << type;
        }
        // Cut short: nothing is read behind.
        report_faults();
        Guarded memory(256);
        const Bytes whole = base.bytes();
        for (std::size_t n = 0; n < whole.size(); ++n) {
            const auto packet = memory.at_end(n);
            std::copy_n(whole.begin(), n, packet.begin());
            EXPECT_EQ(too_big(packet, 1300, ours, answer), 0u);
        }
    }
}

TEST(VpnMend, InnerMtuIsTheLargestThatFits) {
    const esp::Options options{.spi = 256};
    for (const bool six : {false, true})
        for (std::size_t mtu = 0; mtu < 3000; ++mtu) {
            const std::size_t outer = (six ? 40 : 20) + 8;
            const std::size_t expected = mtu < outer ? 0 : esp::most_payload(options, mtu - outer);
            ASSERT_EQ(inner_mtu(mtu, six), expected) << mtu;
        }
    EXPECT_EQ(inner_mtu(1500, false), 1438u);
    EXPECT_EQ(inner_mtu(1500, true), 1418u);
}

// ---- addresses

TEST(VpnAddress, TextAndBack) {
    for (const char* text : {"0.0.0.0", "192.0.2.1", "255.255.255.255", "::", "::1",
                             "2001:db8::ff00:42:8329", "fe80::1"}) {
        const auto address = Address::parse(text);
        ASSERT_TRUE(address) << text;
        EXPECT_EQ(address->text(), text);
    }
    for (const char* text : {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4 ", "example.org",
                             ":::", "1::2::3", "[::1]", "fe80::1%lo", "g::"})
        EXPECT_FALSE(Address::parse(text)) << text;
    EXPECT_FALSE(Address::parse(std::string_view("1.2.3.4\0", 8)));

    for (const char* text :
         {"192.0.2.1:4500", "[2001:db8::1]:1", "[fe80::1%1]:65535", "0.0.0.0:0"}) {
        const auto endpoint = Endpoint::parse(text);
        ASSERT_TRUE(endpoint) << text;
        EXPECT_EQ(endpoint->text(), text);
        for (const bool six : {false, true}) {
            sockaddr_in6 name;
            endpoint->to_socket(name, six);
            EXPECT_EQ(Endpoint::from_socket(name), *endpoint);
            EXPECT_EQ(name.sin6_family == AF_INET6, six || endpoint->address.family == 6);
        }
    }
    EXPECT_EQ(Endpoint::parse("[fe80::1%lo]:7")->scope, 1u);
    for (const char* text :
         {"", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4: 1",
          "::1:5", "[::1]", "[::1]5", "[1.2.3.4]:5", "[fe80::1%nosuchthing]:5", "[fe80::1%]:5",
          "localhost:5", "[:5", "]:5"})
        EXPECT_FALSE(Endpoint::parse(text)) << text;

    std::array<std::uint8_t, 18> bytes;
    ASSERT_EQ(Endpoint::parse("1.2.3.4:258")->bytes(bytes), 6u);
    EXPECT_TRUE(std::ranges::equal(std::span(bytes).first(6), Bytes{1, 2, 3, 4, 1, 2}));
    EXPECT_EQ(Endpoint::parse("[::1]:1")->bytes(bytes), 18u);
    EXPECT_EQ(bytes[15], 1);
    EXPECT_EQ(bytes[17], 1);
}

TEST(VpnAddress, Prefixes) {
    for (const char* text : {"10.1.2.3/8", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::1/64", "::/0"})
        EXPECT_EQ(Prefix::parse(text)->text(), text);
    EXPECT_EQ(Prefix::parse("10.1.2.3")->length, 32);
    EXPECT_EQ(Prefix::parse("::1")->length, 128);
    EXPECT_EQ(Prefix::parse("10.1.2.3/8")->masked().text(), "10.0.0.0/8");
    EXPECT_EQ(Prefix::parse("10.255.2.3/9")->masked().text(), "10.128.0.0/9");
    EXPECT_EQ(Prefix::parse("2001:db8:ffff::1/33")->masked().text(), "2001:db8:8000::/33");
    for (const char* text :
         {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "/8", "10.0.0.0/8/8"})
        EXPECT_FALSE(Prefix::parse(text)) << text;
    EXPECT_TRUE(Prefix::parse("10.1.2.3/8")->holds(*Address::parse("10.9.9.9")));
    EXPECT_FALSE(Prefix::parse("10.1.2.3/8")->holds(*Address::parse("11.0.0.0")));
    EXPECT_FALSE(Prefix::parse("0.0.0.0/0")->holds(*Address::parse("::")));
    EXPECT_TRUE(Prefix::parse("::/0")->holds(*Address::parse("::1")));
}

}  // namespace
