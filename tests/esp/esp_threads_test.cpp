// SPDX-License-Identifier: Apache-2.0
// Several threads on one receiver and one sender: every number goes out once, and every packet is
// accepted once, whoever brings it, while SAs come and go.
#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "esp/esp_fixture.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using esp::Verdict;

class EspThreads : public EspTest {
  protected:
    static constexpr std::size_t kThreads = 4;
    template <class Work>
    void on_threads(Work work) {
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { work(t); });
        for (auto& thread : threads) thread.join();
    }
};

TEST_F(EspThreads, NumbersGoOutOnceAndPacketsComeInOnce) {
    const Bytes key = random_.bytes(16);
    esp::Options options = some_options();
    options.window = 1 << 16;
    auto sender = opened(esp::Encapsulator::open(out_, *Key::import(key), options));
    add(key, options);
    constexpr std::size_t kBatches = thorough(60, 15), kBatch = 40;
    std::vector<std::vector<Bytes>> sent(kThreads);
    on_threads([&](std::size_t t) {
        Random random(t);
        for (std::size_t i = 0; i < kBatches; ++i) {
            std::deque<PacketBuffer> buffers;
            std::vector<esp::Packet> packets;
            for (std::size_t j = 0; j < kBatch; ++j) {
                packets.push_back(buffers.emplace_back(random.bytes(random.below(300))).packet);
                packets.back().next_header = 6;
            }
            const auto done = sender.encapsulate(packets);
            if (!done || done->packets != kBatch) continue;
            for (const esp::Packet& p : packets)
                sent[t].emplace_back(p.buffer + p.offset, p.buffer + p.offset + p.size);
        }
    });
    std::set<std::uint32_t> numbers;
    std::vector<Bytes> all;
    for (const auto& some : sent)
        for (const Bytes& packet : some) {
            EXPECT_TRUE(numbers.insert(read32(&packet[4])).second);
            all.push_back(packet);
        }
    ASSERT_EQ(all.size(), kThreads * kBatches * kBatch);

    // All threads bring all packets.
    std::vector<std::atomic<int>> accepted(all.size());
    std::atomic<int> others{0};
    on_threads([&](std::size_t t) {
        for (std::size_t at = 0; at < all.size(); at += kBatch) {
            const std::size_t from = t % 2 ? all.size() - kBatch - at : at;
            std::deque<PacketBuffer> buffers;
            std::vector<esp::Packet> packets;
            for (std::size_t j = 0; j < kBatch; ++j)
                packets.push_back(buffers.emplace_back(all[from + j]).packet);
            receiver_.decapsulate(packets);
            for (std::size_t j = 0; j < kBatch; ++j) {
                if (packets[j].verdict == Verdict::ok)
                    ++accepted[from + j];
                else if (packets[j].verdict != Verdict::replayed)
                    ++others;
            }
        }
    });
    EXPECT_EQ(others, 0);
    for (const auto& times : accepted) ASSERT_EQ(times, 1);
    EXPECT_EQ(receiver_.counters().of(Verdict::ok), all.size());
    EXPECT_EQ(receiver_.counters().of(Verdict::replayed), (kThreads - 1) * all.size());
}

TEST_F(EspThreads, SasComeAndGoMeanwhile) {
    const Bytes key = random_.bytes(16);
    const esp::Options steady = some_options();
    add(key, steady);
    std::atomic<bool> done{false};
    std::atomic<int> faults{0};
    std::thread changes([&] {
        Random random(9);
        for (std::uint32_t i = 0; i < thorough(300u, 60u); ++i) {
            esp::Options options{.spi = 5000 + i % 40};
            if (!receiver_.add(*Key::import(random.bytes(16)), options)) ++faults;
            if (i % 3 != 0 && !receiver_.remove(options.spi)) ++faults;
            if (i % 40 == 39)
                for (std::uint32_t spi = 5000; spi < 5040; ++spi) (void)receiver_.remove(spi);
        }
        done = true;
    });
    // Always somebody who holds what is changed.
    std::thread others([&] {
        while (!done) {
            PacketBuffer buffer(Bytes(60, 7));
            faults += receiver_.decapsulate({&buffer.packet, 1}) != 0;
        }
    });
    std::uint64_t number = 0;
    while (!done) {
        std::deque<PacketBuffer> buffers;
        std::vector<esp::Packet> packets;
        for (int i = 0; i < 20; ++i) {
            const bool other = i % 2 == 1;
            const esp::Options options{
                .spi = other ? 5000 + static_cast<std::uint32_t>(i) : steady.spi,
                .salt = steady.salt};
            if (!other) ++number;
            packets.push_back(buffers
                                  .emplace_back(esp_by_hand(key, options, number, number,
                                                            with_trailer(Bytes(50), 6)))
                                  .packet);
        }
        faults += receiver_.decapsulate(packets) != 10;
        for (int i = 1; i < 20; i += 2)
            faults += packets[static_cast<std::size_t>(i)].verdict != Verdict::unknown_spi &&
                      packets[static_cast<std::size_t>(i)].verdict != Verdict::bad_icv;
    }
    changes.join();
    others.join();
    EXPECT_EQ(faults, 0);
}

}  // namespace
