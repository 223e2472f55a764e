// SPDX-License-Identifier: Apache-2.0
// What an engine leaves to others: cores, a device's memory, its bus.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/work.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Budget : public testing::Test {
  protected:
    void TearDown() override {
        engine_.reset();
        expect_clean(device_);
    }
    Engine& open(EngineOptions options, const char* host = nullptr) {
        engine_.reset();
        pipeline::Backends set;
        set.push_back(std::make_unique<HostDeviceBackend>(device_));
        if (host) set.push_back(*core::open_backend(host));
        engine_.emplace(pipeline::make_set_engine(std::move(set), std::move(options)));
        return *engine_;
    }
    HostDevice device_;
    std::optional<Engine> engine_;
};

// However many call at once, and whatever they need: chunks become smaller, and calls wait.
TEST_F(Budget, OfMemoryIsKeptByAllCallsTogether) {
    const std::size_t budget = 2 * kMiB;
    Engine& engine = open({.threads = 2, .chunk = kMiB, .device_memory = budget});
    Random random(1);
    const KeyRing ring(random, 1);
    auto keys = engine.keys(ring.keys);
    ASSERT_TRUE(keys);
    std::vector<std::thread> callers;
    for (int i = 0; i < 6; ++i)
        callers.emplace_back([&, seed = i] {
            Random mine(static_cast<std::uint64_t>(seed));
            for (std::size_t call = 0; call < thorough(6u, 2u); ++call) {
                const Cipher cipher = mine.below(2) != 0 ? gcm::sealing() : Cipher{Mode::ctr};
                std::vector<std::size_t> sizes{mine.below(4 * kMiB)};
                if (authenticates(cipher.mode)) sizes.assign(40, mine.below(kMiB / 8));
                Work work(mine, ring, {cipher, sizes, mine.below(2) != 0});
                const auto ran = engine.run(cipher, *keys, work.messages, work.codes);
                ASSERT_TRUE(ran) << ran.error().message;
                ASSERT_EQ(work.fault(Code::ok), "");
            }
        });
    for (auto& caller : callers) caller.join();
    EXPECT_LE(device_.most_memory(), budget + (64 << 10));  // codes of batches come on top
    EXPECT_GT(device_.most_memory(), budget / 8);
}

TEST_F(Budget, OfMemoryThatIsTooSmallForAMessageIsSaid) {
    Random random(2);
    const KeyRing ring(random, 1);
    const Cipher cipher{Mode::cbc};  // whose messages stay whole
    Work work(random, ring, {cipher, {4 * kMiB, 4 * kMiB}});
    {
        Engine& engine = open({.threads = 2, .device_memory = kMiB});
        auto keys = engine.keys(ring.keys);
        const auto ran = engine.run(cipher, *keys, work.messages, work.codes);
        ASSERT_EQ(ran.code(), Code::out_of_memory);
        EXPECT_NE(ran.error().message.find("device_memory is 1048576"), std::string::npos)
            << ran.error().message;
        EXPECT_EQ(work.fault(ran.code()), "");
    }
    Engine& engine = open({.threads = 2, .device_memory = kMiB}, "openssl");  // the host has room
    auto keys = engine.keys(ring.keys);
    const auto ran = engine.run(cipher, *keys, work.messages, work.codes);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->backend, "openssl");
    EXPECT_FALSE(ran->replaced);
    EXPECT_EQ(work.fault(Code::ok), "");
}

// Copies may be as slow as they like, not faster: also those of several calls at once.
TEST_F(Budget, OfCopiesHoldsThemBack) {
    const double rate = 64.0 * kMiB;
    Engine& engine =
        open({.threads = 2, .chunk = 256 << 10, .copy_rate = static_cast<std::uint64_t>(rate)});
    Random random(3);
    const KeyRing ring(random, 1);
    auto keys = engine.keys(ring.keys);
    const auto begun = std::chrono::steady_clock::now();
    std::vector<std::thread> callers;
    for (int i = 0; i < 2; ++i)
        callers.emplace_back([&, seed = i] {
            Random mine(static_cast<std::uint64_t>(seed));
            Work work(mine, ring, {{Mode::ctr}, {4 * kMiB}});
            const auto ran = engine.run({Mode::ctr}, *keys, work.messages, work.codes);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(work.fault(Code::ok), "");
        });
    for (auto& caller : callers) caller.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    // The last chunk is asked for when all before it have had their time.
    EXPECT_GE(took.count(), (8.0 - 1.0) * kMiB / rate);
}

TEST_F(Budget, OfCoresIsAPartOfThem) {
    for (const double wrong : {0.0, -1.0, 1.5, std::nan("")}) {
        const auto refused = Engine::open({.backend = "openssl", .cpu_share = wrong});
        ASSERT_EQ(refused.code(), Code::invalid_argument);
        EXPECT_NE(refused.error().message.find("cpu_share"), std::string::npos);
    }
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto threads = [](EngineOptions options) {
        options.backend = "openssl";
        auto engine = Engine::open(std::move(options));
        return engine->explain({{Mode::ctr}, 128, std::uint64_t{1} << 34}).options[0].threads;
    };
    EXPECT_EQ(threads({}), cores);
    EXPECT_EQ(threads({.cpu_share = 0.5}), std::max(1, static_cast<int>(std::lround(cores / 2.0))));
    EXPECT_EQ(threads({.cpu_share = 1e-9}), 1);
    EXPECT_EQ(threads({.threads = 3, .cpu_share = 0.01}), 3);
}

}  // namespace
