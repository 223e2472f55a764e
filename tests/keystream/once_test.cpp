// SPDX-License-Identifier: Apache-2.0
// A counter never serves twice. Every packet that a table seals is all zeros, so that what comes
// out is the cipher of its counters, block by block: two blocks that are equal, of whatever SA and
// key, are a counter that was used twice under one key (or chance, once in 2^100). What is tried is
// drawn from a seed: sizes, batches, rekeying, SAs that go and come, numbers that jump, threads,
// devices that fail, tables opened again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "keystream/flow.hpp"
#include "pipeline/engine_state.hpp"
#include "support/child.hpp"
#include "support/host_device.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// All blocks of keystream that anybody used, of one thread.
class Used {
  public:
    void add(std::span<const std::uint8_t> keystream) {
        for (std::size_t at = 0; at + 16 <= keystream.size(); at += 16) {
            std::pair<std::uint64_t, std::uint64_t> block;
            std::memcpy(&block.first, &keystream[at], 8);
            std::memcpy(&block.second, &keystream[at + 8], 8);
            blocks_.push_back(block);
        }
    }
    void add(const Used& other) {
        blocks_.insert(blocks_.end(), other.blocks_.begin(), other.blocks_.end());
    }
    void expect_no_repeat() {
        std::ranges::sort(blocks_);
        const auto repeat = std::ranges::adjacent_find(blocks_);
        EXPECT_TRUE(repeat == blocks_.end()) << "a counter was used twice under its key";
        EXPECT_GT(blocks_.size(), 1000u);
    }

  private:
    std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks_;
};

// An SA that sends zeros. What goes out is remembered; whether it is right is looked at now and
// then (that it never repeats would be true of any noise).
struct Zeros {
    SaId id;
    SaOptions options;
    Bytes raw;
    std::uint64_t sent = 0;
};

SaOptions any_options(Random& random) {
    SaOptions options;
    options.layout = random.below(3) == 0 ? SaLayout::stream : SaLayout::rfc4106;
    options.ivs = random.below(2) ? SaIvs::by_size : SaIvs::counting;
    for (auto& byte : options.salt) byte = static_cast<std::uint8_t>(random.below(256));
    // Counters whose low 32 or 64 bits wrap soon, and IVs that end soon.
    if (random.below(2)) {
        options.first_iv.fill(random.below(2) ? 0xff : 0x12);
        options.first_iv[10] = static_cast<std::uint8_t>(random.below(256));
        options.first_iv[11] = static_cast<std::uint8_t>(random.below(256));
        if (random.below(2)) options.first_iv[0] = 0;
    }
    if (random.below(4) == 0) options.limit = 100 + random.below(2000);
    return options;
}

Zeros add_zeros(SaTable& table, Random& random) {
    Zeros sa;
    sa.options = any_options(random);
    sa.raw = fresh_key(random, 16 + 8 * random.below(3));
    const auto id = table.add(key_of(sa.raw), sa.options);
    EXPECT_TRUE(id) << id.error().message;
    if (id) sa.id = *id;
    return sa;
}

// False: the SA is at its end.
bool send_zeros(SaTable& table, Zeros& sa, Random& random, Used& used, std::size_t most,
                bool all_looked_at = false) {
    const std::size_t count = 1 + random.below(most);
    std::vector<Bytes> data(count), ivs(count), tags(count);
    std::vector<SaPacket> packets;
    const std::size_t usual = random.below(1500);
    for (std::size_t i = 0; i < count; ++i) {
        data[i].resize(random.below(4) == 0 ? random.below(3000) : usual);
        ivs[i].resize(12);
        tags[i].resize(16);
        packets.push_back({data[i].data(), data[i].data(), data[i].size(), nullptr, 0,
                           ivs[i].data(), tags[i].data()});
    }
    const auto sealed = table.seal(sa.id, packets);
    if (!sealed) {
        EXPECT_EQ(sealed.code(), Code::limit) << sealed.error().message;
        for (const Bytes& nothing : data) EXPECT_TRUE(all_are(nothing, 0));
        return false;
    }
    EXPECT_EQ(sealed->first, sa.sent + 1);
    sa.sent += count;
    EXPECT_LE(sa.sent, sa.options.limit);
    for (const Bytes& keystream : data) used.add(keystream);
    const std::size_t one = random.below(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (i != one && !all_looked_at) continue;
        ivs[i].resize(iv_size(sa.options.layout));
        expect_right(sa.raw, sa.options, {ivs[i], {}, Bytes(data[i].size()), data[i], tags[i]});
    }
    return true;
}

SaTableOptions small_table(Random& random) {
    SaTableOptions options;
    options.plan = SaTableOptions::Plan::ahead;
    options.budget = std::size_t{65536} << random.below(6);
    options.idle_ms = random.below(2) ? 1 : 50;
    return options;
}

// Anything, in any order, by one thread.
void anything(SaTable& table, Random& random, Used& used, int steps) {
    std::vector<Zeros> sas;
    for (int step = 0; step < steps; ++step) {
        if (sas.empty() || (sas.size() < 12 && random.below(10) == 0))
            sas.push_back(add_zeros(table, random));
        const std::size_t at = random.below(sas.size());
        Zeros& sa = sas[at];
        switch (random.below(20)) {
            case 0:
                ASSERT_TRUE(table.remove(sa.id));
                EXPECT_EQ(table.remove(sa.id).code(), Code::invalid_argument);
                // Under the same key it must not come back, if anything was sent.
                if (sa.sent != 0) {
                    EXPECT_EQ(table.add(key_of(sa.raw), sa.options).code(), Code::invalid_argument);
                }
                sas.erase(sas.begin() + static_cast<std::ptrdiff_t>(at));
                break;
            case 1: {
                EXPECT_EQ(table.rekey(sa.id, key_of(sa.raw), sa.options.salt).code(),
                          Code::invalid_argument);
                sa.raw = fresh_key(random, 16 + 8 * random.below(3));
                ASSERT_TRUE(table.rekey(sa.id, key_of(sa.raw), sa.options.salt));
                sa.sent = 0;
                break;
            }
            case 2:
                table.settle();
                break;
            default:
                if (!send_zeros(table, sa, random, used, 70)) {
                    ASSERT_TRUE(table.remove(sa.id));
                    sas.erase(sas.begin() + static_cast<std::ptrdiff_t>(at));
                }
        }
    }
}

class OnceBy : public testing::TestWithParam<const char*> {};

TEST_P(OnceBy, WhateverIsDone) {
    auto engine = Engine::open({.backend = GetParam(), .threads = 1});
    if (!engine) GTEST_SKIP() << engine.error().message;
    auto filler = SaFiller::open(*engine);
    ASSERT_TRUE(filler) << filler.error().message;
    Used used;
    SaCounters sum;
    for (int seed = 0; seed < thorough(20, 6); ++seed) {
        Random random(static_cast<std::uint64_t>(seed));
        auto table = SaTable::open(*filler, small_table(random));
        ASSERT_TRUE(table) << table.error().message;
        anything(*table, random, used, thorough(200, 100));
        const SaCounters counters = table->counters();
        sum.hits += counters.hits;
        sum.direct += counters.direct;
        sum.partial += counters.partial;
    }
    // All three ways were gone.
    EXPECT_GT(sum.hits, 100u);
    EXPECT_GT(sum.direct, 100u);
    EXPECT_GT(sum.partial, 10u);
    used.expect_no_repeat();
}
INSTANTIATE_TEST_SUITE_P(Host, OnceBy, testing::Values("openssl"));
INSTANTIATE_TEST_SUITE_P(Gpu, OnceBy, testing::Values("cuda"));

// Through devices made of threads: by lists of messages, and by runs.
class OnceThrough : public testing::TestWithParam<bool> {
  protected:
    static HostDeviceOptions options(std::chrono::microseconds delay, int fail_at = 0) {
        return {.fail_at = fail_at,
                .delay = delay,
                .reads_lists = !GetParam(),
                .makes_keystream = GetParam()};
    }
};
INSTANTIATE_TEST_SUITE_P(Device, OnceThrough, testing::Bool(),
                         [](const auto& which) { return which.param ? "Runs" : "Lists"; });

// Several threads, on SAs of their own and on one that they share, while others come and go.
TEST_P(OnceThrough, ByManyThreads) {
    HostDevice device(options(std::chrono::microseconds(50)));
    Used used;
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        auto filler = SaFiller::open(engine, {.threads = 2, .lanes = 2});
        Random first(99);
        auto small = small_table(first);
        small.budget = std::size_t{1} << 20;
        auto table = SaTable::open(*filler, small);
        ASSERT_TRUE(table) << table.error().message;
        Zeros shared = add_zeros(*table, first);
        shared.options.limit = ~std::uint64_t{0};
        std::mutex mutex;
        std::vector<std::thread> threads;
        for (std::uint64_t t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                Random random(1000 + t);
                Used mine;
                for (int round = 0; round < thorough(6, 2); ++round) {
                    anything(*table, random, mine, thorough(40, 20));
                    for (int i = 0; i < thorough(40, 10); ++i) {
                        Bytes data(random.below(2000)), iv(12), tag(16);
                        const SaPacket packet{data.data(), data.data(), data.size(), nullptr,
                                              0,           iv.data(),   tag.data()};
                        if (table->seal(shared.id, {&packet, 1})) mine.add(data);
                    }
                }
                const std::lock_guard lock(mutex);
                used.add(mine);
            });
        for (auto& thread : threads) thread.join();
    }
    used.expect_no_repeat();
    expect_clean(device);
}

// What is under way for the old key comes when the new one counts already, from 1 on.
TEST_P(OnceThrough, RekeyedWhileItIsFilled) {
    HostDevice device(options(std::chrono::microseconds(500)));
    Used used;
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        Random random(77);
        auto small = small_table(random);
        small.budget = std::size_t{1} << 20;
        small.idle_ms = 1000;
        auto table = SaTable::open(engine, small);
        ASSERT_TRUE(table) << table.error().message;
        Zeros sa;
        sa.raw = fresh_key(random, 16);
        sa.id = *table->add(key_of(sa.raw), sa.options);
        std::uint64_t hits = 0;
        for (int round = 0; round < thorough(30, 10); ++round) {
            ASSERT_TRUE(send_zeros(*table, sa, random, used, 4));
            std::this_thread::sleep_for(std::chrono::microseconds(round * 100));
            sa.raw = fresh_key(random, 16 + 8 * random.below(3));
            ASSERT_TRUE(table->rekey(sa.id, key_of(sa.raw), sa.options.salt));
            sa.sent = 0;
            ASSERT_TRUE(send_zeros(*table, sa, random, used, 4));  // it asks again
            table->settle();
            for (int i = 0; i < 8; ++i) ASSERT_TRUE(send_zeros(*table, sa, random, used, 6, true));
            hits = table->status(sa.id)->counters.hits;
        }
        EXPECT_GT(hits, 20u);
    }
    used.expect_no_repeat();
    expect_clean(device);
}

// A device that fails, at each of its calls in turn, leaves nothing behind that is used again.
TEST_P(OnceThrough, WhenTheDeviceFails) {
    Used used;
    int failed = 0;
    for (int at = 1; at < 400; at += at < 40 ? 3 : thorough(13, 60)) {
        HostDevice device(options({}, at));
        {
            Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
            Random random(static_cast<std::uint64_t>(at) + 500);
            auto table = SaTable::open(engine, small_table(random));
            if (!table) {
                EXPECT_EQ(table.code(), Code::device) << table.error().message;
                continue;
            }
            anything(*table, random, used, 40);
            table->settle();
            if (!device.failed_call().empty()) {
                failed += 1;
                // Keys are forgotten and memory is wiped when there is nothing else to do, which
                // may be just now. What failed may fail once more, in the words of another fault.
                const auto says = [&] {
                    const std::string text = table->explain();
                    return text.find("as the test asked") != std::string::npos ||
                           text.find("It has failed") != std::string::npos;
                };
                for (int wait = 0; wait < 2000 && !says(); ++wait)
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                EXPECT_TRUE(says()) << device.failed_call() << table->explain();
            }
        }
        for (const auto& violation : device.violations()) ADD_FAILURE() << violation;
        EXPECT_EQ(device.live(), 0u) << device.failed_call();
    }
    EXPECT_GT(failed, 0);
    used.expect_no_repeat();
}

// Each call by which runs are made, at the first and at a later one.
TEST(Once, WhicheverCallForRunsFails) {
    Used used;
    std::uint64_t seed = 900;  // of other keys each time
    for (const char* call : {"tables", "replace", "begin runs", "begin more runs", "runs done"})
        for (const int at : {1, 4}) {
            SCOPED_TRACE(call);
            HostDevice device({.fail_at = at,
                               .fail_call = call,
                               .delay = std::chrono::microseconds(20),
                               .reads_lists = false,
                               .makes_keystream = true});
            {
                Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
                Random random(++seed);
                auto table = SaTable::open(engine, small_table(random));
                ASSERT_TRUE(table) << table.error().message;
                for (int i = 0; i < 100 && device.failed_call().empty(); ++i)
                    anything(*table, random, used, 10);
                EXPECT_EQ(device.failed_call(), call);
                anything(*table, random, used, 20);  // the direct way, and right
                table->settle();
                EXPECT_NE(table->explain().find("as the test asked"), std::string::npos)
                    << table->explain();
            }
            expect_clean(device);
        }
    used.expect_no_repeat();
}

TEST(Once, TheEndOfAnSa) {
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    Random random(5);
    auto table = SaTable::open(engine, small_table(random));
    SaOptions options;
    options.limit = 100;
    Sender sender(*table, random, options);
    sender.send(80, 100);
    EXPECT_FALSE(sender.status().rekey_soon);
    sender.send(8, 100);
    EXPECT_TRUE(sender.status().rekey_soon) << "7/8 of the limit";
    std::uint8_t byte = 0, iv[8] = {}, tag[16] = {};
    const std::vector<SaPacket> packets(13, {&byte, &byte, 1, nullptr, 0, iv, tag});
    EXPECT_EQ(table->seal(sender.id(), packets).code(), Code::limit);
    EXPECT_EQ(byte, 0);
    sender.send(12, 100);  // to the last, which is all that there is
    EXPECT_EQ(table->seal(sender.id(), {packets.data(), 1}).code(), Code::limit);
    EXPECT_TRUE(table->seal(sender.id(), {}));
    ASSERT_TRUE(table->rekey(sender.id(), key_of(fresh_key(random, 32)), {}));
    const auto again = table->seal(sender.id(), {packets.data(), 1});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->first, 1u);

    // A stream ends where its IV would carry into the salt.
    SaOptions stream;
    stream.layout = SaLayout::stream;
    stream.first_iv.fill(0xff);
    stream.first_iv[11] = 0xf6;  // 10 blocks
    Sender last(*table, random, stream);
    last.send(1, 64);  // 5
    std::uint8_t data[96] = {}, long_iv[12] = {};
    const SaPacket six{data, data, 80, nullptr, 0, long_iv, tag};
    EXPECT_EQ(table->seal(last.id(), {&six, 1}).code(), Code::limit);
    last.send(1, 64);
    EXPECT_EQ(table->seal(last.id(), {&six, 1}).code(), Code::limit);
}

TEST(Once, KeysThatAreNotFresh) {
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    Random random(6);
    auto table = SaTable::open(engine, small_table(random));
    const Bytes raw = fresh_key(random, 16);
    SaOptions options;
    options.fresh_key = false;
    const auto stale = table->add(key_of(raw), options);
    ASSERT_EQ(stale.code(), Code::invalid_argument);
    EXPECT_NE(stale.error().message.find("fresh"), std::string::npos);
    options.direction = SaDirection::receiving;
    EXPECT_TRUE(table->add(key_of(raw), options)) << "receiving uses no counter up";
    options.direction = SaDirection::sending;
    options.fresh_key = true;
    ASSERT_TRUE(table->add(key_of(raw), options));
    const auto second = table->add(key_of(raw), options);
    ASSERT_EQ(second.code(), Code::invalid_argument);
    EXPECT_NE(second.error().message.find("have sent in it"), std::string::npos);
    options.layout = SaLayout::stream;
    EXPECT_EQ(table->add(key_of(raw), options).code(), Code::invalid_argument);
    options.salt[0] = 1;
    EXPECT_TRUE(table->add(key_of(raw), options)) << "another salt, other counters";
}

// First SAs of two tables, which have the same id there, and the same key one after the other.
TEST(Once, AStateThatAnotherTableTookOver) {
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    Random random(9);
    auto here = SaTable::open(engine, small_table(random));
    auto there = SaTable::open(engine, small_table(random));
    ASSERT_TRUE(here && there);
    const Bytes raw = fresh_key(random, 16);
    const auto first = here->add(key_of(raw), {});
    ASSERT_TRUE(first);
    const auto state = here->export_state(*first, 0);
    ASSERT_TRUE(state);
    const auto next = there->add(key_of(raw), {}, *state);
    ASSERT_TRUE(next) << next.error().message;
    ASSERT_EQ(next->value, first->value) << "the ids must be the same for this to try anything";
    std::uint8_t byte = 0, iv[8] = {}, tag[16] = {};
    const SaPacket packet{&byte, &byte, 1, nullptr, 0, iv, tag};
    ASSERT_TRUE(there->seal(*next, {&packet, 1}));
    ASSERT_TRUE(there->export_state(*next, 0));
    EXPECT_EQ(here->export_state(*first, 100).code(), Code::invalid_argument)
        << "the numbers after it are the other's";
    EXPECT_FALSE(here->seal(*first, {&packet, 1}));
    EXPECT_TRUE(there->export_state(*next, 10)) << "whose own state it is";
}

// The same numbers under another first counter or layout would be counters that were used.
TEST(Once, AStateGoesOnUnderItsOwnCountersAlone) {
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    Random random(10);
    auto table = SaTable::open(engine, small_table(random));
    ASSERT_TRUE(table);
    for (const SaLayout layout : {SaLayout::stream, SaLayout::rfc4106}) {
        SaOptions options;
        options.layout = layout;
        options.ivs = SaIvs::counting;
        options.first_iv[11] = 200;
        const Bytes raw = fresh_key(random, 16);
        const auto first = table->add(key_of(raw), options);
        ASSERT_TRUE(first);
        std::uint8_t bytes[400] = {}, iv[12] = {}, tag[16] = {};
        const SaPacket packet{bytes, bytes, sizeof bytes, nullptr, 0, iv, tag};
        ASSERT_TRUE(table->seal(*first, {&packet, 1}));
        const auto state = table->export_state(*first, 0);
        ASSERT_TRUE(state);
        SaOptions other = options;
        other.first_iv[11] = 190;
        if (layout == SaLayout::rfc4106) other.layout = SaLayout::stream;
        const auto wrong = table->add(key_of(raw), other, *state);
        ASSERT_EQ(wrong.code(), Code::invalid_argument);
        EXPECT_NE(wrong.error().message.find("first_iv"), std::string::npos)
            << wrong.error().message;
        const auto next = table->add(key_of(raw), options, *state);
        EXPECT_TRUE(next) << "it was not used up: " << next.error().message;
    }
}

TEST(Once, AChildOfForkSendsNothing) {
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    Random random(8);
    auto table = SaTable::open(engine, small_table(random));
    Sender sender(*table, random, {});
    sender.send(10, 500);
    expect_in_a_child([&] {
        std::uint8_t byte = 0, iv[8] = {}, tag[16] = {};
        const SaPacket packet{&byte, &byte, 1, nullptr, 0, iv, tag};
        if (table->seal(sender.id(), {&packet, 1}).code() != Code::limit) return false;
        if (table->add(key_of(Bytes(16)), {}).code() != Code::limit) return false;
        { const SaTable gone = *std::move(table); }  // waits for nobody
        return true;
    });
    sender.send(10, 500);
}

}  // namespace
