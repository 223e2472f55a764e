// SPDX-License-Identifier: Apache-2.0
// Packets that are not what they should be: each has its verdict, leaves nothing of its plaintext,
// and keeps nothing that is right from being accepted afterwards.
#include <algorithm>

#include "esp/esp_fixture.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using esp::Framing;
using esp::Verdict;

constexpr std::uint8_t kIcvSizes[] = {8, 12, 16}, kTooLong[] = {43, 100, 255};

class EspDamage : public EspTest {
  protected:
    // Receives the packet and looks for its plaintext afterwards.
    Verdict refused(const Bytes& packet, const Bytes& plain, Framing framing = Framing::esp) {
        PacketBuffer buffer(packet, 0, 0);
        const Verdict verdict = receive(buffer, framing);
        EXPECT_NE(verdict, Verdict::ok);
        const Bytes left = buffer.memory.bytes();
        if (plain.size() >= 8) {
            const auto found =
                std::search(left.begin(), left.end(), plain.begin(), plain.begin() + 8);
            EXPECT_TRUE(found == left.end()) << "plaintext is left: " << esp::describe(verdict);
        }
        return verdict;
    }
    std::uint64_t count(Verdict verdict) const { return receiver_.counters().of(verdict); }
};

TEST_F(EspDamage, EveryTruncationAndEveryFlippedBit) {
    for (const bool esn : {false, true})
        for (const std::uint8_t icv : kIcvSizes) {
            const Bytes key = random_.bytes(16);
            esp::Options options = some_options();
            options.esn = esn;
            options.icv_size = icv;
            add(key, options);
            const Bytes payload = inner_ip(random_, esp::kIpv4, 45);
            const Bytes plain = with_trailer(payload, esp::kIpv4);
            const Bytes packet = esp_by_hand(key, options, 77, 1234, plain);
            for (std::size_t size = 0; size < packet.size(); ++size) {
                const Bytes part(packet.begin(), packet.begin() + static_cast<long>(size));
                const Verdict verdict = refused(part, plain);
                EXPECT_EQ(verdict, size < 16u + 4 + icv         ? Verdict::truncated
                                   : (size - 16 - icv) % 4 != 0 ? Verdict::malformed
                                                                : Verdict::bad_icv)
                    << size;
            }
            for (std::size_t bit = 0; bit < 8 * packet.size(); ++bit) {
                Bytes bad = packet;
                bad[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
                const Verdict verdict = refused(bad, plain);
                EXPECT_EQ(verdict, bit / 8 < 4 ? Verdict::unknown_spi : Verdict::bad_icv) << bit;
            }
            for (const std::size_t more : {1u, 2u, 3u, 4u, 16u}) {
                Bytes longer = packet;
                longer.resize(packet.size() + more, 0x11);
                EXPECT_EQ(refused(longer, plain), more % 4 ? Verdict::malformed : Verdict::bad_icv);
            }
            // None of that moved the window, nor took the number.
            PacketBuffer whole(packet);
            EXPECT_EQ(receive(whole), Verdict::ok);
            EXPECT_EQ(whole.bytes(), payload);
            EXPECT_EQ(refused(packet, plain), Verdict::replayed);
            const auto counters = *receiver_.counters(options.spi);
            EXPECT_EQ(counters.of(Verdict::ok), 1u);
            EXPECT_EQ(counters.of(Verdict::replayed), 1u);
            EXPECT_EQ(counters.bytes, payload.size());
        }
}

// What was sealed with the key, and is yet wrong.
TEST_F(EspDamage, AuthenticAndYetWrong) {
    const Bytes key = random_.bytes(32);
    const esp::Options options = some_options();
    add(key, options);
    std::uint64_t number = 0;
    const auto verdict_of = [&](const Bytes& plain) {
        ++number;
        return refused(esp_by_hand(key, options, number, number, plain), plain);
    };
    const auto accepted = [&](const Bytes& plain, std::size_t size) {
        ++number;
        PacketBuffer buffer(esp_by_hand(key, options, number, number, plain));
        EXPECT_EQ(receive(buffer), Verdict::ok);
        EXPECT_EQ(buffer.packet.size, size);
    };
    const Bytes payload = random_.bytes(40);
    // Every byte of 6 bytes of padding, and lengths beyond the packet.
    for (std::size_t at = 0; at < 6; ++at) {
        Bytes plain = payload;
        for (std::uint8_t i = 1; i <= 6; ++i) plain.push_back(i);
        plain[40 + at] ^= 0x40;
        plain.push_back(6);
        plain.push_back(17);
        EXPECT_EQ(verdict_of(plain), Verdict::bad_padding) << at;
    }
    for (const std::uint8_t length : kTooLong) {
        Bytes plain = payload;
        plain.insert(plain.end(), {length, 17});
        plain.insert(plain.begin(), {1, 2});
        EXPECT_EQ(verdict_of(plain), Verdict::bad_padding);
    }
    EXPECT_EQ(verdict_of({0, 0, 3, 17}), Verdict::bad_padding);
    accepted({1, 2, 2, 17}, 0);
    {  // 255 bytes of padding are the most
        Bytes plain(3, 9);
        for (int i = 1; i <= 255; ++i) plain.push_back(static_cast<std::uint8_t>(i));
        plain.insert(plain.end(), {255, 17});
        accepted(plain, 3);
    }
    EXPECT_EQ(verdict_of(with_trailer(payload, esp::kNoNext)), Verdict::dummy);
    // Inner packets, with TFC padding and without.
    for (const std::uint8_t next : {esp::kIpv4, esp::kIpv6}) {
        const std::size_t least = next == esp::kIpv4 ? 20 : 40,
                          length_at = next == esp::kIpv4 ? 2 : 4;
        const Bytes inner = inner_ip(random_, next, 80);
        accepted(with_trailer(inner, next), 80);
        accepted(with_trailer(inner, next, 700), 80);
        accepted(with_trailer(inner_ip(random_, next, least), next), least);
        Bytes bad = inner;
        bad[0] = next == esp::kIpv4 ? 0x65 : 0x45;
        EXPECT_EQ(verdict_of(with_trailer(bad, next)), Verdict::bad_inner);
        bad = inner;
        bad[length_at + 1] = 0xff;  // longer than what came
        EXPECT_EQ(verdict_of(with_trailer(bad, next)), Verdict::bad_inner);
        bad = Bytes(inner.begin(), inner.begin() + static_cast<long>(least) - 1);
        EXPECT_EQ(verdict_of(with_trailer(bad, next)), Verdict::bad_inner);
        EXPECT_EQ(verdict_of(with_trailer({}, next)), Verdict::bad_inner);
    }
    Bytes bad = inner_ip(random_, esp::kIpv4, 80);
    bad[0] = 0x44;  // a header of 16 bytes
    EXPECT_EQ(verdict_of(with_trailer(bad, esp::kIpv4)), Verdict::bad_inner);
    bad[0] = 0x4f;  // of 60
    bad[3] = 59;    // in a packet of 59
    EXPECT_EQ(verdict_of(with_trailer(bad, esp::kIpv4)), Verdict::bad_inner);
    EXPECT_EQ(count(Verdict::bad_padding), 10u);
    EXPECT_EQ(count(Verdict::bad_inner), 10u);
    EXPECT_EQ(count(Verdict::dummy), 1u);
}

TEST_F(EspDamage, NumbersThatCannotBe) {
    for (const bool esn : {false, true}) {
        const Bytes key = random_.bytes(16);
        esp::Options options = some_options();
        options.esn = esn;
        add(key, options);
        const Bytes plain = with_trailer(random_.bytes(30), 17);
        EXPECT_EQ(refused(esp_by_hand(key, options, 0, 1, plain), plain), Verdict::malformed);
        Bytes zero_spi = esp_by_hand(key, options, 1, 1, plain);
        std::fill_n(zero_spi.begin(), 4, std::uint8_t{0});
        EXPECT_EQ(refused(zero_spi, plain), Verdict::malformed);
        const auto take = [&](std::uint64_t number) {
            PacketBuffer buffer(esp_by_hand(key, options, number, number, plain));
            const Verdict verdict = receive(buffer);
            if (verdict == Verdict::ok) {
                EXPECT_EQ(buffer.packet.sequence, number);
            }
            return verdict;
        };
        if (!esn) {
            EXPECT_EQ(take(0xffffffff), Verdict::ok);
            EXPECT_EQ(take(0xffffffff), Verdict::replayed);
            EXPECT_EQ(take(0xffffffff - 1023), Verdict::ok);
            EXPECT_EQ(take(0xffffffff - 1024), Verdict::too_old);
            EXPECT_EQ(take(1), Verdict::too_old) << "numbers do not begin again";
            continue;
        }
        constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;
        // The very first may lie anywhere but where it would be before the first number.
        EXPECT_EQ(take(kHalf - 5), Verdict::too_old);
        EXPECT_EQ(take(kHalf - 5000), Verdict::ok);
        EXPECT_EQ(take(kHalf - 5), Verdict::ok);
        EXPECT_EQ(take(kHalf + 3), Verdict::ok);
        EXPECT_EQ(take(kHalf - 7), Verdict::ok) << "late, from the half before";
        EXPECT_EQ(take(kHalf - 5), Verdict::replayed);
        EXPECT_EQ(take(kHalf), Verdict::ok);
        EXPECT_EQ(take(kHalf + 3), Verdict::replayed);
        // Taken for the same number of the next half, which its ICV denies.
        EXPECT_EQ(take(kHalf - 1500), Verdict::bad_icv);
        EXPECT_EQ(take(2 * kHalf - 5000), Verdict::ok);
        EXPECT_EQ(take(2 * kHalf + 1), Verdict::ok);
    }
}

TEST_F(EspDamage, WhatElseComesToPort4500) {
    const Bytes key = random_.bytes(16);
    const esp::Options options = some_options();
    add(key, options);
    const Bytes payload = random_.bytes(33), plain = with_trailer(payload, 17);
    const auto in_udp = [&](const Bytes& content, int longer = 0) {
        Bytes datagram;
        append(datagram, 4500, 2);
        append(datagram, 1024, 2);
        append(datagram, static_cast<std::uint64_t>(static_cast<long>(content.size()) + 8 + longer),
               2);
        append(datagram, 0xabcd, 2);  // a checksum, which means nothing here
        append(datagram, content);
        return datagram;
    };
    std::uint64_t number = 0;
    const auto packet = [&] { return esp_by_hand(key, options, ++number, 5, plain); };
    const auto verdict_of = [&](const Bytes& bytes, Framing framing) {
        PacketBuffer buffer(bytes, 0, 0);
        const Verdict verdict = receive(buffer, framing);
        if (verdict == Verdict::ok) {
            EXPECT_EQ(buffer.bytes(), payload);
        }
        if (verdict == Verdict::ike) {
            EXPECT_EQ(buffer.bytes(), Bytes({7, 8, 9}));
        }
        return verdict;
    };
    EXPECT_EQ(verdict_of(in_udp(packet()), Framing::udp), Verdict::ok);
    EXPECT_EQ(verdict_of(packet(), Framing::udp_content), Verdict::ok);
    Bytes longer = in_udp(packet());
    longer.resize(longer.size() + 5);  // after the end that UDP's length says
    EXPECT_EQ(verdict_of(longer, Framing::udp), Verdict::ok);
    EXPECT_EQ(verdict_of(in_udp({0xff}), Framing::udp), Verdict::keepalive);
    EXPECT_EQ(verdict_of({0xff}, Framing::udp_content), Verdict::keepalive);
    EXPECT_EQ(verdict_of({0xff}, Framing::esp), Verdict::truncated);
    EXPECT_EQ(verdict_of({0xfe}, Framing::udp_content), Verdict::truncated);
    EXPECT_EQ(verdict_of(in_udp({0, 0, 0, 0, 7, 8, 9}), Framing::udp), Verdict::ike);
    EXPECT_EQ(verdict_of({0, 0, 0, 0, 7, 8, 9}, Framing::udp_content), Verdict::ike);
    EXPECT_EQ(verdict_of({0, 0, 0}, Framing::udp_content), Verdict::truncated);
    EXPECT_EQ(verdict_of({}, Framing::udp), Verdict::truncated);
    EXPECT_EQ(verdict_of({}, Framing::udp_content), Verdict::truncated);
    EXPECT_EQ(verdict_of(in_udp({}), Framing::udp), Verdict::truncated);
    EXPECT_EQ(verdict_of(in_udp(packet(), 1), Framing::udp), Verdict::malformed);
    EXPECT_EQ(verdict_of(in_udp({}, -1), Framing::udp), Verdict::malformed);
    EXPECT_EQ(verdict_of(in_udp(Bytes(70, 3), -70), Framing::udp), Verdict::truncated);
    EXPECT_EQ(verdict_of(in_udp(Bytes(70, 3)), Framing::udp), Verdict::unknown_spi);
}

// Descriptions of buffers that cannot be are refused before anything is read.
TEST_F(EspDamage, BuffersThatCannotBe) {
    Bytes memory(100);
    for (const auto& [offset, size] :
         {std::pair(0u, 101u), {1u, 100u}, {101u, 0u}, {~0u, 2u}, {5u, ~0u}}) {
        esp::Packet packet{memory.data(), 100, offset, size};
        EXPECT_EQ(receiver_.decapsulate({&packet, 1}), 0u);
        EXPECT_EQ(packet.verdict, Verdict::malformed);
    }
    esp::Packet packet{nullptr, 0, 0, 0};
    EXPECT_EQ(receiver_.decapsulate({&packet, 1}), 0u);
    EXPECT_EQ(packet.verdict, Verdict::malformed);
    EXPECT_EQ(receiver_.decapsulate({}), 0u);
}

}  // namespace
