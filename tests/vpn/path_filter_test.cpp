// SPDX-License-Identifier: Apache-2.0
// What the kernel drops for the tunnel's socket, and that it drops nothing else: on the loopback
// interface, which keeps the order of what is sent.
#include <gtest/gtest.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/bytes.hpp"
#include "vpn/path/filter.hpp"
#include "vpn/path/udp.hpp"

namespace {

using namespace dael::test;
using namespace dael::vpn::path;

constexpr std::uint16_t kMark = 0xa1b2;

Address address(const char* text) {
    return *Address::parse(text);
}

std::vector<std::uint8_t> datagram(std::uint32_t begin, std::size_t size = 60) {
    std::vector<std::uint8_t> bytes(size, 0x5a);
    for (std::size_t i = 0; i < 4 && i < size; ++i)
        bytes[i] = static_cast<std::uint8_t>(begin >> (24 - 8 * i));
    return bytes;
}

Udp open(const char* bind, bool gro = true) {
    UdpOptions options;
    if (*bind) options.bind.address = address(bind);
    options.gro = gro;
    auto opened = Udp::open(options);
    if (!opened) throw std::runtime_error(opened.error().message);
    return std::move(*opened);
}

// Sends these from one address, then one that always comes in: what came before that.
std::vector<std::uint32_t> come_in(Udp& receiver, const char* from, const char* to,
                                   const std::vector<std::vector<std::uint8_t>>& sent) {
    Udp sender = open(from);
    Route route;
    route.remote = {address(to), receiver.port()};
    const std::vector<std::uint8_t> last = datagram(0, 28);
    for (const auto& each : sent) (void)sender.send(each, route);
    (void)sender.send(last, route);
    std::vector<std::uint32_t> came;
    for (;;) {
        pollfd ready{receiver.fd(), POLLIN, 0};
        if (poll(&ready, 1, 10'000) != 1) throw std::runtime_error("nothing came");
        for (const Datagrams& some : receiver.receive())
            for (std::uint32_t at = 0; at < some.size; at += some.segment) {
                const std::uint32_t size = std::min(some.segment, some.size - at);
                if (size == last.size()) return came;
                std::uint32_t begin = 0;
                for (std::uint32_t i = 0; i < 4 && i < size; ++i)
                    begin = begin << 8 | some.data[at + i];
                came.push_back(begin);
            }
    }
}

using Begins = std::vector<std::uint32_t>;
constexpr std::uint32_t kOurs = std::uint32_t{kMark} << 16 | 7, kOurs0 = std::uint32_t{kMark} << 16;
constexpr std::uint32_t kAbove = std::uint32_t{kMark + 1} << 16, kBelow = kOurs0 - 1, kOdd = 0xb2a1;
const std::vector<std::vector<std::uint8_t>> kAll{datagram(kOurs), datagram(kAbove),
                                                  datagram(0),     datagram(kBelow),
                                                  datagram(kOdd),  datagram(kOurs0)};
const Begins kLetIn{kOurs, 0, kOurs0}, kEach{kOurs, kAbove, 0, kBelow, kOdd, kOurs0};

TEST(VpnFilter, DropsWhatIsNobodys) {
    for (const char* bind : {"", "127.0.0.1"}) {
        Udp udp = open(bind);
        EXPECT_EQ(come_in(udp, "127.0.0.5", "127.0.0.1", kAll), kEach);
        const Address guest[] = {address("::9"), address("127.0.0.5")};
        ASSERT_TRUE(udp.admit(kMark, guest));
        EXPECT_EQ(come_in(udp, "127.0.0.6", "127.0.0.1", kAll), kLetIn) << "a stranger";
        EXPECT_EQ(udp.dropped(), 3u);
        EXPECT_EQ(come_in(udp, "127.0.0.5", "127.0.0.1", kAll), kEach) << "a guest";
        EXPECT_EQ(udp.dropped(), 3u);
    }
}

TEST(VpnFilter, DropsWhatIsNobodysByIpv6) {
    for (const char* bind : {"", "::1"}) {
        Udp udp = [&] {
            try {
                return open(bind);
            } catch (const std::exception&) {
                return open("127.0.0.1");
            }
        }();
        if (!udp.six()) GTEST_SKIP() << "NOT RUN: no IPv6 here";
        const Address nearly[] = {address("::2"), address("1::1"), address("0:0:1::1"),
                                  address("::1:0:0:1"), address("0.0.0.1")};
        ASSERT_TRUE(udp.admit(kMark, nearly));
        EXPECT_EQ(come_in(udp, "::1", "::1", kAll), kLetIn);
        const Address guest[] = {address("127.0.0.1"), address("::2"), address("::1")};
        ASSERT_TRUE(udp.admit(kMark, guest));
        EXPECT_EQ(come_in(udp, "::1", "::1", kAll), kEach);
        ASSERT_TRUE(udp.admit(kMark, {}));
        EXPECT_EQ(come_in(udp, "::1", "::1", kAll), kLetIn);
    }
}

TEST(VpnFilter, ShortOnesAreNobodys) {
    Udp udp = open("127.0.0.1");
    ASSERT_TRUE(udp.admit(kMark, {}));
    std::vector<std::vector<std::uint8_t>> sent;
    for (std::size_t size = 1; size < 4; ++size) sent.push_back(datagram(0, size));
    sent.push_back(datagram(kOurs, 4));
    EXPECT_EQ(come_in(udp, "127.0.0.5", "127.0.0.1", sent), Begins{kOurs});
}

// What a socket's filter takes of net.core.optmem_max.
std::uint32_t memory_of(const Udp& udp) {
    std::uint32_t values[SK_MEMINFO_VARS] = {};
    socklen_t size = sizeof values;
    if (getsockopt(udp.fd(), SOL_SOCKET, SO_MEMINFO, values, &size) != 0)
        throw std::runtime_error("SO_MEMINFO");
    return values[SK_MEMINFO_OPTMEM];
}

// The last of as many as a program has room for, and one more; of those that take most room, too.
TEST(VpnFilter, HasRoomForManyGuests) {
    Udp udp = open("127.0.0.1");
    for (const char* first : {"127.0.0.1", "255.0.0.1", "::1", "ff00:0:ff00:0:ff00:0:ff00:0"}) {
        std::vector<Address> guests(kMostGuests, address(first));
        for (std::size_t i = 0; i < kMostGuests; ++i)
            guests[i].bytes[1] = static_cast<std::uint8_t>(i);
        ASSERT_TRUE(udp.admit(kMark, guests)) << first;
        constexpr std::uint32_t kOften = 20480;  // of net.core.optmem_max, where it is the least
        EXPECT_LT(2 * memory_of(udp), kOften) << first << ": one is put in another's place";
        EXPECT_EQ(come_in(udp, "127.0.0.5", "127.0.0.1", kAll), kLetIn);
        guests.back() = address("127.0.0.5");
        ASSERT_TRUE(udp.admit(kMark, guests)) << first;
        EXPECT_EQ(come_in(udp, "127.0.0.5", "127.0.0.1", kAll), kEach);
        guests.push_back(address("127.0.0.7"));
        EXPECT_FALSE(udp.admit(kMark, guests)) << "too many to be looked for";
        EXPECT_EQ(come_in(udp, "127.0.0.6", "127.0.0.1", kAll), kEach) << "then all comes in";
    }
}

// What the kernel has joined is looked at once: from a guest all of it comes in, whatever is first.
TEST(VpnFilter, WhatIsJoinedComesInFromGuests) {
    Udp udp = open("127.0.0.1");
    const Address guest[] = {address("127.0.0.5")};
    ASSERT_TRUE(udp.admit(kMark, guest));
    std::vector<std::vector<std::uint8_t>> sent;
    Begins begins;
    for (std::uint32_t i = 0; i < 100; ++i) {
        begins.push_back(i % 5 == 0 ? kBelow : kOurs0 + i);
        sent.push_back(datagram(begins.back(), 1000));
    }
    EXPECT_EQ(come_in(udp, "127.0.0.5", "127.0.0.1", sent), begins);
}

}  // namespace
