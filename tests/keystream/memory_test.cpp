// SPDX-License-Identifier: Apache-2.0
// Memory that runs out, at each allocation in turn: every call says so, and what it was called on
// goes on as it was.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include <daelstrom/esp.hpp>

#include "keystream/failing_memory.hpp"
#include "keystream/flow.hpp"
#include "keystream/key_memory.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class MemoryRunsOut : public testing::Test {
  protected:
    // Calls `call` with a failure at its first allocation, its second and so on, until none is left
    // to fail. `after` looks at what is there after each failure.
    static int at_each(const std::function<Code()>& call, const std::function<void()>& after = {}) {
        int failures = 0;
        for (long at = 0; at < 1000; ++at) {
            allocations_left = at;
            const Code code = call();
            const bool all = allocations_left >= 0;
            allocations_left = -1;
            if (all) {
                EXPECT_EQ(code, Code::ok);
                return failures;
            }
            ++failures;
            EXPECT_TRUE(code == Code::ok || code == Code::out_of_memory)
                << "allocation " << at << ": " << describe(code);
            if (code == Code::ok) return failures;  // it did without
            if (after) after();
        }
        ADD_FAILURE() << "no end";
        return failures;
    }
    static bool sends(SaTable& table, SaId sa) {
        std::uint8_t data[64] = {}, iv[12] = {}, tag[16] = {};
        const SaPacket packet{data, data, 64, nullptr, 0, iv, tag};
        return static_cast<bool>(table.seal(sa, {&packet, 1}));
    }

    // A key for which the process's memory of keys has no room yet, and takes some: it is in parts
    // (key_memory.cpp, by a print's upper 6 bits), and prints are the process's own.
    Key unseen_key() {
        static std::set<std::uint64_t> seen;
        for (;;) {
            Key key = key_of(fresh_key(random_, 16));
            if (seen.insert(*keystream::print_of(key, {}) >> 58).second) return key;
        }
    }

    Random random_{5};
    Engine engine_ = *Engine::open({.backend = "openssl", .threads = 1});
    SaFiller filler_ = *SaFiller::open(engine_);
    SaTableOptions options_{.budget = 1 << 20, .plan = SaTableOptions::Plan::direct};
};

TEST_F(MemoryRunsOut, OpeningAFiller) {
    EXPECT_GT(at_each([&] { return SaFiller::open(engine_, {.threads = 2}).code(); }), 4);
}

TEST_F(MemoryRunsOut, OpeningATable) {
    EXPECT_GT(at_each([&] { return SaTable::open(filler_, options_).code(); }), 20);
}

TEST_F(MemoryRunsOut, SasThatComeChangeAndGo) {
    SaTable table = *SaTable::open(filler_, options_);
    for (const SaLayout layout : {SaLayout::rfc4106, SaLayout::stream}) {
        const Key key = unseen_key(), next = unseen_key();
        SaOptions options;
        options.layout = layout;
        SaId sa;
        EXPECT_GT(at_each([&] {
                      auto added = table.add(key, options);
                      if (added) sa = *added;
                      return added.code();
                  }),
                  2);
        ASSERT_TRUE(sends(table, sa));
        const auto as_before = [&] {
            const std::uint64_t number = table.status(sa)->next;
            EXPECT_GT(number, 1u);
            EXPECT_TRUE(sends(table, sa)) << "under the key that it had";
            EXPECT_EQ(table.status(sa)->next, number + 1);
        };
        EXPECT_GT(at_each([&] { return table.rekey(sa, next, {}).code(); }, as_before), 2);
        EXPECT_EQ(table.status(sa)->next, 1u);
        ASSERT_TRUE(sends(table, sa));
        EXPECT_GT(at_each([&] {
                      return table.export_state(sa, layout == SaLayout::stream ? 0 : 9).code();
                  }),
                  0);
        at_each([&] { return table.remove(sa).code(); });
    }
}

TEST_F(MemoryRunsOut, EndsOfEsp) {
    SaTable table = *SaTable::open(filler_, options_);
    const Key key = unseen_key();
    std::unique_ptr<esp::Encapsulator> sender;
    EXPECT_GT(at_each([&] {
                  auto opened = esp::Encapsulator::open(table, key, {.spi = 999});
                  const long kept =
                      std::exchange(allocations_left, -1);  // what the test needs of it
                  if (opened) sender = std::make_unique<esp::Encapsulator>(std::move(*opened));
                  allocations_left = kept;
                  return opened.code();
              }),
              3);
    esp::Decapsulator receiver(table);
    EXPECT_GT(at_each([&] { return receiver.add(key, {.spi = 999}).code(); },
                      [&] { EXPECT_LE(receiver.size(), 1u); }),
              3);
    EXPECT_EQ(receiver.size(), 1u);
    std::vector<std::uint8_t> buffer(200);
    esp::Packet packet{buffer.data(), 200, 40, 60};
    packet.next_header = 6;
    at_each([&] { return sender->encapsulate({&packet, 1}).code(); });
    EXPECT_EQ(receiver.decapsulate({&packet, 1}), 1u);
}

}  // namespace
