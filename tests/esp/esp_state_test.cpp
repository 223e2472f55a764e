// SPDX-License-Identifier: Apache-2.0
// SAs that go on from where others stood, and their lifetimes: no number goes out twice, no packet
// is accepted twice, whoever hands over to whom and in whatever order.
#include <deque>
#include <set>
#include <thread>

#include "esp/esp_fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using esp::Verdict;

class EspState : public EspTest {
  protected:
    // So many packets; their ESP bytes. Fewer, when the SA is at its end.
    std::vector<Bytes> send(esp::Encapsulator& sender, std::size_t count) {
        std::deque<PacketBuffer> buffers;
        std::vector<esp::Packet> packets;
        for (std::size_t i = 0; i < count; ++i) {
            packets.push_back(buffers.emplace_back(random_.bytes(random_.below(900))).packet);
            packets.back().next_header = 6;
        }
        EXPECT_TRUE(sender.encapsulate(packets));
        std::vector<Bytes> sent;
        for (const esp::Packet& p : packets) {
            if (p.verdict != Verdict::ok) {
                EXPECT_EQ(p.verdict, Verdict::exhausted);
                continue;
            }
            sent.emplace_back(p.buffer + p.offset, p.buffer + p.offset + p.size);
            EXPECT_TRUE(numbers_.insert(p.sequence).second) << p.sequence << " went out twice";
            EXPECT_TRUE(
                ivs_.insert(Bytes(sent.back().begin() + 8, sent.back().begin() + 16)).second)
                << "an IV went out twice";
        }
        return sent;
    }
    Verdict take(const Bytes& packet) {
        PacketBuffer buffer(packet);
        return receive(buffer);
    }

    std::set<std::uint64_t> numbers_;
    std::set<Bytes> ivs_;
};

TEST_F(EspState, ASenderIsHandedOver) {
    for (const SaIvs ivs : {SaIvs::by_size, SaIvs::counting}) {
        numbers_.clear();
        ivs_.clear();
        const Bytes key = random_.bytes(16);
        esp::Options options = some_options();
        options.ivs = ivs;
        options.window = 4096;
        add(key, options);
        std::optional<esp::Encapsulator> sender(
            opened(esp::Encapsulator::open(out_, *Key::import(key), options)));
        for (int round = 0; round < 20; ++round) {
            for (const Bytes& packet : send(*sender, 10)) EXPECT_EQ(take(packet), Verdict::ok);
            const SaState state = opened(sender->export_state());
            EXPECT_TRUE(send(*sender, 1).empty()) << "it has sent its last";
            SaState other = state;
            other.next -= 1;
            if (ivs == SaIvs::counting) other.ivs[0] -= 1;
            EXPECT_EQ(esp::Encapsulator::open(in_, *Key::import(key), options, other).code(),
                      Code::invalid_argument)
                << "not the state that was exported";
            if (round % 2 == 0) sender.reset();
            SaTable& to = round % 2 == 0 ? in_ : out_;
            auto next = opened(esp::Encapsulator::open(to, *Key::import(key), options, state));
            EXPECT_EQ(esp::Encapsulator::open(to, *Key::import(key), options, state).code(),
                      Code::invalid_argument)
                << "once is enough";
            if (sender) {
                EXPECT_EQ(sender->export_state().code(), Code::invalid_argument);
                EXPECT_TRUE(send(*sender, 1).empty());
            }
            sender.reset();
            sender.emplace(std::move(next));
        }
        EXPECT_EQ(numbers_.size(), 200u);
    }
}

// A stand-by that goes on from a state of long ago: the one that it stands by for has sent no more
// than it said.
TEST_F(EspState, AStandByGoesOnBeyondWhatTheOtherMaySend) {
    const Bytes key = random_.bytes(32);
    esp::Options options = some_options();
    options.window = 4096;
    add(key, options);
    auto active = opened(esp::Encapsulator::open(out_, *Key::import(key), options));
    SaState state;
    for (int round = 0; round < 5; ++round) {
        state = opened(active.export_state(100));
        for (const Bytes& packet : send(active, 30 + 10 * round))
            EXPECT_EQ(take(packet), Verdict::ok);
    }
    auto stand_by = opened(esp::Encapsulator::open(in_, *Key::import(key), options, state));
    for (const Bytes& packet : send(stand_by, 50)) EXPECT_EQ(take(packet), Verdict::ok);
    EXPECT_EQ(send(active, 200).size(), 100u - 70);
    EXPECT_EQ(active.export_state(100).code(), Code::invalid_argument)
        << "the other has taken over";
    EXPECT_TRUE(send(active, 1).empty());
}

TEST_F(EspState, StatesThatCannotBe) {
    const Bytes key = random_.bytes(16);
    const esp::Options options = some_options();
    const auto refused = [&](const SaState& state) {
        return esp::Encapsulator::open(out_, *Key::import(key), options, state).code() ==
               Code::invalid_argument;
    };
    EXPECT_TRUE(refused({.next = 0}));
    EXPECT_TRUE(refused({.next = 5, .ivs = {1, 1, 6, 1}}));
    EXPECT_TRUE(refused({.next = 5, .ivs = {0, 1, 1, 1}}));
    EXPECT_TRUE(refused({.next = ~std::uint64_t{0}}));
    // A key of which this process knows nothing: whoever imports answers for it.
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), options,
                                                 {.next = 77, .ivs = {70, 3, 2, 1}}));
    ASSERT_EQ(send(sender, 3).size(), 3u);
    EXPECT_EQ(*numbers_.begin(), 77u);
}

TEST_F(EspState, AReceiverThatComesBackAcceptsNothingAgain) {
    const Bytes key = random_.bytes(16);
    esp::Options options = some_options();
    options.window = 64;
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), options));
    add(key, options);
    auto sent = send(sender, 100);
    for (std::size_t i = 50; i < 80; i += 2) EXPECT_EQ(take(sent[i]), Verdict::ok);
    // As a reload of a configuration does it.
    ASSERT_TRUE(receiver_.remove(options.spi));
    add(key, options);
    for (std::size_t i = 20; i < 79; ++i) EXPECT_NE(take(sent[i]), Verdict::ok) << i;
    for (std::size_t i = 79; i < 90; ++i) EXPECT_EQ(take(sent[i]), Verdict::ok) << i;
    // With its window nothing that is late is lost.
    esp::WindowState state;
    ASSERT_TRUE(receiver_.remove(options.spi, &state));
    EXPECT_EQ(state.top, 90u);
    ASSERT_TRUE(receiver_.add(*Key::import(key), options, state));
    EXPECT_EQ(take(sent[51]), Verdict::replayed) << "before the window there was";
    EXPECT_EQ(take(sent[89]), Verdict::replayed);
    EXPECT_EQ(take(sent[95]), Verdict::ok);
    // A state of which more was accepted since then.
    state = opened(receiver_.export_state(options.spi));
    EXPECT_EQ(take(sent[93]), Verdict::ok);
    ASSERT_TRUE(receiver_.remove(options.spi));
    ASSERT_TRUE(receiver_.add(*Key::import(key), options, state));
    EXPECT_NE(take(sent[93]), Verdict::ok);
    EXPECT_EQ(take(sent[97]), Verdict::ok);
    // What another one accepts meanwhile nobody would know.
    esp::Decapsulator beside(in_);
    EXPECT_EQ(beside.add(*Key::import(key), options).code(), Code::invalid_argument);
    EXPECT_EQ(take(sent[98]), Verdict::ok);
    ASSERT_TRUE(receiver_.remove(options.spi));
    ASSERT_TRUE(beside.add(*Key::import(key), options));
    ASSERT_TRUE(beside.remove(options.spi));
    add(key, options);
    EXPECT_NE(take(sent[98]), Verdict::ok);
    // Another SPI is another SA; and a test may want it all once more.
    ASSERT_TRUE(receiver_.remove(options.spi));
    options.accept_again = true;
    add(key, options);
    EXPECT_EQ(take(sent[97]), Verdict::ok);
}

TEST_F(EspState, WindowsGoFromProcessToProcess) {
    const Bytes key = random_.bytes(16);
    esp::Options options = some_options();
    options.window = 256;
    // As if another process had accepted these.
    esp::WindowState state{.top = 1000, .accepted = 3, .seen = {0b1011}};
    ASSERT_TRUE(receiver_.add(*Key::import(key), options, state));
    const auto number = [&](std::uint64_t n) {
        return take(esp_by_hand(key, options, n, n, with_trailer(Bytes(20), 6)));
    };
    EXPECT_EQ(number(1000), Verdict::replayed);
    EXPECT_EQ(number(999), Verdict::replayed);
    EXPECT_EQ(number(998), Verdict::ok);
    EXPECT_EQ(number(997), Verdict::replayed);
    EXPECT_EQ(number(940), Verdict::ok);
    EXPECT_EQ(number(936), Verdict::replayed) << "of which the state says nothing";
    EXPECT_EQ(number(700), Verdict::bad_icv) << "its upper half is taken for the next one";
    EXPECT_EQ(number(1001), Verdict::ok);
    options.spi += 1;
    options.esn = false;
    state.top = std::uint64_t{1} << 32;
    EXPECT_EQ(receiver_.add(*Key::import(key), options, state).code(), Code::invalid_argument);
}

TEST_F(EspState, LifetimesInBytes) {
    const Bytes key = random_.bytes(16);
    esp::Options options = some_options();
    options.limit_bytes = 10000;
    options.soft_limit_bytes = 5000;
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), options));
    add(key, options);
    std::size_t bytes = 0, sent = 0;
    bool ended = false, soon = false;
    for (int i = 0; i < 30; ++i) {
        PacketBuffer buffer(Bytes(998));  // and two of the trailer
        buffer.packet.next_header = 6;
        const auto done = sender.encapsulate({&buffer.packet, 1});
        ASSERT_TRUE(done);
        if (buffer.packet.verdict == Verdict::exhausted) {
            ended = true;
            continue;
        }
        EXPECT_FALSE(ended);
        bytes += 1000;
        EXPECT_EQ(done->rekey_soon, bytes >= 5000);
        soon = soon || done->rekey_soon;
        ++sent;
        EXPECT_EQ(receive(buffer), Verdict::ok);
    }
    EXPECT_EQ(sent, 10u);
    EXPECT_TRUE(soon);
    // The receiver has had as many, and takes no more.
    EXPECT_EQ(take(esp_by_hand(key, options, 100, 100, with_trailer(Bytes(20), 6))),
              Verdict::exhausted);
    EXPECT_TRUE(out_.status(sender.sa())->expired);
}

TEST_F(EspState, LifetimesInTime) {
    const Bytes key = random_.bytes(16);
    esp::Options options = some_options();
    options.lifetime = std::chrono::hours(1);
    options.soft_lifetime = std::chrono::milliseconds(1);
    // One that has come to the last millisecond of its hour elsewhere.
    const SaState state{.next = 9, .ivs = {9, 9, 9, 9}, .bytes = 5, .age_ms = 3600 * 1000 - 1};
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), options, state));
    for (int i = 0; i < 1000 && !out_.status(sender.sa())->expired; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(out_.status(sender.sa())->expired);
    EXPECT_TRUE(out_.status(sender.sa())->rekey_soon);
    EXPECT_TRUE(send(sender, 2).empty());
    EXPECT_EQ(out_.status(sender.sa())->next, 9u);
    options.lifetime = std::chrono::milliseconds(-1);
    EXPECT_EQ(esp::Encapsulator::open(in_, *Key::import(random_.bytes(16)), options).code(),
              Code::invalid_argument);
}

TEST_F(EspState, SoManyForgeriesAndNoMore) {
    const Bytes key = random_.bytes(16);
    esp::Options options = some_options();
    options.icv_size = 8;
    options.most_bad_icvs = 5;
    add(key, options);
    const auto packet = [&](std::uint64_t n, bool forged) {
        Bytes bytes = esp_by_hand(key, options, n, n, with_trailer(Bytes(20), 6));
        if (forged) bytes.back() ^= 1;
        return take(bytes);
    };
    for (std::uint64_t n = 1; n <= 5; ++n) {
        EXPECT_EQ(packet(2 * n, false), Verdict::ok);
        EXPECT_EQ(packet(2 * n + 1, true), Verdict::bad_icv);
    }
    EXPECT_EQ(packet(20, false), Verdict::exhausted);
    EXPECT_EQ(packet(21, true), Verdict::exhausted);
}

TEST_F(EspState, NextHeaderZeroIsNobodys) {
    const Bytes key = random_.bytes(16);
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), some_options()));
    const Bytes payload = random_.bytes(40);
    PacketBuffer buffer(payload), good(payload);
    buffer.packet.next_header = 0;
    good.packet.next_header = 17;
    int tag = 0;
    good.packet.user = &tag;
    esp::Packet packets[] = {buffer.packet, good.packet};
    const auto sent = sender.encapsulate(packets);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->packets, 1u);
    EXPECT_EQ(packets[0].verdict, Verdict::malformed);
    EXPECT_EQ(buffer.bytes(), payload);
    EXPECT_EQ(packets[1].sequence, 1u);
    EXPECT_EQ(packets[1].user, &tag);
}

}  // namespace
