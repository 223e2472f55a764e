// SPDX-License-Identifier: Apache-2.0
// What an engine leaves to others: cores, a device's memory, its bus.
#include <gtest/gtest.h>

#include <atomic>
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

// A message over shards has blocks of its own there, while others wait for all there is; and its
// additional data goes through a device, too, where there is nothing else.
TEST_F(Budget, OfMemoryAndMessagesOverShards) {
    const std::size_t budget = 2 * kMiB;
    Engine& engine = open({.threads = 2, .chunk = kMiB, .device_memory = budget});
    Random random(4);
    const KeyRing ring(random, 1);
    auto keys = engine.keys(ring.keys);
    ASSERT_TRUE(keys);
    const Bytes aad = random.bytes(3 * kMiB);  // of which a chunk takes all there may be
    std::atomic<bool> over{false};
    std::vector<std::thread> callers;
    for (int i = 0; i < 2; ++i)
        callers.emplace_back([&, seed = i] {
            Random mine(static_cast<std::uint64_t>(seed));
            Work work(mine, ring, {{Mode::ctr}, {4 * kMiB}});
            while (!over) {
                work.again();
                const auto ran = engine.run({Mode::ctr}, *keys, work.messages, work.codes);
                ASSERT_TRUE(ran) << ran.error().message;
                ASSERT_EQ(work.fault(Code::ok), "");
            }
        });
    auto* const data = static_cast<std::uint8_t*>(*device_.allocate(4096));
    const Stream stream = *device_.create_stream();
    const Shard shards[] = {{data, data, 1024, stream}, {data + 1024, data + 1024, 99, stream}};
    for (std::size_t call = 0; call < thorough(40u, 10u); ++call) {
        const Bytes plain = random.bytes(1123);
        std::ranges::copy(plain, data);
        Block tag{};
        Message m{plain.data(), nullptr, plain.size()};
        m.out = const_cast<std::uint8_t*>(plain.data());
        m.start = fitting_start(gcm::sealing(), random);
        m.tag = tag.data();
        m.aad = aad.data();
        m.aad_size = call % 2 == 0 ? 20 : budget / 4;
        const Answer answer = oracle(ring.raw[0], gcm::sealing(), m);
        m.in = m.out = nullptr;
        m.size = 0;
        const auto ran = engine.run_shards(gcm::sealing(), *keys, m, shards);
        EXPECT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(difference(answer.tag, tag), "");
        EXPECT_EQ(difference(answer.out, std::span(data, plain.size())), "");
    }
    over = true;
    for (auto& caller : callers) caller.join();
    EXPECT_LE(device_.most_memory(), budget + (64 << 10));
    wipe(data, 4096);
    device_.release(data);
    device_.destroy_stream(stream);
}

// What `auto` goes by knows of it.
TEST_F(Budget, OfCopiesIsReckonedWith) {
    Engine& free = open({.threads = 1});
    const Job job{{Mode::ctr}, 128, std::uint64_t{1} << 30};
    EXPECT_LT(free.explain(job).options[0].seconds, 5);
    Engine& held = open({.threads = 1, .copy_rate = 10'000'000});
    EXPECT_GT(held.explain(job).options[0].seconds, 50);
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
