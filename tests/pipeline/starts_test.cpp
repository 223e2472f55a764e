// SPDX-License-Identifier: Apache-2.0
// That a start is not used twice: nonces by a counter, repeats within a batch found, batches
// refused for them, and what was launched once not launched again.
#include "modes/starts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include <daelstrom/gcm.hpp>

#include "pipeline/engine_state.hpp"
#include "pipeline/survey.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"

namespace {

using namespace dael;
using namespace dael::test;

TEST(NonceCounter, HandsOutEachOnceOverThreads) {
    NonceCounter counter({1, 2, 3, 4}, 1000);
    std::vector<std::vector<gcm::Nonce>> seen(4);
    {
        std::vector<std::jthread> threads;
        for (auto& mine : seen)
            threads.emplace_back([&counter, &mine] {
                for (std::size_t round = 0; round < 500; ++round) {
                    mine.push_back(*counter.next());
                    std::vector<Message> messages(round % 7);
                    if (!counter.number(messages)) return;
                    for (const Message& m : messages) {
                        gcm::Nonce nonce;
                        std::copy_n(m.start.begin(), nonce.size(), nonce.begin());
                        EXPECT_EQ(m.start, gcm::start(nonce));
                        mine.push_back(nonce);
                    }
                }
            });
    }
    std::set<gcm::Nonce> all;
    std::size_t count = 0;
    for (const auto& mine : seen) {
        all.insert(mine.begin(), mine.end());
        count += mine.size();
        EXPECT_TRUE(std::ranges::is_sorted(mine));  // big-endian, and for each thread going up
    }
    EXPECT_EQ(all.size(), count);
    EXPECT_EQ(counter.unused(), 1000 + count);
    EXPECT_EQ(*all.begin(), (gcm::Nonce{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 3, 232}));
}

TEST(NonceCounter, EndsBeforeItWouldRepeat) {
    NonceCounter counter({}, ~std::uint64_t{0} - 5);
    std::vector<Message> six(6), five(5);
    const Block untouched = six[0].start;
    EXPECT_EQ(counter.number(six).code(), Code::limit);  // all of them or none
    EXPECT_EQ(six[0].start, untouched);
    EXPECT_TRUE(counter.number(five));
    EXPECT_EQ(counter.next().code(), Code::limit);
    EXPECT_EQ(counter.number(std::span(six).first(1)).code(), Code::limit);
    EXPECT_TRUE(counter.number({}));
    EXPECT_EQ(counter.next().code(), Code::limit);
}

// In the way that nobody would write for speed.
std::optional<std::pair<std::size_t, std::size_t>> plain_repeat(std::span<const Message> messages) {
    std::map<std::pair<std::uint32_t, Block>, std::size_t> seen;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        if (m.size == 0 && m.aad_size == 0 && !m.tag) continue;
        const auto [at, fresh] = seen.try_emplace({m.key, m.start}, i);
        if (!fresh) return {{at->second, i}};
    }
    return {};
}

TEST(FindRepeat, AgainstAPlainSet) {
    Random random(31);
    std::uint8_t tag = 0;
    int found = 0;
    for (int round = 0; round < 3000; ++round) {
        const std::size_t count = random.below(round % 100 ? 60 : 3000);
        std::vector<Message> messages(count);
        // Few enough starts and keys that some repeat in about half of the rounds.
        const std::size_t starts = 1 + count * (1 + random.below(2 * count + 1));
        const std::size_t place = random.below(16);
        for (Message& m : messages) {
            m.key = static_cast<std::uint32_t>(random.below(3));
            std::size_t number = random.below(starts);
            for (std::size_t b = 0; b < 4; ++b, number >>= 8)
                m.start[(place + b) % 16] = static_cast<std::uint8_t>(number);
            m.size = random.below(4);                // some without a byte,
            if (random.below(8) == 0) m.tag = &tag;  // of those some with a tag
        }
        const auto want = plain_repeat(messages);
        EXPECT_EQ(modes::find_repeat(messages), want);
        found += want.has_value();
        // What is told apart by its order is so indeed.
        modes::StartsInOrder in_order;
        std::vector<Message> counted;
        std::ranges::copy_if(messages, std::back_inserter(counted),
                             [](const Message& m) { return m.size != 0 || m.tag; });
        for (const Message& m : counted) in_order.add(m);
        EXPECT_FALSE(in_order.distinct() && want) << round;
    }
    EXPECT_GT(found, 300);
    EXPECT_LT(found, 2700);
}

TEST(StartsInOrder, CountersAreSeenToBeDistinct) {
    NonceCounter counter({9, 9, 9, 9}, 0xfffffffffffffff0u - (1 << 20));
    std::vector<Message> messages(5000);
    ASSERT_TRUE(counter.number(messages));
    const auto distinct = [&] {
        modes::StartsInOrder starts;
        for (const Message& m : messages) starts.add(m);
        return starts.distinct();
    };
    EXPECT_TRUE(distinct());
    for (std::size_t i = 0; i < messages.size(); ++i)  // whatever their keys
        messages[i].key = static_cast<std::uint32_t>(i % 3);
    EXPECT_TRUE(distinct());
    for (std::size_t i = 0; i < messages.size(); ++i) {  // key by key, each counting anew
        messages[i].key = static_cast<std::uint32_t>(i / 1000);
        messages[i].start = gcm::start({static_cast<std::uint8_t>(i % 1000 / 250), 0, 0, 0, 0, 0, 0,
                                        0, 0, 0, 0, static_cast<std::uint8_t>(i % 250)});
    }
    EXPECT_TRUE(distinct());
    messages[4999] = messages[4998];
    EXPECT_FALSE(distinct());
}

// Lists long enough for many threads: what they find together is what one finds.
TEST(Survey, ByManyThreadsIsThatByOne) {
    pipeline::ThreadPool pool(4);
    Random random(33);
    for (int round = 0; round < 60; ++round) {
        const Cipher cipher{round % 2 == 0 ? Mode::gcm : Mode::ctr};
        std::vector<Message> messages(8192 + random.below(3) * 4096 + random.below(70));
        std::uint64_t number = 0;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            Message& m = messages[i];
            m.size = round % 3 == 0 ? 64 : random.below(5000);
            m.aad_size = random.below(3);
            m.key = round % 5 == 0 ? static_cast<std::uint32_t>(i / 3000) : 0;
            for (std::uint64_t b = 0, rest = ++number; b < 8; ++b, rest >>= 8)
                m.start[15 - b] = static_cast<std::uint8_t>(rest);
            if (round % 5 == 0 && i % 3000 == 0) number = 0;  // each key counts anew
        }
        // One step down or to another key, or a longer message, wherever it stands.
        const std::size_t at = 4096 * random.below(2) + 4095 + random.below(3);
        if (round % 4 == 1) std::swap(messages[at].start, messages[at - 1].start);
        if (round % 4 == 2) messages[at].key = 7;
        if (round % 4 == 3) messages[at].size = 5001;
        const auto one = pipeline::survey(cipher, messages);
        const auto all = pipeline::survey(cipher, messages, pool);
        EXPECT_EQ(all.bytes, one.bytes) << round;
        EXPECT_EQ(all.weight, one.weight) << round;
        EXPECT_EQ(all.one_key, one.one_key) << round;
        EXPECT_EQ(all.starts_distinct, one.starts_distinct) << round;
        EXPECT_EQ(all.shrinking, one.shrinking) << round;
        ASSERT_EQ(all.groups.size(), (messages.size() + 63) / 64);
        std::uint64_t weight = 0, largest = 0;
        for (const auto& group : all.groups) {
            weight += group.weight;
            largest = std::max(largest, group.largest);
        }
        EXPECT_EQ(weight, one.weight);
        const auto heaviest = std::ranges::max(
            messages, {}, [&](const Message& m) { return pipeline::weight(cipher, m); });
        EXPECT_EQ(largest, pipeline::weight(cipher, heaviest));
    }
}

TEST(Survey, ManyThreadsFindStartsThatRepeat) {
    pipeline::ThreadPool pool(4);
    Random random(34);
    std::uint8_t byte = 0;
    std::vector<Message> messages(30000);
    for (Message& m : messages) {
        m.size = 1;
        m.in = m.out = &byte;
        m.start = random.block();
        m.key = static_cast<std::uint32_t>(random.below(2));
    }
    EXPECT_FALSE(pipeline::survey({Mode::gcm}, messages, pool).starts_distinct);
    EXPECT_FALSE(pipeline::starts_repeat(messages, pool));
    for (int round = 0; round < 100; ++round) {
        const std::size_t a = random.below(messages.size()), b = random.below(messages.size());
        if (a == b) continue;
        const Message before = messages[b];
        messages[b] = messages[a];
        EXPECT_TRUE(pipeline::starts_repeat(messages, pool)) << a << " " << b;
        EXPECT_EQ(modes::find_repeat(messages), std::pair(std::min(a, b), std::max(a, b)));
        messages[b] = before;
    }
}

// Two messages of a batch from one start under one key, or more: an error that names them, before
// anything is touched. Under another key, or where nothing is given away, they may be.
class Repeats : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        if (GetParam())
            engine_.emplace(pipeline::make_engine(std::make_unique<HostDeviceBackend>(device_)));
        else
            engine_.emplace(*Engine::open({.backend = "openssl", .calibrated = false}));
    }
    void TearDown() override {
        engine_.reset();
        expect_clean(device_);
    }
    HostDevice device_;
    std::optional<Engine> engine_;
};

TEST_P(Repeats, AreRefusedInABatch) {
    Random random(7);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const Cipher cipher{mode, direction};
            if (authenticates(mode) && mode != Mode::gcm && !GetParam())
                continue;  // which OpenSSL lacks
            const KeyRing ring(random, 2, mode);
            auto set = engine_->keys(ring.keys);
            ASSERT_TRUE(set);
            std::string backend;
            for (const bool same_key : {true, false}) {
                TestBatch batch(random, ring, cipher);
                const Block start = fitting_start(cipher, random);
                for (std::uint32_t i = 0; i < 40; ++i) batch.add({.size = 64, .key = i % 2});
                std::vector<Message> list = batch.messages;
                Message& same = list[same_key ? 31 : 30];
                list[11].start = same.start = start;
                same.start_rest = list[11].start_rest;
                std::vector<Code> codes(list.size(), Code::ok);
                const auto ran = engine_->run(cipher, *set, list, codes);
                const bool both_ways = mode == Mode::ofb || makes_keystream(mode);
                const bool refused =
                    same_key && (both_ways || (authenticates(mode) && mode != Mode::gcm_siv &&
                                               direction == Direction::encrypt));
                if (!refused || (both_ways && direction == Direction::decrypt)) {
                    EXPECT_NE(ran.code(), Code::limit) << name(mode);
                    continue;
                }
                ASSERT_EQ(ran.code(), Code::limit) << name(mode);
                for (const char* word : {"11", "31", "nonce"})
                    EXPECT_NE(ran.error().message.find(word), std::string::npos)
                        << ran.error().message;
                for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_NE(codes[i], Code::ok);
                for (const Message& m : list)  // nothing was touched
                    EXPECT_EQ(m.in == m.out || m.out[0] == Poisoned::kPoison, true);
            }
        }
}

// A nonce that was forgotten is the same in every message.
TEST_P(Repeats, ForgottenNoncesAreNoticed) {
    Random random(8);
    const KeyRing ring(random, 1);
    auto set = engine_->keys(ring.keys);
    ASSERT_TRUE(set);
    Bytes data(64), tags(64);
    std::vector<Message> messages;
    for (std::size_t i = 0; i < 2; ++i)
        messages.push_back(
            {data.data() + 32 * i, data.data() + 32 * i, 32, nullptr, 0, tags.data() + 16 * i});
    std::vector<Code> codes(2);
    EXPECT_EQ(engine_->run(gcm::sealing(), *set, messages, codes).code(), Code::limit);
    EXPECT_EQ(data, Bytes(64));
    EXPECT_EQ(tags, Bytes(64));
    NonceCounter counter({});
    ASSERT_TRUE(counter.number(messages));
    EXPECT_TRUE(engine_->run(gcm::sealing(), *set, messages, codes));
    EXPECT_EQ(codes, std::vector(2, Code::ok));
}

INSTANTIATE_TEST_SUITE_P(Pipeline, Repeats, testing::Bool(),
                         [](const auto& on) { return on.param ? "device" : "host"; });

}  // namespace
