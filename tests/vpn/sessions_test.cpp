// SPDX-License-Identifier: Apache-2.0
// Two ends' sessions without a loop or a network: what is sent with what, and when.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "vpn/path/filter.hpp"
#include "vpn/sessions.hpp"

namespace dael::vpn {
namespace {

constexpr const char* kAddresses[] = {"192.0.2.1:4500", "192.0.2.2:4500"};

// Keeps what it is given to send.
struct End final : Outlet {
    std::unique_ptr<Sessions> sessions;
    std::deque<std::vector<std::uint8_t>> messages;
    std::vector<std::vector<std::uint8_t>> packets;  // of sessions, in plain; a dummy is empty

    void send(std::span<const std::uint8_t> message, path::Route) override {
        messages.emplace_back(message.begin(), message.end());
    }
    Traffic send(Session&, path::Route, std::span<const Waiting::Item> items) override {
        Traffic traffic{std::max<std::size_t>(items.size(), 1), 0, !items.empty()};
        for (const Waiting::Item& item : items) {
            packets.emplace_back(item.packet.begin(), item.packet.end());
            traffic.bytes += item.packet.size();
        }
        if (items.empty()) packets.emplace_back();
        return traffic;
    }
    void wait(std::vector<std::uint8_t>& packet) {
        esp::Packet one;
        one.buffer = packet.data();
        one.capacity = one.size = static_cast<std::uint32_t>(packet.size());
        one.next_header = esp::kIpv4;
        sessions->wait(0, {&one, 1}, 0, *this);
    }
};

// Each knows where the other is. Nothing of a session arrives at the other: keys are not confirmed.
struct Pair {
    End one, two;
    std::vector<std::uint8_t> packet = std::vector<std::uint8_t>(40, 0x45);

    Pair() {
        Result<SecretKey> keys[] = {generate_key(), generate_key()};
        for (const int i : {0, 1}) {
            Config config;
            PeerConfig peer;
            peer.public_key = *public_key(*keys[1 - i]);
            peer.allowed = {*path::Prefix::parse(i == 0 ? "10.1.0.2/32" : "10.1.0.1/32")};
            peer.resolved = *path::Endpoint::parse(kAddresses[1 - i]);
            config.peers.push_back(std::move(peer));
            config.private_key = *keys[i];
            auto opened = Sessions::open(config);
            EXPECT_TRUE(opened) << opened.error().message;
            (i == 0 ? one : two).sessions = std::move(*opened);
        }
    }
    // What has been sent arrives, and what is sent upon it.
    void exchange() {
        const auto pass = [](End& from, End& to, const char* address) {
            const auto message = from.messages.front();
            from.messages.pop_front();
            path::Route route;
            route.remote = *path::Endpoint::parse(address);
            to.sessions->handshake(message, route, to);
        };
        while (!one.messages.empty() || !two.messages.empty())
            if (!one.messages.empty())
                pass(one, two, kAddresses[0]);
            else
                pass(two, one, kAddresses[1]);
    }
};

TEST(Sessions, WhatWaitsGoesWithTheSession) {
    Pair pair;
    pair.one.wait(pair.packet);
    EXPECT_TRUE(pair.one.packets.empty());
    EXPECT_EQ(pair.one.messages.size(), 1u);
    pair.exchange();
    ASSERT_EQ(pair.one.packets.size(), 1u);
    EXPECT_EQ(pair.one.packets[0], pair.packet);
    EXPECT_TRUE(pair.two.packets.empty()) << "it was not shown that the other has the keys";
}

// A loop finds no session, and before it has the lock another loop's datagram has made one.
TEST(Sessions, WhatIsLateForASessionGoesAtOnce) {
    Pair pair;
    pair.one.sessions->begin(pair.one);
    pair.exchange();
    ASSERT_TRUE(pair.one.sessions->way_to(0).session);
    pair.one.packets.clear();
    pair.one.wait(pair.packet);
    ASSERT_EQ(pair.one.packets.size(), 1u);
    EXPECT_EQ(pair.one.packets[0], pair.packet);
    EXPECT_TRUE(pair.one.messages.empty()) << "there is a session";
    pair.one.wait(pair.packet);
    EXPECT_EQ(pair.one.packets.size(), 2u) << "none goes twice";
    EXPECT_EQ(pair.one.sessions->peer(0).lost.get(), 0u);
}

// Packets of sessions that nobody knows: after a start they may be a peer's, from anywhere.
TEST(Sessions, StrangersGetNoHintsForLong) {
    Pair pair;
    std::array<std::uint8_t, 40> packet{};
    packet[2] = 0x12;
    const auto hints = [&](const char* from) {
        path::Route route;
        route.remote = *path::Endpoint::parse(from);
        pair.one.messages.clear();
        pair.one.sessions->unknown_spi(packet, route, pair.one);
        return pair.one.messages.size();
    };
    EXPECT_EQ(hints("198.51.100.7:4500"), 1u);
    EXPECT_EQ(pair.one.messages.front().size(), 28u);
    EXPECT_EQ(hints(kAddresses[1]), 1u);
    pair.one.sessions->pretend_since(now().steady - std::chrono::minutes(4));
    EXPECT_EQ(hints("198.51.100.7:4500"), 0u);
    EXPECT_EQ(hints("192.0.2.2:9"), 1u) << "a peer behind NAT has another port now and then";
}

// Who may send what is no session's: anybody, as long as hints are given; then who is a peer, there
// where it was last.
TEST(Sessions, GuestsAreWherePeersAre) {
    Pair pair;
    Sessions& one = *pair.one.sessions;
    one.begin(pair.one);
    pair.exchange();
    one.tick(pair.one);
    EXPECT_EQ(one.guest_list(), 0u) << "anybody";
    one.pretend_since(now().steady - std::chrono::minutes(4));
    one.tick(pair.one);
    const std::uint64_t first = one.guest_list();
    EXPECT_NE(first, 0u);
    EXPECT_EQ(one.guests(), std::vector{path::Endpoint::parse(kAddresses[1])->address});
    EXPECT_EQ(one.spi_mark(), one.way_to(0).session->receiving_spi >> 16);

    path::Route elsewhere = one.way_to(0).route;
    elsewhere.remote.port += 1;
    const SessionPtr session = one.way_to(0).session;
    one.received(*session, {1, 1, true}, elsewhere, pair.one);
    EXPECT_EQ(one.guest_list(), first) << "another port is of the same address";
    elsewhere.remote = *path::Endpoint::parse("198.51.100.7:4500");
    one.received(*session, {1, 1, true}, elsewhere, pair.one);
    EXPECT_NE(one.guest_list(), first);
    EXPECT_EQ(one.guests(), std::vector{elsewhere.remote.address});
}

TEST(Sessions, GuestsBehindOneAddressAreOne) {
    for (const int addresses : {2, 100}) {
        Config config;
        config.private_key = *generate_key();
        for (int i = 0; i < 100; ++i) {
            PeerConfig peer;
            peer.public_key = *public_key(*generate_key());
            peer.resolved = *path::Endpoint::parse("192.0.2.1:4500");
            peer.resolved.address.bytes[3] = static_cast<std::uint8_t>(i % addresses);
            peer.resolved.port = static_cast<std::uint16_t>(4500 + i);
            config.peers.push_back(std::move(peer));
        }
        const auto sessions = Sessions::open(config);
        ASSERT_TRUE(sessions) << sessions.error().message;
        EXPECT_EQ((*sessions)->guests().size(), addresses == 2 ? 2u : path::kMostGuests + 1);
    }
}

}  // namespace
}  // namespace dael::vpn
