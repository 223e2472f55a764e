// SPDX-License-Identifier: Apache-2.0
// Whatever fills, and whatever of the keystream is there or not: OpenSSL's bytes, in every layout,
// with every size of key and tag, from no byte to more than any slot holds.
#include <gtest/gtest.h>

#include <optional>

#include "core/registry.hpp"
#include "keystream/flow.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

SaTableOptions always_ahead() {
    SaTableOptions options;
    options.plan = SaTableOptions::Plan::ahead;
    options.idle_ms = 10000;
    options.budget = std::size_t{1} << 20;
    return options;
}

struct Way {
    SaLayout layout;
    SaIvs ivs;
};
constexpr Way kWays[] = {{SaLayout::rfc4106, SaIvs::by_size},
                         {SaLayout::rfc4106, SaIvs::counting},
                         {SaLayout::stream, SaIvs::by_size}};

// Both ends of an SA over a filler, in one size and in all, in order and not.
void one_kind(const SaFiller& filler, const SaOptions& options, std::size_t key_size, int rounds) {
    Random random(7);
    auto opened = SaTable::open(filler, always_ahead());
    ASSERT_TRUE(opened) << opened.error().message;
    SaTable& table = *opened;
    Sender sender(table, random, options, key_size);
    Receiver receiver(table, sender);
    for (int round = 0; round < rounds; ++round) {
        auto batch = sender.send(40, 1024);
        std::vector<std::size_t> sizes;
        for (int i = 0; i < 40; ++i) sizes.push_back(random.below(2000));
        sizes.push_back(0);
        sizes.push_back(9001);
        for (auto& sent : sender.send(sizes)) batch.push_back(std::move(sent));
        std::shuffle(batch.begin(), batch.end(), std::minstd_rand(1));
        batch.resize(batch.size() - 7);  // lost
        receiver.receive(batch, round % 2 == 0, {3, 17});
        if (round > 0) table.settle();
    }
    for (const SaStatus& status : {sender.status(), receiver.status()}) {
        EXPECT_GT(status.counters.hits, 0u) << status.why << table.explain();
        EXPECT_GT(status.counters.direct, 0u);
        EXPECT_TRUE(status.ahead) << status.why;
    }
    const SaCounters sum = table.counters();
    EXPECT_EQ(sum.hits + sum.partial + sum.direct, sum.packets);
    EXPECT_EQ(sum.fill_errors, 0u) << table.explain();
}

void every_kind(Engine& engine, bool fewer = false) {
    auto filler = SaFiller::open(engine);
    ASSERT_TRUE(filler) << filler.error().message;
    for (const Way& way : kWays)
        for (const std::size_t key_size : {16, 24, 32})
            for (const std::uint8_t tag_size :
                 {std::uint8_t{8}, std::uint8_t{12}, std::uint8_t{16}}) {
                if (fewer && key_size + tag_size != 32) continue;
                SaOptions options;
                options.layout = way.layout;
                options.ivs = way.ivs;
                options.tag_size = tag_size;
                one_kind(*filler, options, key_size, fewer ? 4 : thorough(8, 4));
            }
}

TEST(Packets, ByEveryHostBackend) {
    for (const char* name : {"cpu", "openssl"}) {
        auto engine = Engine::open({.backend = name});
        if (!engine) continue;  // a build without libipsec-mb
        SCOPED_TRACE(name);
        every_kind(*engine);
    }
}

// By lists of messages in its memory, and by runs that it writes where they are to lie.
TEST(Packets, ByADeviceMadeOfThreads) {
    for (const bool runs : {false, true}) {
        SCOPED_TRACE(runs ? "runs" : "lists");
        HostDevice device({.reads_lists = !runs, .makes_keystream = runs});
        {
            Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
            every_kind(engine);
        }
        expect_clean(device);
        EXPECT_EQ(device.runs() != 0, runs);
        EXPECT_EQ(device.copied_out() != 0, !runs);
    }
}

class PacketsBy : public testing::TestWithParam<const char*> {};

TEST_P(PacketsBy, ADriver) {
    auto engine = Engine::open({.backend = GetParam()});
    if (!engine) GTEST_SKIP() << engine.error().message;
    every_kind(*engine, std::string(GetParam()) == "opencl");
}
INSTANTIATE_TEST_SUITE_P(Gpu, PacketsBy, testing::Values("cuda"));
INSTANTIATE_TEST_SUITE_P(OpenCl, PacketsBy, testing::Values("opencl"));

}  // namespace
