// SPDX-License-Identifier: Apache-2.0
// Who gets keystream and how much: the length of slots and what it wastes, shares, fairness, the
// budget, who gives up what, packets that come late.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "keystream/flow.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class Shares : public testing::Test {
  protected:
    SaTable open(std::size_t budget, const std::function<void(SaTableOptions&)>& more = {}) {
        SaTableOptions options;
        options.plan = SaTableOptions::Plan::ahead;
        options.budget = budget;
        options.idle_ms = 10000;
        if (more) more(options);
        return *SaTable::open(filler_, options);
    }
    // Packets of 64, 570 and 1500 bytes, 7 : 4 : 1, as the simple IMIX has them.
    std::vector<std::size_t> imix(std::size_t count) {
        std::vector<std::size_t> sizes;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t at = random_.below(12);
            sizes.push_back(at < 7 ? 64 : at < 11 ? 570 : 1500);
        }
        return sizes;
    }

    Random random_{3};
    Engine engine_ = *Engine::open({.backend = "openssl", .threads = 1});
    SaFiller filler_ = *SaFiller::open(engine_);
};

// Of the keystream of windows that packets came to.
double waste(const SaCounters& c) {
    return 1 - static_cast<double>(c.used) / static_cast<double>(c.made - c.dropped - c.ready);
}
double covered(const SaCounters& c) {
    return static_cast<double>(c.hits) / static_cast<double>(c.packets);
}

TEST_F(Shares, ImixWastesLessThanAFifth) {
    SaTable table = open(std::size_t{4} << 20);
    Sender by_size(table, random_, {});
    SaOptions options;
    options.ivs = SaIvs::counting;
    Sender counting(table, random_, options);
    Receiver receiver(table, by_size), mixed(table, counting);
    for (int i = 0; i < 120; ++i) {
        receiver.receive(by_size.send(imix(24), i < 2));
        mixed.receive(counting.send(imix(24), i < 2));
        table.settle();
        if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const SaCounters sized = by_size.status().counters, received = receiver.status().counters;
    EXPECT_LT(waste(sized), 0.20);
    EXPECT_GT(covered(sized), 0.9) << "and long packets find theirs too";
    EXPECT_LT(waste(received), 0.20);
    EXPECT_GT(covered(received), 0.85);
    // Where one length serves all sizes, it is a short one.
    for (const Sender* sender : {&counting}) {
        const SaCounters c = sender->status().counters;
        EXPECT_LT(waste(c), 0.20);
        EXPECT_GT(c.hits + c.partial, c.packets * 9 / 10);
    }
    EXPECT_LT(waste(mixed.status().counters), 0.20);
    RecordProperty("imix_waste_by_size", std::to_string(waste(sized)));
    RecordProperty("imix_waste_counting", std::to_string(waste(counting.status().counters)));
}

TEST_F(Shares, SlotsFollowTheSizes) {
    SaTable table = open(std::size_t{256} << 10);
    Sender sender(table, random_, {});
    for (const std::size_t size : {700u, 1100u, 640u, 1000u}) {  // of one class
        for (int i = 0; i < 60; ++i) {
            sender.send(8, size);
            table.settle();
        }
        const SaCounters before = sender.status().counters;
        for (int i = 0; i < 60; ++i) {
            sender.send(8, size);
            table.settle();
        }
        const SaCounters after = sender.status().counters;
        EXPECT_GT(after.hits - before.hits, 450u) << size;
    }
}

TEST_F(Shares, TheBudgetIsKept) {
    constexpr std::size_t kBudget = 256 << 10;
    SaTable table = open(kBudget);
    std::vector<std::unique_ptr<Sender>> senders;
    for (int i = 0; i < 300; ++i)
        senders.push_back(std::make_unique<Sender>(table, random_, SaOptions{}));
    std::uint64_t most = 0;
    for (int i = 0; i < thorough(2000, 400); ++i) {
        senders[random_.below(senders.size())]->send(1 + random_.below(8), 1024);
        if (i % 50 == 0) table.settle();
        const SaCounters c = table.counters();
        most = std::max(most, c.ready);
        ASSERT_LE(c.ready, kBudget);
        ASSERT_LE(c.memory, 2 * kBudget);
    }
    EXPECT_GT(most, kBudget / 2) << "and made use of";
}

TEST_F(Shares, AQuotaIsKept) {
    SaTable table = open(std::size_t{1} << 20);
    SaOptions small, none;
    small.quota = 32 << 10;
    none.quota = 0;
    Sender one(table, random_, small), two(table, random_, none);
    for (int i = 0; i < 50; ++i) {
        one.send(8, 1024);
        two.send(8, 1024);
        table.settle();
        EXPECT_LE(one.status().counters.ready, small.quota);
    }
    EXPECT_GT(one.status().counters.hits, 300u);
    EXPECT_EQ(two.status().counters.direct, 400u);
    EXPECT_EQ(two.status().why, "its quota is 0");
}

// Those who send more get more of the budget, and nobody is left without.
TEST_F(Shares, ByRecentRate) {
    SaTable table = open(std::size_t{1} << 20);
    Sender much(table, random_, {}), little(table, random_, {});
    const auto as_it_should = [&] {
        return much.status().counters.ready > 2 * little.status().counters.ready &&
               little.status().counters.hits > 50;
    };
    // On a busy machine what the two send may fall to different ticks, and the rates follow later.
    for (int i = 0; i < 200 || (i < 4000 && !as_it_should()); ++i) {
        much.send(32, 1024);
        if (i % 8 == 0) little.send(4, 1024);
        table.settle();
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    EXPECT_GT(much.status().counters.ready, 2 * little.status().counters.ready);
    EXPECT_GT(little.status().counters.hits, 50u);
}

// A device that brings less than is wanted brings each the same, whatever it asks for.
TEST_F(Shares, DeficitRoundRobinWhereTheDeviceIsTheBottleneck) {
    HostDevice device({.delay = std::chrono::microseconds(300)});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        SaFiller filler = *SaFiller::open(engine, {.threads = 1, .lanes = 1});
        SaTableOptions options;
        options.plan = SaTableOptions::Plan::ahead;
        options.budget = std::size_t{1} << 20;
        options.block = 64 << 10;
        // One table has one SA, the other three; one of these wants four times as much.
        SaTable left = *SaTable::open(filler, options), right = *SaTable::open(filler, options);
        std::vector<std::unique_ptr<Sender>> senders;
        senders.push_back(std::make_unique<Sender>(left, random_, SaOptions{}));
        for (int i = 0; i < 3; ++i)
            senders.push_back(std::make_unique<Sender>(right, random_, SaOptions{}));
        // As long as it takes for some hundred blocks, on a busy machine too.
        const auto start = std::chrono::steady_clock::now();
        std::chrono::steady_clock::duration passed{};
        std::uint64_t made = 0;
        while (passed < std::chrono::milliseconds(400) ||
               (made < std::uint64_t{16} << 20 && passed < std::chrono::seconds(10))) {
            for (std::size_t i = 0; i < senders.size(); ++i)
                for (int j = 0; j < (i == 1 ? 4 : 1); ++j) (void)senders[i]->send(16, 1024);
            made = left.counters().made + right.counters().made;
            passed = std::chrono::steady_clock::now() - start;
        }
        std::uint64_t most = 0;
        for (const auto& sender : senders) most = std::max(most, sender->status().counters.made);
        for (const auto& sender : senders) {
            const SaCounters c = sender->status().counters;
            // Or it has what it wants: a machine that is busy enough sends less than that.
            EXPECT_TRUE(c.made * 3 > most || c.direct * 4 < c.packets)
                << c.made << " of " << most << ", " << c.direct << " direct of " << c.packets;
        }
    }
    expect_clean(device);
}

// Where a fill takes longer than the budget lasts, windows begin beyond what is used up until they
// come: few packets find their keystream, but next to nothing is made in vain.
TEST_F(Shares, WhatTakesLongBeginsBeyondWhatIsUsedUpMeanwhile) {
    HostDevice device({.delay = std::chrono::microseconds(1500)});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        SaTableOptions options;
        options.plan = SaTableOptions::Plan::ahead;
        options.budget = std::size_t{256} << 10;
        options.idle_ms = 10000;
        SaTable table = *SaTable::open(*SaFiller::open(engine), options);
        Sender sender(table, random_, {});
        SaCounters before;
        int late = 0;  // rounds: the machine has no time, and so neither has the filler
        auto next = std::chrono::steady_clock::now();
        for (int round = 0; round < 1600; ++round) {  // 16 KiB each
            if (round == 400) before = table.counters();
            (void)sender.send(std::vector<std::size_t>(16, 1024), false);
            next += std::chrono::microseconds(500);
            late += round >= 400 && std::chrono::steady_clock::now() > next;
            std::this_thread::sleep_until(next);
        }
        if (late > 60) GTEST_SKIP() << late << " of 1200 rounds came late: the machine is busy";
        const SaCounters after = table.counters();
        EXPECT_GT(after.hits - before.hits, 500u);
        EXPECT_LT((after.dropped - before.dropped) * 5, (after.made - before.made) * 2);
    }
    expect_clean(device);
}

TEST_F(Shares, WhoIsIdleGivesUpItsKeystream) {
    // Longer than a thread waits for its turn, even on a busy machine.
    SaTable table = open(std::size_t{1} << 20, [](SaTableOptions& o) { o.idle_ms = 1000; });
    Sender sender(table, random_, {});
    sender.send(40, 1024);
    table.settle();
    EXPECT_GT(table.counters().memory, 0u);
    for (int i = 0; i < 2000 && table.counters().memory != 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const SaCounters idle = table.counters();
    EXPECT_EQ(idle.memory, 0u);
    EXPECT_EQ(idle.ready, 0u);
    sender.send(40, 1024);  // and gets new when it goes on
    table.settle();
    sender.send(20, 1024);
    EXPECT_GT(sender.status().counters.hits, idle.hits);
}

TEST_F(Shares, PacketsThatComeLateFindTheirs) {
    for (const SaLayout layout : {SaLayout::rfc4106, SaLayout::stream}) {
        SaTable table = open(std::size_t{4} << 20, [](SaTableOptions& o) { o.overlap = 64; });
        SaOptions options;
        options.layout = layout;
        Sender sender(table, random_, options);
        Receiver receiver(table, sender);
        std::vector<Sent> late;
        for (int i = 0; i < 60; ++i) {
            auto batch = sender.send(16, 1000);
            if (i > 20) receiver.receive(late);  // after the 16 that were sent after them
            late.assign(batch.begin() + 4, batch.begin() + 8);
            batch.erase(batch.begin() + 4, batch.begin() + 8);
            receiver.receive(batch);
            table.settle();
            if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        const SaCounters c = receiver.status().counters;
        EXPECT_GT(c.overlapped, 120u) << "of " << 39 * 4;
        EXPECT_GT(c.hits, 700u);
    }
}

// Loss, and a peer that jumps ahead.
TEST_F(Shares, LossCostsNothingButWhatWasLost) {
    SaTable table = open(std::size_t{1} << 20);
    Sender sender(table, random_, {});
    Receiver receiver(table, sender);
    for (int i = 0; i < 100; ++i) {
        auto batch = sender.send(20, 1000);
        std::erase_if(batch, [&](const Sent&) { return random_.below(10) == 0; });
        if (i == 50) continue;
        receiver.receive(batch);
        table.settle();
    }
    EXPECT_GT(covered(receiver.status().counters), 0.9);
}

TEST_F(Shares, APeerWhoseIvsDoNotCountGoesDirect) {
    SaTable table = open(std::size_t{1} << 20);
    const Bytes raw = fresh_key(random_, 16);
    SaOptions options;
    options.direction = SaDirection::receiving;
    const SaId id = *table.add(key_of(raw), options);
    SaStatus status;
    for (int i = 0; i < 200 && status.why.empty(); ++i) {
        std::vector<Bytes> ivs, tags;
        std::vector<SaPacket> packets;
        for (int j = 0; j < 32; ++j) {
            Bytes iv = random_.bytes(8);
            iv[0] &= 0x3f;
            Message message;
            message.start = first_of(options, iv);
            tags.push_back(oracle(raw, {Mode::gcm, Direction::encrypt}, message).tag);
            ivs.push_back(std::move(iv));
        }
        for (int j = 0; j < 32; ++j)
            packets.push_back({nullptr, nullptr, 0, nullptr, 0, ivs[j].data(), tags[j].data()});
        std::vector<Code> codes(32, Code::internal);
        ASSERT_TRUE(table.open(id, packets, codes));
        EXPECT_EQ(std::ranges::count(codes, Code::ok), 32);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        status = *table.status(id);
    }
    EXPECT_NE(status.why.find("do not count up"), std::string::npos) << status.why;
    EXPECT_FALSE(status.ahead);
    const std::uint64_t made = table.counters().made;
    EXPECT_LT(made, 4u << 20) << "little was made in vain";
}

// A forger moves nothing: what he sends is neither followed nor paid for.
TEST_F(Shares, ForgedPacketsMoveNothing) {
    SaTable table = open(std::size_t{1} << 20);
    Sender sender(table, random_, {});
    Receiver receiver(table, sender);
    for (int i = 0; i < 40; ++i) {
        auto batch = sender.send(16, 1000);
        auto forged = batch;
        for (Sent& one : forged) one.iv = random_.bytes(8);
        std::set<std::size_t> all;
        for (std::size_t j = 0; j < forged.size(); ++j) all.insert(j);
        receiver.receive(forged, true, all);
        receiver.receive(batch);
        table.settle();
    }
    const SaStatus status = receiver.status();
    EXPECT_GT(status.counters.hits, 500u) << status.why;
    EXPECT_EQ(status.counters.failed, 640u);
}

TEST_F(Shares, RemovedWhileItIsFilled) {
    HostDevice device({.delay = std::chrono::microseconds(500)});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        SaTableOptions options;
        options.plan = SaTableOptions::Plan::ahead;
        options.budget = std::size_t{1} << 20;
        SaTable table = *SaTable::open(engine, options);
        for (int i = 0; i < thorough(40, 10); ++i) {
            Sender sender(table, random_, {});
            Receiver receiver(table, sender);
            receiver.receive(sender.send(8, 1024));
            std::this_thread::sleep_for(std::chrono::microseconds(200 * (i % 8)));
            ASSERT_TRUE(table.remove(sender.id()));
            ASSERT_TRUE(table.remove(receiver.id()));
        }
        table.settle();
        const SaCounters c = table.counters();
        EXPECT_EQ(c.ready, 0u);
        EXPECT_EQ(c.memory, 0u);
    }
    expect_clean(device);
}

TEST_F(Shares, WhatIsSaidOfThePlan) {
    SaTableOptions options;
    options.budget = std::size_t{1} << 20;
    SaTable table = *SaTable::open(filler_, options);
    std::string text = table.explain();
    EXPECT_NE(text.find("A packet of 1024 bytes takes"), std::string::npos) << text;
    EXPECT_NE(text.find("The filler is 'openssl'"), std::string::npos) << text;
    options.plan = SaTableOptions::Plan::direct;
    SaTable direct = *SaTable::open(filler_, options);
    Sender sender(direct, random_, {});
    sender.send(100, 1024);
    direct.settle();
    EXPECT_EQ(sender.status().counters.direct, 100u);
    EXPECT_EQ(sender.status().why, "the table was opened so");
    EXPECT_EQ(direct.counters().made, 0u);
}

TEST_F(Shares, WhatIsRefused) {
    const auto refused = [&](const std::function<void(SaTableOptions&)>& change) {
        SaTableOptions options;
        change(options);
        const auto table = SaTable::open(filler_, options);
        return table.code();
    };
    EXPECT_EQ(refused([](auto& o) { o.budget = 1000; }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto& o) { o.block = 5000; }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto& o) { o.most_waste = 1; }), Code::invalid_argument);
    EXPECT_EQ(refused([](auto& o) { o.most_sas = 0; }), Code::invalid_argument);
    EXPECT_EQ(SaFiller::open(engine_, {.threads = 0}).code(), Code::invalid_argument);
    EXPECT_EQ(SaFiller::open(engine_, {.threads = 1, .lanes = 0}).code(), Code::invalid_argument);

    SaTable table = open(std::size_t{1} << 20, [](SaTableOptions& o) { o.most_sas = 2; });
    SaOptions options;
    options.tag_size = 5;
    EXPECT_EQ(table.add(key_of(fresh_key(random_, 16)), options).code(), Code::invalid_argument);
    EXPECT_EQ(table.add(*Key::import_xts(random_.bytes(32)), {}).code(), Code::invalid_argument);
    options = {};
    options.limit = 0;
    EXPECT_EQ(table.add(key_of(fresh_key(random_, 16)), options).code(), Code::invalid_argument);
    const SaId one = *table.add(key_of(fresh_key(random_, 16)), {});
    ASSERT_TRUE(table.add(key_of(fresh_key(random_, 16)), {}));
    EXPECT_EQ(table.add(key_of(fresh_key(random_, 16)), {}).code(), Code::limit);
    std::uint8_t iv[8] = {}, tag[16] = {}, data[4] = {1, 2, 3, 4};
    std::vector<SaPacket> packets(2, {data, data, 4, nullptr, 0, iv, tag});
    std::vector<Code> codes(2);
    EXPECT_EQ(table.open(one, packets, codes).code(), Code::invalid_argument) << "it sends";
    packets[1].iv = nullptr;
    const auto sealed = table.seal(one, packets);
    ASSERT_EQ(sealed.code(), Code::invalid_argument);
    EXPECT_EQ(sealed.error().message, "packet 1: its iv is null");
    EXPECT_EQ(data[0], 1) << "the first was not touched either";
    EXPECT_EQ(table.status(one)->next, 1u);
    ASSERT_TRUE(table.remove(one));
    EXPECT_EQ(table.seal(one, packets).code(), Code::invalid_argument);
    EXPECT_EQ(table.seal({}, packets).code(), Code::invalid_argument);
    EXPECT_EQ(table.status({77}).code(), Code::invalid_argument);
}

// Headers that need the number before they are authenticated.
TEST_F(Shares, NumbersComeBeforeTheAadIsRead) {
    SaTable table = open(std::size_t{1} << 20);
    const Bytes raw = fresh_key(random_, 16);
    const SaOptions options;
    const SaId id = *table.add(key_of(raw), options);
    std::array<Bytes, 3> aad{Bytes(8), Bytes(8), Bytes(8)}, data, ivs{Bytes(8), Bytes(8), Bytes(8)},
        tags{Bytes(16), Bytes(16), Bytes(16)};
    std::vector<SaPacket> packets;
    for (int i = 0; i < 3; ++i)
        packets.push_back({nullptr, nullptr, 0, aad[i].data(), 8, ivs[i].data(), tags[i].data()});
    const auto write = [](void* context, std::uint64_t first) {
        for (Bytes& header : *static_cast<std::array<Bytes, 3>*>(context))
            header[7] = static_cast<std::uint8_t>(first++);
    };
    for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(table.seal(id, packets, {write, &aad}));
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(aad[i][7], 3 * round + i + 1);
            expect_right(raw, options, {ivs[i], aad[i], {}, {}, tags[i]});
        }
    }
}

}  // namespace
