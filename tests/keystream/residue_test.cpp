// SPDX-License-Identifier: Apache-2.0
// What is left in memory of an SA that is removed or gets another key, while others of its table go
// on: no keystream, neither what packets used nor what nobody came for.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "keystream/flow.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"
#include "support/memory_search.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class Residue : public testing::TestWithParam<const char*> {
  protected:
    static constexpr std::size_t kCount = 8, kSize = 1024;

    void SetUp() override {
        if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory takes minutes to look through";
        const std::string by = GetParam();
        if (by != "openssl") {
            device_.emplace(HostDeviceOptions{.delay = std::chrono::microseconds(50),
                                              .reads_lists = by != "runs",
                                              .makes_keystream = by == "runs"});
            engine_ = pipeline::make_engine(std::make_unique<HostDeviceBackend>(*device_));
        } else {
            engine_ = *Engine::open({.backend = "openssl", .threads = 1});
        }
        SaTableOptions options;
        options.plan = SaTableOptions::Plan::ahead;
        options.budget = std::size_t{2} << 20;
        options.block = 64 << 10;
        options.idle_ms = 60000;  // nobody is, in a test
        table_ = *SaTable::open(*engine_, options);
        for (int i = 0; i < 6; ++i) others_.push_back(add());
    }
    void TearDown() override {
        if (!table_) return;
        table_.reset();
        engine_.reset();
        if (device_) expect_clean(*device_);
    }

    SaId add() { return *table_->add(key_of(fresh_key(random_, 16)), {}); }
    // Zeros: what comes out is the keystream. One block of each packet is noted, and all wiped.
    void send(SaId sa, MemorySearch* noted = nullptr) {
        std::vector<SaPacket> packets;
        for (std::size_t i = 0; i < kCount; ++i)
            packets.push_back(
                {data_[i].data(), data_[i].data(), kSize, nullptr, 0, iv_.data(), tag_.data()});
        const auto sealed = table_->seal(sa, packets);
        EXPECT_TRUE(sealed) << sealed.error().message;
        for (auto& packet : data_) {
            if (noted) noted->add(std::span(packet).subspan(512, 16));
            wipe(packet.data(), packet.size());
        }
    }
    // Lanes that are given lists keep a copy of their last fill until their thread comes to wipe
    // it.
    std::size_t left_of(const MemorySearch& noted) {
        std::size_t found = noted.found();
        for (int i = 0; i < 400 && found != 0 && std::string(GetParam()) == "lists"; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            found = noted.found();
        }
        return found;
    }
    // One SA among others that go on afterwards, until it has used up several windows.
    void let_all_send(SaId sa, MemorySearch& noted) {
        const std::uint64_t before = table_->status(sa)->counters.hits;
        for (int i = 0; i < 400; ++i) {
            send(sa, &noted);
            for (const SaId other : others_) send(other);
            if (i % 4 == 0) table_->settle();
            if (i > 30 && table_->status(sa)->counters.hits - before > 150) break;
        }
        EXPECT_GT(table_->status(sa)->counters.hits - before, 150u) << table_->explain();
    }

    Random random_{17};
    std::optional<HostDevice> device_;
    std::optional<Engine> engine_;
    std::optional<SaTable> table_;
    std::vector<SaId> others_;
    std::array<std::array<std::uint8_t, kSize>, kCount> data_{};
    std::array<std::uint8_t, 8> iv_{};
    std::array<std::uint8_t, 16> tag_{};
};
INSTANTIATE_TEST_SUITE_P(By, Residue, testing::Values("openssl", "runs", "lists"),
                         [](const auto& which) { return std::string(which.param); });

TEST_P(Residue, OfAnSaThatIsRemovedWhileOthersGoOn) {
    const SaId sa = add();
    MemorySearch noted;
    let_all_send(sa, noted);
    ASSERT_TRUE(table_->remove(sa));
    send(others_.front());  // the table is not idle
    table_->settle();       // nor is anything just being written over
    EXPECT_EQ(left_of(noted), 0u) << "of " << noted.size();
    EXPECT_TRUE(table_->filling().works);
}

TEST_P(Residue, OfAKeyThatIsReplaced) {
    const SaId sa = add();
    MemorySearch noted;
    let_all_send(sa, noted);
    ASSERT_TRUE(table_->rekey(sa, key_of(fresh_key(random_, 32)), {1, 2, 3, 4}));
    send(sa);
    table_->settle();
    EXPECT_EQ(left_of(noted), 0u) << "of " << noted.size();
    // What the new key's packets used is there as long as the key is, which is as good.
    MemorySearch next;
    let_all_send(sa, next);
    ASSERT_TRUE(table_->remove(sa));
    table_->settle();
    EXPECT_EQ(left_of(next), 0u) << "of " << next.size();
}

// What the search is worth: it finds keystream that is there.
TEST_P(Residue, IsFoundWhereItIs) {
    const SaId sa = add();
    MemorySearch noted;
    let_all_send(sa, noted);
    if (std::string(GetParam()) == "openssl") {
        EXPECT_GT(noted.found(), 0u);
    }
    std::vector<std::uint8_t> copy(16, 0x77);
    MemorySearch mine;
    mine.add(copy);
    EXPECT_EQ(mine.found(), 1u);
}

}  // namespace
