// SPDX-License-Identifier: Apache-2.0
// Sizes on the wire are what encapsulate() makes, and the checksum is what RFC 1071 says.
#include <daelstrom/esp.hpp>

#include "esp/esp_fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using esp::Verdict;

class EspWire : public EspTest {};

TEST_F(EspWire, SizesAreThoseOfPackets) {
    for (const std::uint8_t icv : {std::uint8_t{8}, std::uint8_t{12}, std::uint8_t{16}})
        for (const std::uint16_t port : {std::uint16_t{0}, esp::kUdpPort}) {
            esp::Options options = some_options();
            options.icv_size = icv;
            options.udp_source = options.udp_destination = port;
            auto sender =
                opened(esp::Encapsulator::open(out_, *Key::import(random_.bytes(16)), options));
            for (std::size_t size = 0; size < 80; ++size)
                for (const std::size_t pad_to : {std::size_t{0}, std::size_t{61}}) {
                    PacketBuffer buffer(Bytes(size), esp::kHeadroom, esp::kTailroom + 61);
                    buffer.packet.next_header = 6;
                    buffer.packet.pad_to = static_cast<std::uint32_t>(pad_to);
                    ASSERT_TRUE(sender.encapsulate({&buffer.packet, 1}));
                    ASSERT_EQ(buffer.packet.verdict, Verdict::ok);
                    ASSERT_EQ(buffer.packet.size, esp::packet_size(options, size, pad_to));
                }
            for (std::size_t room = 0; room < 1600; ++room) {
                const std::size_t most = esp::most_payload(options, room);
                if (most != 0) ASSERT_LE(esp::packet_size(options, most), room);
                ASSERT_GT(esp::packet_size(options, most + 1), room);
            }
            EXPECT_EQ(esp::most_payload(options, 1 << 20), esp::kMaxPayload);
        }
}

// Word by word, as it is written down.
std::uint16_t by_hand(const Bytes& bytes) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        sum +=
            static_cast<std::uint32_t>(bytes[i] << 8 | (i + 1 < bytes.size() ? bytes[i + 1] : 0));
        if (sum > 0xffff) sum -= 0xffff;
    }
    return static_cast<std::uint16_t>(sum);
}

TEST_F(EspWire, Udp6ChecksumsAddUp) {
    esp::Options options = some_options();
    options.udp_source = options.udp_destination = esp::kUdpPort;
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(random_.bytes(16)), options));
    for (std::size_t i = 0; i < 300; ++i) {
        const Bytes source = random_.bytes(16), destination = random_.bytes(16);
        const std::span<const std::uint8_t, 16> from(source.data(), 16), to(destination.data(), 16);
        PacketBuffer buffer(random_.bytes(random_.below(1400)));
        buffer.packet.next_header = 6;
        ASSERT_TRUE(sender.encapsulate({&buffer.packet, 1}));
        std::span<std::uint8_t> datagram(buffer.packet.buffer + buffer.packet.offset,
                                         buffer.packet.size);
        ASSERT_TRUE(esp::udp6_checksum(datagram, from, to));
        EXPECT_TRUE(datagram[6] != 0 || datagram[7] != 0);
        Bytes all = source;
        append(all, destination);
        append(all, datagram.size(), 4);
        append(all, 17, 4);
        append(all, datagram);
        EXPECT_EQ(by_hand(all), 0xffff);
        EXPECT_EQ(esp::udp6_checksum(datagram.first(7), from, to).code(), Code::invalid_argument);
        EXPECT_EQ(esp::udp6_checksum(datagram.first(datagram.size() - 1), from, to).code(),
                  Code::invalid_argument);
    }
    // A datagram of odd length, and one whose sum is 0, which is written as 0xffff.
    Bytes odd{0x12, 0x34, 0x56, 0x78, 0, 9, 0, 0, 0xab};
    const Bytes nowhere(16);
    const std::span<const std::uint8_t, 16> zero(nowhere.data(), 16);
    ASSERT_TRUE(esp::udp6_checksum(odd, zero, zero));
    Bytes all(32);
    append(all, 9, 4);
    append(all, 17, 4);
    append(all, odd);
    EXPECT_EQ(by_hand(all), 0xffff);
    Bytes full{0xff, 0xff, 0, 0, 0, 10, 0, 0, 0xff, 0xda};  // with 10 + 17 + 10: 0xffff
    ASSERT_TRUE(esp::udp6_checksum(full, zero, zero));
    EXPECT_EQ(full[6], 0xff);
    EXPECT_EQ(full[7], 0xff);
}

}  // namespace
