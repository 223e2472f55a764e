// SPDX-License-Identifier: Apache-2.0
// Random walks over both ends of ESP, through keystream made ahead of time: packets come late,
// twice or altered, SAs go and come back, with their windows or without, in one table or another,
// and senders are handed on. Held against a model: each number goes out once, each packet is
// accepted once, as what went in, and what should be accepted is.
#include <deque>
#include <map>
#include <set>

#include "esp/esp_fixture.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using esp::Verdict;

struct SentPacket {
    std::uint64_t number = 0;
    Bytes wire, payload;
};

struct Sa {
    Bytes key;
    esp::Options options;
    std::optional<esp::Encapsulator> sender;
    std::size_t at = 0;  // which receiver has it
    std::vector<SentPacket> sent;
    std::set<std::uint64_t> out, accepted;
    std::uint64_t top = 0, floor = 0;  // accepted; up to which all counts as seen
};

class EspWalk : public EspTest {
  protected:
    EspWalk() : EspTest("openssl", SaTableOptions::Plan::ahead), other_(out_) {}

    esp::Decapsulator& receiver(const Sa& sa) { return sa.at == 0 ? receiver_ : other_; }

    void add_sa() {
        Sa sa;
        sa.key = random_.bytes(16 + 8 * random_.below(3));
        sa.options = some_options();
        sa.options.esn = random_.below(2);
        sa.options.icv_size = static_cast<std::uint8_t>(8 + 4 * random_.below(3));
        sa.options.window = 32u << random_.below(5);
        if (random_.below(2)) sa.options.ivs = SaIvs::counting;
        sa.sender.emplace(opened(esp::Encapsulator::open(out_, *Key::import(sa.key), sa.options)));
        sa.at = random_.below(2);
        ASSERT_TRUE(receiver(sa).add(*Key::import(sa.key), sa.options));
        sas_.push_back(std::move(sa));
    }

    void send(Sa& sa) {
        std::deque<PacketBuffer> buffers;
        std::vector<esp::Packet> packets;
        std::vector<Bytes> payloads;
        for (std::size_t i = 1 + random_.below(40); i > 0; --i) {
            payloads.push_back(random_.bytes(random_.below(4) ? 200 : random_.below(1400)));
            packets.push_back(buffers.emplace_back(payloads.back()).packet);
            packets.back().next_header = 17;
        }
        const auto done = sa.sender->encapsulate(packets);
        ASSERT_TRUE(done) << done.error().message;
        ASSERT_EQ(done->packets, packets.size());
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const esp::Packet& p = packets[i];
            ASSERT_TRUE(sa.out.insert(p.sequence).second) << "a number went out twice";
            sa.sent.push_back(
                {p.sequence, {p.buffer + p.offset, p.buffer + p.offset + p.size}, payloads[i]});
        }
        if (sa.sent.size() > 400) sa.sent.erase(sa.sent.begin(), sa.sent.begin() + 200);
    }

    // Some packets of some SAs in one call: new ones, late ones, the same again, altered ones.
    void deliver() {
        struct Meant {
            Sa* sa;
            const SentPacket* packet;
            bool altered;
        };
        const std::size_t at = random_.below(2);
        std::vector<Meant> meant;
        std::deque<PacketBuffer> buffers;
        std::vector<esp::Packet> packets;
        for (std::size_t i = random_.below(60); i > 0; --i) {
            Sa& sa = sas_[random_.below(sas_.size())];
            if (sa.at != at || sa.sent.empty()) continue;
            // Most near the newest that nobody has had.
            const std::size_t back = random_.below(random_.below(3) ? 40 : sa.sent.size());
            const SentPacket& packet =
                sa.sent[sa.sent.size() - 1 - std::min(back, sa.sent.size() - 1)];
            Bytes wire = packet.wire;
            const bool altered = random_.below(8) == 0;
            if (altered) wire[8 + random_.below(wire.size() - 8)] ^= 0x20;
            meant.push_back({&sa, &packet, altered});
            packets.push_back(buffers.emplace_back(wire).packet);
        }
        (at == 0 ? receiver_ : other_).decapsulate(packets);
        for (std::size_t i = 0; i < packets.size(); ++i) {
            const esp::Packet& p = packets[i];
            Sa& sa = *meant[i].sa;
            const std::uint64_t number = meant[i].packet->number;
            if (meant[i].altered) {
                ASSERT_NE(p.verdict, Verdict::ok);
                continue;
            }
            const bool seen = number <= sa.floor || sa.accepted.contains(number);
            const bool late = sa.top >= number && sa.top - number >= sa.options.window;
            ASSERT_EQ(p.verdict == Verdict::ok, !seen && !late)
                << esp::describe(p.verdict) << ", number " << number << ", top " << sa.top
                << ", floor " << sa.floor;
            if (p.verdict != Verdict::ok) continue;
            ASSERT_EQ(difference(meant[i].packet->payload, {p.buffer + p.offset, p.size}), "");
            sa.accepted.insert(number);
            sa.top = std::max(sa.top, number);
        }
    }

    // Its receiver goes and comes back, here or there, with its window or without.
    void come_back(Sa& sa) {
        esp::WindowState last;
        const bool knows = random_.below(2);
        ASSERT_TRUE(receiver(sa).remove(sa.options.spi, knows ? &last : nullptr));
        EXPECT_EQ(receiver(sa).remove(sa.options.spi).code(), Code::invalid_argument);
        sa.at = random_.below(2);
        if (knows) {
            EXPECT_EQ(last.top, sa.top);
            ASSERT_TRUE(receiver(sa).add(*Key::import(sa.key), sa.options, last));
            return;
        }
        ASSERT_TRUE(receiver(sa).add(*Key::import(sa.key), sa.options));
        sa.floor = sa.top;
    }

    void hand_on(Sa& sa) {
        const std::uint64_t more = random_.below(3) * random_.below(20);
        const SaState state = opened(sa.sender->export_state(more));
        ASSERT_GT(state.next, sa.out.empty() ? 0 : *sa.out.rbegin());
        sa.sender.emplace(opened(esp::Encapsulator::open(random_.below(2) ? in_ : out_,
                                                         *Key::import(sa.key), sa.options, state)));
    }

    void walk(Walks& walks) {
        random_ = Random(walks.seed());
        for (int i = 0; i < 3; ++i) add_sa();
        for (int step = 0; step < 150 && !HasFatalFailure(); ++step, walks.step()) {
            Sa& sa = sas_[random_.below(sas_.size())];
            switch (random_.below(16)) {
                case 0:
                    come_back(sa);
                    break;
                case 1:
                    hand_on(sa);
                    break;
                case 2:
                    if (sas_.size() < 8) add_sa();
                    break;
                case 3:
                    (random_.below(2) ? in_ : out_).settle();
                    break;
                case 4:
                case 5:
                case 6:
                case 7:
                case 8:
                    send(sa);
                    break;
                default:
                    deliver();
            }
        }
        for (Sa& sa : sas_) ASSERT_TRUE(receiver(sa).remove(sa.options.spi));
        sas_.clear();
    }

    esp::Decapsulator other_;
    std::deque<Sa> sas_;
};

TEST_F(EspWalk, EachOutOnceAndInOnce) {
    for (Walks walks("both ends of ESP", thorough(40, 10)); walks.next() && !HasFailure();) {
        SCOPED_TRACE(walks.text());
        walk(walks);
    }
    EXPECT_GT(in_.counters().hits + out_.counters().hits, 0u);
}

}  // namespace
