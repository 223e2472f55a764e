// SPDX-License-Identifier: Apache-2.0
// ESP packets against RFC 4303's layout with OpenSSL's GCM, both ways.
#include <deque>
#include <map>

#include "core/registry.hpp"
#include "esp/esp_fixture.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using esp::Verdict;

class Esp : public EspTest {};

constexpr std::uint8_t kIcvSizes[] = {8, 12, 16};

// Every combination of what an SA may be.
template <class Function>
void for_every_kind(Function function) {
    for (const std::size_t key_size : {16, 24, 32})
        for (const std::uint8_t icv : kIcvSizes)
            for (const bool esn : {false, true})
                for (const bool udp : {false, true}) {
                    function(key_size, icv, esn, udp);
                    if (testing::Test::HasFatalFailure()) return;
                }
}

TEST_F(Esp, EveryKindOfSaAndEverySize) {
    for_every_kind([this](std::size_t key_size, std::uint8_t icv, bool esn, bool udp) {
        const Bytes key = random_.bytes(key_size);
        esp::Options options = some_options();
        options.icv_size = icv;
        options.esn = esn;
        if (udp) options.udp_source = options.udp_destination = esp::kUdpPort;
        auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), options));
        add(key, options);
        std::uint64_t number = 0;
        for (std::size_t size = 0; size < 1500; size += size < 80 ? 1 : 97) {
            const std::uint8_t next = size < 20                     ? 17
                                      : size % 3 == 0 && size >= 40 ? esp::kIpv6
                                      : size % 3 == 1               ? esp::kIpv4
                                                                    : 6;
            const Bytes payload = next >= 6 && next != esp::kIpv6 ? random_.bytes(size)
                                                                  : inner_ip(random_, next, size);
            const std::uint32_t pad_to = size % 5 == 0 && next != 6 && next != 17
                                             ? static_cast<std::uint32_t>(size + 33)
                                             : 0;
            PacketBuffer buffer(payload, esp::kHeadroom, esp::kTailroom + 33, size % 64);
            buffer.packet.next_header = next;
            buffer.packet.pad_to = pad_to;
            const auto sent = sender.encapsulate({&buffer.packet, 1});
            ASSERT_TRUE(sent) << sent.error().message;
            ASSERT_EQ(sent->packets, 1u);
            ASSERT_EQ(buffer.packet.verdict, Verdict::ok);
            ASSERT_EQ(buffer.packet.sequence, ++number);
            ASSERT_TRUE(buffer.memory.intact());
            Bytes packet = buffer.bytes();
            if (udp) {
                Bytes header;
                append(header, 4500, 2);
                append(header, 4500, 2);
                append(header, packet.size(), 2);
                append(header, 0, 2);
                ASSERT_EQ(Bytes(packet.begin(), packet.begin() + 8), header);
                packet.erase(packet.begin(), packet.begin() + 8);
            }
            const std::uint64_t iv = std::uint64_t{read32(&packet[8])} << 32 | read32(&packet[12]);
            ASSERT_EQ(difference(esp_by_hand(key, options, number, iv,
                                             with_trailer(payload, next, pad_to)),
                                 packet),
                      "")
                << size;
            ASSERT_EQ(receive(buffer, udp ? esp::Framing::udp : esp::Framing::esp), Verdict::ok);
            ASSERT_EQ(difference(payload, buffer.bytes()), "") << size;
            ASSERT_EQ(buffer.packet.next_header, next);
            ASSERT_EQ(buffer.packet.sequence, number);
            ASSERT_EQ(buffer.packet.spi, options.spi);
        }
    });
}

TEST_F(Esp, NoIvTwice) {
    for (const SaIvs ivs : {SaIvs::by_size, SaIvs::counting}) {
        esp::Options options = some_options();
        options.ivs = ivs;
        auto sender =
            opened(esp::Encapsulator::open(out_, *Key::import(random_.bytes(16)), options));
        std::map<Bytes, int> seen;
        for (int i = 0; i < 500; ++i) {
            PacketBuffer buffer(random_.bytes(random_.below(1400)));
            buffer.packet.next_header = 6;
            ASSERT_TRUE(sender.encapsulate({&buffer.packet, 1}));
            const Bytes packet = buffer.bytes();
            ASSERT_EQ(++seen[Bytes(packet.begin() + 8, packet.begin() + 16)], 1);
            ASSERT_EQ(read32(&packet[4]), static_cast<std::uint32_t>(i + 1));
        }
    }
}

// McGrew's vectors: what can be received with what is known of the numbers before.
TEST_F(Esp, TestVectors) {
    int opened_ones = 0;
    for (const GcmVector& v : load_gcm_json("esp.json")) {
        for (const char* backend : {"reference", "openssl", "cpu"}) {
            auto any = core::open_backend(backend);
            if (!any) continue;
            const auto cipher = opened((*any)->packets(*Key::import(v.key)));
            gcm::Nonce nonce;
            std::ranges::copy(v.iv, nonce.begin());
            const Block first = gcm::start(nonce);
            const Bytes keystream = oracle(v.key, {Mode::ctr, Direction::encrypt, first},
                                           Bytes(v.plaintext.size() + 32));
            for (const bool ahead : {false, true}) {
                Bytes out(v.plaintext.size()), tag(16);
                const core::CipherPacket packet{v.plaintext.data(),
                                                out.data(),
                                                out.size(),
                                                v.aad.data(),
                                                v.aad.size(),
                                                tag.data(),
                                                16,
                                                first,
                                                ahead ? keystream.data() : nullptr,
                                                ahead ? keystream.size() / 16 : 0};
                ASSERT_EQ(cipher->seal({&packet, 1}), Code::ok);
                EXPECT_EQ(out, v.ciphertext) << v.name << ", " << backend;
                EXPECT_EQ(tag, v.tag) << v.name << ", " << backend;
            }
        }
        esp::Options options{
            .spi = read32(v.aad.data()), .esn = v.aad.size() == 12, .accept_again = true};
        std::copy_n(v.iv.begin(), 4, options.salt.begin());
        const bool upper = options.esn && read32(&v.aad[4]) != 0;
        if (options.spi < 256 || upper) continue;
        (void)receiver_.remove(options.spi);
        add(v.key, options);
        Bytes packet(v.aad.begin(), v.aad.begin() + 4);
        packet.insert(packet.end(), v.aad.end() - 4, v.aad.end());
        packet.insert(packet.end(), v.iv.begin() + 4, v.iv.end());
        append(packet, v.ciphertext);
        append(packet, v.tag);
        PacketBuffer buffer(packet);
        const Verdict verdict = receive(buffer);
        const std::uint8_t next = v.plaintext.back();
        const std::size_t padding = v.plaintext[v.plaintext.size() - 2];
        // Those whose payload is words or nothing have a next header of 1 or IPv4 in name only.
        ASSERT_EQ(verdict, Verdict::ok) << v.name << ": " << esp::describe(verdict);
        EXPECT_EQ(buffer.packet.next_header, next);
        Bytes payload(v.plaintext.begin(), v.plaintext.end() - 2 - static_cast<long>(padding));
        EXPECT_EQ(buffer.bytes(), payload) << v.name;
        ++opened_ones;
    }
    EXPECT_EQ(opened_ones, 6);
}

TEST_F(Esp, OptionsThatMakeNoSense) {
    const auto key = Key::import(random_.bytes(16));
    const auto refused = [&](auto change, const std::string& words, bool sending) {
        esp::Options options = some_options();
        change(options);
        const Result<> why = sending ? [&]() -> Result<> {
            auto opened = esp::Encapsulator::open(out_, *key, options);
            if (opened) return {};
            return opened.error();
        }()
            : receiver_.add(*key, options);
        ASSERT_FALSE(why) << words;
        EXPECT_EQ(why.code(), Code::invalid_argument);
        EXPECT_NE(why.error().message.find(words), std::string::npos) << why.error().message;
    };
    for (const bool sending : {true, false}) {
        refused([](auto& o) { o.spi = 0; }, "SPI 0;", sending);
        refused([](auto& o) { o.spi = 255; }, "SPI 255;", sending);
        refused([](auto& o) { o.icv_size = 4; }, "ICV of 4 bytes", sending);
        refused([](auto& o) { o.icv_size = 13; }, "ICV of 13 bytes", sending);
    }
    refused([](auto& o) { o.udp_source = 4500; }, "one UDP port of two", true);
    refused([](auto& o) { o.fresh_key = false; }, "fresh", true);
    refused([](auto& o) { o.window = 31; }, "window of 31 packets", false);
    refused([](auto& o) { o.window = (1 << 20) + 1; }, "window of 1048577 packets", false);
    refused([](auto& o) { o.window = 0; }, "extended sequence numbers need a window", false);
    esp::Options options = some_options();
    ASSERT_TRUE(receiver_.add(*key, options));
    const auto again = receiver_.add(*key, options);
    EXPECT_EQ(again.code(), Code::invalid_argument);
    EXPECT_NE(again.error().message.find("is taken"), std::string::npos);
    EXPECT_EQ(receiver_.remove(99999).code(), Code::invalid_argument);
    EXPECT_TRUE(receiver_.remove(options.spi));
    EXPECT_EQ(receiver_.size(), 0u);
}

TEST_F(Esp, RoomIsCheckedToTheByte) {
    esp::Options options = some_options();
    for (const bool udp : {false, true}) {
        if (udp) options.udp_source = options.udp_destination = 4500;
        auto sender =
            opened(esp::Encapsulator::open(out_, *Key::import(random_.bytes(16)), options));
        const std::size_t before = udp ? 24 : 16;
        for (std::size_t size = 0; size < 8; ++size) {
            const std::size_t after = with_trailer(Bytes(size), 6).size() - size + 16;
            for (const auto& [lacks_before, lacks_after] : {std::pair(0, 0), {1, 0}, {0, 1}}) {
                const Bytes payload = random_.bytes(size);
                PacketBuffer buffer(payload, before - static_cast<std::size_t>(lacks_before),
                                    after - static_cast<std::size_t>(lacks_after));
                buffer.packet.next_header = 6;
                const esp::Packet as_it_was = buffer.packet;
                const Bytes memory = buffer.memory.bytes();
                const auto sent = sender.encapsulate({&buffer.packet, 1});
                ASSERT_TRUE(sent && buffer.memory.intact());
                const bool fits = lacks_before + lacks_after == 0;
                EXPECT_EQ(sent->packets, fits);
                EXPECT_EQ(buffer.packet.verdict, fits ? Verdict::ok : Verdict::no_room);
                if (!fits) {
                    EXPECT_EQ(buffer.packet.offset, as_it_was.offset);
                    EXPECT_EQ(buffer.packet.size, as_it_was.size);
                    EXPECT_EQ(buffer.memory.bytes(), memory);
                }
            }
        }
        for (const auto& [offset, size, capacity] : {std::array{100u, 0xffffffffu, 200u},
                                                     {0xffffff00u, 0x200u, 0x200u},
                                                     {16u, 70000u, 90000u}}) {
            Bytes memory(90000);
            esp::Packet packet{memory.data(), capacity, offset, size};
            ASSERT_TRUE(sender.encapsulate({&packet, 1}));
            EXPECT_EQ(packet.verdict, Verdict::no_room);
        }
        esp::Packet packet{nullptr, 1000, 100, 10};
        ASSERT_TRUE(sender.encapsulate({&packet, 1}));
        EXPECT_EQ(packet.verdict, Verdict::no_room);
    }
}

TEST_F(Esp, NumbersEndAndNothingFollows) {
    for (const std::size_t batch : {1u, 7u, 32u, 100u}) {
        esp::Options options = some_options();
        options.limit = 50;
        options.soft_limit = 40;
        options.esn = false;
        auto sender =
            opened(esp::Encapsulator::open(out_, *Key::import(random_.bytes(16)), options));
        std::size_t sent_in_all = 0;
        for (int round = 0; round < 120; ++round) {
            std::deque<PacketBuffer> buffers;
            std::vector<esp::Packet> packets;
            for (std::size_t i = 0; i < batch; ++i) {
                packets.push_back(buffers.emplace_back(random_.bytes(40)).packet);
                packets.back().next_header = 6;
            }
            const Bytes last = buffers.back().bytes();
            const auto sent = sender.encapsulate(packets);
            ASSERT_TRUE(sent);
            sent_in_all += sent->packets;
            for (std::size_t i = 0; i < batch; ++i)
                ASSERT_EQ(packets[i].verdict, i < sent->packets ? Verdict::ok : Verdict::exhausted);
            EXPECT_EQ(sent->rekey_soon, sent_in_all >= 40) << sent_in_all;
            if (sent->packets < batch) {
                EXPECT_EQ(buffers.back().bytes(), last) << "the payload is untouched";
            }
        }
        EXPECT_EQ(sent_in_all, 50u);
        EXPECT_EQ(sender.counters().of(Verdict::ok), 50u);
        EXPECT_EQ(sender.counters().of(Verdict::exhausted), 120 * batch - 50);
    }
}

// Packets of several SAs, mixed, more than are worked on together, some bad.
TEST_F(Esp, MixedBatches) {
    constexpr std::size_t kSas = 5;
    std::vector<Bytes> keys;
    std::vector<esp::Options> options;
    std::deque<esp::Encapsulator> senders;
    for (std::size_t i = 0; i < kSas; ++i) {
        keys.push_back(random_.bytes(16 + 8 * (i % 3)));
        options.push_back(some_options());
        options.back().icv_size = static_cast<std::uint8_t>(8 + 4 * (i % 3));
        options.back().esn = i % 2 == 0;
        senders.push_back(opened(esp::Encapsulator::open(out_, *Key::import(keys[i]), options[i])));
        add(keys[i], options[i]);
    }
    for (int round = 0; round < 20; ++round) {
        std::deque<PacketBuffer> buffers;
        std::vector<esp::Packet> packets;
        std::vector<Bytes> payloads;
        std::vector<Verdict> expected;
        for (int i = 0; i < 150; ++i) {
            const std::size_t sa = random_.below(kSas);
            const std::size_t what = random_.below(8);
            payloads.push_back(random_.bytes(random_.below(1500)));
            PacketBuffer& buffer = buffers.emplace_back(payloads.back());
            buffer.packet.next_header = 6;
            ASSERT_TRUE(senders[sa].encapsulate({&buffer.packet, 1}));
            expected.push_back(Verdict::ok);
            if (what == 0) {
                buffer.packet.buffer[buffer.packet.offset + 20] ^= 1;
                expected.back() = Verdict::bad_icv;
            } else if (what == 1) {
                buffer.packet.buffer[buffer.packet.offset] ^= 0x80;
                expected.back() = Verdict::unknown_spi;
            } else if (what == 2) {
                buffer.packet.size = 20;
                expected.back() = Verdict::truncated;
            }
            packets.push_back(buffer.packet);
            if (what == 3) {  // the same again, in the same batch
                payloads.push_back(payloads.back());
                PacketBuffer& copy = buffers.emplace_back(buffer.bytes());
                packets.push_back(copy.packet);
                expected.push_back(Verdict::replayed);
            }
        }
        // Now and then two change places.
        for (std::size_t i = 1; i < packets.size(); ++i)
            if (random_.below(4) == 0 && expected[i] != Verdict::replayed &&
                expected[i - 1] != Verdict::replayed &&
                (i + 1 == packets.size() || expected[i + 1] != Verdict::replayed)) {
                std::swap(packets[i], packets[i - 1]);
                std::swap(payloads[i], payloads[i - 1]);
                std::swap(expected[i], expected[i - 1]);
            }
        const std::size_t accepted = receiver_.decapsulate(packets);
        std::size_t ok = 0;
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const esp::Packet& p = packets[i];
            ASSERT_EQ(p.verdict, expected[i]) << i << ": " << esp::describe(p.verdict);
            if (p.verdict != Verdict::ok) continue;
            ++ok;
            ASSERT_EQ(difference(payloads[i], {p.buffer + p.offset, p.size}), "");
        }
        EXPECT_EQ(accepted, ok);
    }
    std::uint64_t ok = 0;
    for (const esp::Options& o : options) ok += receiver_.counters(o.spi)->of(Verdict::ok);
    EXPECT_EQ(receiver_.counters().of(Verdict::ok), ok);
}

// Through keystream that a filler makes ahead of time, in both directions.
class EspAhead : public EspTest {
  protected:
    EspAhead() : EspTest("auto", SaTableOptions::Plan::ahead) {}
};

TEST_F(EspAhead, SendsAndReceives) {
    const Bytes key = random_.bytes(32);
    const esp::Options options = some_options();
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), options));
    add(key, options);
    for (int round = 0; round < 60; ++round) {
        std::deque<PacketBuffer> buffers;
        std::vector<esp::Packet> packets;
        std::vector<Bytes> payloads;
        for (int i = 0; i < 64; ++i) {
            payloads.push_back(random_.bytes(random_.below(1400)));
            packets.push_back(buffers.emplace_back(payloads.back()).packet);
            packets.back().next_header = 6;
        }
        const auto sent = sender.encapsulate(packets);
        ASSERT_TRUE(sent) << sent.error().message;
        ASSERT_EQ(sent->packets, packets.size());
        ASSERT_EQ(receiver_.decapsulate(packets), packets.size());
        for (std::size_t i = 0; i < packets.size(); ++i)
            ASSERT_EQ(
                difference(payloads[i], {packets[i].buffer + packets[i].offset, packets[i].size}),
                "");
        if (round % 8 == 0) {
            out_.settle();
            in_.settle();
        }
    }
    EXPECT_GT(out_.counters().hits, 0u) << out_.explain();
}

}  // namespace
