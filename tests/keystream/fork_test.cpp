// SPDX-License-Identifier: Apache-2.0
// In a child of fork() every call of a parent's table answers at once, whoever held what when the
// process forked; and the child may open tables of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <daelstrom/esp.hpp>

#include "keystream/flow.hpp"
#include "support/child.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

TEST(Fork, EveryCallOfAParentsTableAnswers) {
    if (!kBusyProcessesFork) GTEST_SKIP() << "the sanitizer's allocator has locks of its own";
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    Random random(8);
    SaTableOptions options;
    options.plan = SaTableOptions::Plan::ahead;
    options.budget = std::size_t{1} << 20;
    auto filler = SaFiller::open(engine);
    std::optional<SaTable> table(*SaTable::open(*filler, options));
    const SaId sa = *table->add(key_of(fresh_key(random, 16)), {});
    esp::Options esp_options{.spi = 1000};
    const Key esp_key = key_of(fresh_key(random, 16));
    auto sender = *esp::Encapsulator::open(*table, esp_key, esp_options);
    std::optional<esp::Decapsulator> receiver(*table);
    ASSERT_TRUE(receiver->add(esp_key, esp_options));

    // Whatever may be held is, now and then.
    std::atomic<bool> done{false};
    std::thread packets([&] {
        std::vector<std::uint8_t> data(64 * 1024), ivs(64 * 8), tags(64 * 16);
        std::vector<SaPacket> list;
        for (std::size_t i = 0; i < 64; ++i)
            list.push_back(
                {&data[i * 1024], &data[i * 1024], 1024, nullptr, 0, &ivs[i * 8], &tags[i * 16]});
        while (!done) ASSERT_TRUE(table->seal(sa, list));
    });
    std::thread changes([&] {
        Random others(9);
        for (std::uint32_t spi = 2000; !done; ++spi) {
            ASSERT_TRUE(receiver->add(key_of(fresh_key(others, 16)), {.spi = spi}));
            (void)table->counters();
            (void)receiver->size();
            ASSERT_TRUE(receiver->remove(spi));
        }
    });
    const Bytes raw = fresh_key(random, 16);
    for (int i = 0; i < thorough(25, 6); ++i) {
        expect_in_a_child([&] {
            std::uint8_t bytes[128] = {}, iv[8] = {}, tag[16] = {};
            const SaPacket packet{bytes, bytes, 64, nullptr, 0, iv, tag};
            Code code = Code::internal;
            if (table->counters().packets != 0) return false;
            if (table->status(sa).code() != Code::limit) return false;
            if (table->explain().find("fork()") == std::string::npos) return false;
            if (table->filling().works) return false;
            table->settle();
            if (table->seal(sa, {&packet, 1}).code() != Code::limit) return false;
            if (table->open(sa, {&packet, 1}, {&code, 1}).code() != Code::limit) return false;
            if (table->add(key_of(raw), {}).code() != Code::limit) return false;
            if (table->rekey(sa, key_of(raw), {}).code() != Code::limit) return false;
            if (table->export_state(sa).code() != Code::limit) return false;
            if (table->remove(sa).code() != Code::limit) return false;
            esp::Packet p{bytes, 128, 40, 40};
            p.next_header = 6;
            const auto sent = sender.encapsulate({&p, 1});
            if (!sent || sent->packets != 0 || p.verdict != esp::Verdict::exhausted) return false;
            (void)sender.counters();
            if (receiver->decapsulate({&p, 1}) != 0 || p.verdict != esp::Verdict::fault)
                return false;
            if (receiver->size() != 0) return false;
            if (receiver->counters(1000).code() != Code::limit) return false;
            if (receiver->add(key_of(raw), {.spi = 4000}).code() != Code::limit) return false;
            if (receiver->remove(1000).code() != Code::limit) return false;
            receiver.reset();
            { const auto gone = std::move(sender); }
            table.reset();
            if (SaTable::open(*filler, options).code() != Code::limit) return false;
            filler = Error{Code::internal, ""};
            // Of its own; its parent's keys are not for it to send with.
            Engine own = *Engine::open({.backend = "openssl", .threads = 1});
            auto mine = SaTable::open(own, options);
            if (!mine || mine->add(esp_key, {}).code() != Code::invalid_argument) return false;
            const auto mine_sends = mine->add(key_of(raw), {});
            return mine_sends && mine->seal(*mine_sends, {&packet, 1});
        });
    }
    done = true;
    packets.join();
    changes.join();
    EXPECT_TRUE(table->status(sa));
}

}  // namespace
