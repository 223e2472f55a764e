// SPDX-License-Identifier: Apache-2.0
// What `auto` chooses, that it is what explain() says, and what it does when a device is of no use.
#include <gtest/gtest.h>

#include <daelstrom/ctr.hpp>
#include <daelstrom/plan.hpp>
#include <daelstrom/unauthenticated.hpp>
#include <daelstrom/xts.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/figures.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"
#include "support/thorough.hpp"
#include "support/whole_backend.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// A calibration of a host and a device with one rate each.
Calibration figures(double host, double bus, double start_seconds) {
    return test::figures({host, bus, start_seconds, 50e-6});
}

pipeline::Backends hosts_of(std::initializer_list<const char*> names) {
    pipeline::Backends hosts;
    for (const std::string name : names)
        if (name == "openssl")
            hosts.push_back(std::make_unique<WholeBackend>());
        else
            hosts.push_back(*core::open_backend(name));
    return hosts;
}
int bits_for(Mode mode) {
    return KeysFor(mode).sizes.back() == 16 ? 128 : 256;
}

struct Machine {
    HostDevice device;
    int opened = 0;

    Engine engine(Calibration calibration, int threads = 2) {
        return pipeline::make_auto_engine(
            hosts_of({"openssl"}),
            [this] {
                ++opened;
                pipeline::Backends backends;
                backends.push_back(std::make_unique<HostDeviceBackend>(device));
                return backends;
            },
            {.backend = "auto", .threads = threads}, std::move(calibration));
    }
};

struct Run {
    Result<Ran> ran;
    bool right;
};
Run run(Engine& engine, const Cipher& cipher, std::size_t size, bool in_place = false) {
    Random random(1);
    const KeyRing keys({pattern_key(cipher.mode)}, cipher.mode);
    TestBatch batch(random, keys, cipher);
    batch.add({.size = size, .in_place = in_place});
    Result<Ran> ran = Error{};
    const std::string fault =
        batch.fault_of([&](const Cipher& c, std::span<const Key> k,
                           std::span<const Message> messages, std::span<Code> codes) -> Result<> {
            ran = engine.run(c, k[0], messages[0]);
            codes[0] = ran.code();
            return {};
        });
    return {std::move(ran), fault.empty()};
}
Run run(Engine& engine, Mode mode, std::size_t size, bool in_place = false) {
    return run(engine, Cipher{mode}, size, in_place);
}

TEST(Auto, SmallJobsNeverTouchTheDevice) {
    Machine machine;
    Engine engine = machine.engine(figures(0.001, 100, 0.001));
    const auto [ran, right] = run(engine, Mode::ctr, 1000);
    ASSERT_TRUE(ran);
    EXPECT_EQ(ran->backend, "openssl");
    EXPECT_TRUE(right);
    EXPECT_EQ(engine.backends(), std::vector<std::string>{"openssl"});
    EXPECT_EQ(machine.opened, 0);
}

TEST(Auto, ASlowDeviceIsNotEvenOpened) {
    Machine machine;
    Engine engine = machine.engine(figures(20, 5, 0.1));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(engine, Mode::ctr, 1 << 20).ran->backend, "openssl");
    EXPECT_EQ(machine.opened, 0);
}

TEST(Auto, AFastDeviceIsUsed) {
    Machine machine;
    Engine engine = machine.engine(figures(0.1, 50, 0.001));
    const auto [ran, right] = run(engine, Mode::ctr, 1 << 20);
    ASSERT_TRUE(ran);
    EXPECT_EQ(ran->backend, "threads:0");
    EXPECT_GT(ran->chunks, 0u);
    EXPECT_TRUE(right);
    EXPECT_EQ(machine.device.kernels(), ran->chunks);
    EXPECT_EQ(machine.opened, 1);
    EXPECT_EQ(engine.backends(), (std::vector<std::string>{"openssl", "threads:0"}));
}

TEST(Auto, ManyJobsPayForTheStartThatOneDoesNot) {
    Machine machine;
    // A job takes 10 ms on the host and next to nothing on the device, whose start takes 55 ms.
    Engine engine = machine.engine(figures(0.1, 1000, 0.055));
    int on_host = 0;
    while (run(engine, Mode::ctr, 1 << 20).ran->backend == "openssl") ASSERT_LT(++on_host, 100);
    EXPECT_GE(on_host, 3);
    EXPECT_LE(on_host, 8);
}

TEST(Auto, ASingleSequentialMessageGoesToTheHost) {
    Machine machine;
    Engine engine = machine.engine(figures(0.1, 50, 0.001));
    const auto [ran, right] = run(engine, Mode::cbc, 1 << 20);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->backend, "openssl");
    EXPECT_TRUE(right);
}

TEST(Auto, WhatIsExplainedIsWhatIsDone) {
    for (const Mode mode : {Mode::ctr, Mode::ecb, Mode::gcm, Mode::gcm_ctr, Mode::xts, Mode::cbc})
        for (const double host : {0.1, 0.5, 2.0, 10.0})
            for (const double bus : {0.2, 1.0, 5.0, 50.0})
                for (const double start : {0.0001, 0.01})
                    for (const std::size_t size :
                         {std::size_t{32} << 10, std::size_t{thorough(1024, 128)} << 10}) {
                        Machine machine;
                        Engine engine = machine.engine(figures(host, bus, start));
                        const Plan plan = engine.explain({{mode}, bits_for(mode), size});
                        ASSERT_EQ(plan.options.size(), 2u);
                        const auto [ran, right] = run(engine, mode, size);
                        ASSERT_TRUE(ran);
                        EXPECT_EQ(ran->backend, plan.options[0].backend) << plan.summary;
                        EXPECT_TRUE(right);
                    }
}

// The same of many messages under many keys.
TEST(Auto, WhatIsExplainedOfABatchIsWhatIsDone) {
    for (const Mode mode : kModes)
        for (const double host : {0.01, 1.0, 50.0}) {
            Machine machine;
            Engine engine = machine.engine(figures(host, 5, 0.0001));
            const std::size_t count = thorough(500, 100);
            const Plan plan = engine.explain({{mode}, bits_for(mode), 4096, count});
            Random random(2);
            std::vector<Bytes> raw;
            for (int i = 0; i < 3; ++i) raw.push_back(random.bytes(KeysFor(mode).sizes.back()));
            const KeyRing keys(std::move(raw), mode);
            TestBatch batch(random, keys, {mode});
            for (std::size_t i = 0; i < count; ++i) batch.add({.size = 4096});
            auto set = engine.keys(keys.keys);
            ASSERT_TRUE(set);
            std::string backend;
            EXPECT_EQ(batch.fault_of([&](const Cipher& cipher, std::span<const Key>,
                                         std::span<const Message> messages,
                                         std::span<Code> codes) -> Result<> {
                DAEL_LET(ran, engine.run(cipher, *set, messages, codes));
                backend = ran.backend;
                return {};
            }),
                      "");
            EXPECT_EQ(backend, plan.options[0].backend) << plan.summary;
        }
}

TEST(Auto, APlanForMoreThan64BitsCountStaysFinite) {
    Machine machine;
    const Plan plan = machine.engine(figures(1, 0.5, 0.1))
                          .explain({.size = std::uint64_t{1} << 63, .messages = 1 << 20});
    ASSERT_EQ(plan.options.size(), 3u);  // the host, the device, and both
    EXPECT_NE(plan.summary.find("16777216 TiB"), std::string::npos) << plan.summary;
    for (const Option& option : plan.options) EXPECT_GT(option.seconds, 1e9) << option.backend;
}

TEST(Auto, ThePlanGivesItsFigures) {
    Machine machine;
    Engine engine = machine.engine(figures(0.25, 50, 0.001));
    const Plan plan = engine.explain({.cipher = {Mode::ctr}, .size = 64 << 20});
    EXPECT_EQ(plan.options[0].backend, "threads:0");
    EXPECT_NEAR(plan.options[0].gigabytes_per_second, 50, 1e-9);
    EXPECT_NEAR(plan.options[1].gigabytes_per_second, 0.25, 1e-9);
    EXPECT_TRUE(plan.options[0].measured);
    EXPECT_NE(plan.summary.find("50 GB/s"), std::string::npos) << plan.summary;
    EXPECT_NE(plan.summary.find("0.25 GB/s"), std::string::npos) << plan.summary;
    const Plan on_device =
        engine.explain({.cipher = {Mode::ctr}, .size = 64 << 20, .from = Job::From::device});
    EXPECT_EQ(on_device.options[0].backend, "threads:0");
    EXPECT_NEAR(on_device.options[0].gigabytes_per_second, 100, 1e-9);
    EXPECT_FALSE(on_device.options[1].possible);
}

// Page-locked and short: what copies would take longer for than the host, a kernel that reaches for
// it does sooner.
TEST(Auto, WhatIsWithinAKernelsReachGoesToTheDevice) {
    constexpr std::size_t kSize = std::size_t{512} << 10;
    for (const bool reaches : {true, false}) {
        Machine machine{HostDevice({.reach = reaches ? kSize : 0})};
        Engine engine = machine.engine(figures(10, 20, 0));
        const auto started = run(engine, Mode::ctr, 8 << 20);
        ASSERT_TRUE(started.ran) << started.ran.error().message;
        EXPECT_GT(machine.device.calls(), 0);
        auto memory = machine.device.allocate_pinned(kSize + 16);
        ASSERT_TRUE(memory) << memory.error().message;
        auto* const data = static_cast<std::uint8_t*>(*memory);
        const Key key = *Key::import(pattern(32));
        const char* const expected = reaches ? "threads:0" : "openssl";
        Job job{{Mode::ctr}, 256, kSize};
        job.from = Job::From::pinned;
        EXPECT_EQ(engine.explain(job).options[0].backend, expected);
        for (const bool is_aligned : {true, false}) {
            Message m{.in = data, .out = data, .size = kSize};
            if (!is_aligned) m.in = m.out = data + 4;
            const auto ran = engine.run({Mode::ctr}, key, m);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, is_aligned ? expected : "openssl");
        }
        wipe(data, kSize + 16);
        machine.device.release_pinned(data);
    }
}

TEST(Auto, ADeviceThatFailsIsReplacedByTheHostWhereTheInputIsWhole) {
    Machine machine;
    HostDevice broken({.fail_at = 25});
    Engine engine = pipeline::make_auto_engine(
        hosts_of({"openssl"}),
        [&] {
            pipeline::Backends backends;
            backends.push_back(std::make_unique<HostDeviceBackend>(broken));
            return backends;
        },
        {.backend = "auto"}, figures(0.1, 50, 0.001));
    const auto [ran, right] = run(engine, Mode::ctr, 1 << 20);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_FALSE(broken.failed_call().empty());
    EXPECT_EQ(ran->backend, "openssl");
    EXPECT_TRUE(ran->replaced);
    EXPECT_TRUE(right);
    const int calls = broken.calls();
    const auto next = run(engine, Mode::ctr, 1 << 20).ran;
    EXPECT_EQ(next->backend, "openssl");
    EXPECT_FALSE(next->replaced);
    EXPECT_EQ(broken.calls(), calls);  // left alone from now on
    // And the plan says why, of jobs of any size.
    for (const std::uint64_t size : {std::uint64_t{16}, std::uint64_t{1} << 30}) {
        const Plan plan = engine.explain({{Mode::ctr}, 256, size});
        ASSERT_EQ(plan.options.size(), 2u);
        EXPECT_EQ(plan.options[1].backend, "threads:0");
        EXPECT_FALSE(plan.options[1].possible);
        for (const std::string& word :
             {std::string("has failed and is left alone: "), broken.failed_call() + " failed"})
            EXPECT_NE(plan.options[1].why.find(word), std::string::npos) << plan.options[1].why;
    }
}

// One that could not be opened is in the plan with the reason, and so where there is no other.
TEST(Auto, APlanNamesTheDevicesThatCouldNotBeOpened) {
    Engine engine = pipeline::make_auto_engine(
        hosts_of({"openssl"}),
        [] {
            return pipeline::Devices(
                {}, {{"cuda:1", Error{Code::backend_absent, "cuda: no code for this one"}}});
        },
        {.backend = "auto"}, figures(0.1, 50, 0.001));
    const Plan plan = engine.explain({{Mode::ctr}, 128, 1 << 30});
    ASSERT_EQ(plan.options.size(), 2u);
    EXPECT_EQ(plan.options[0].backend, "openssl");
    EXPECT_TRUE(plan.options[0].possible);
    EXPECT_EQ(plan.options[1].backend, "cuda:1");
    EXPECT_FALSE(plan.options[1].possible);
    EXPECT_EQ(plan.options[1].why, "cuda: no code for this one");
    EXPECT_TRUE(run(engine, Mode::ctr, 1 << 20).right);
    EXPECT_EQ(engine.backends(), std::vector<std::string>{"openssl"});
    const Key key = *Key::import(Bytes(16, 1));
    Bytes data(16);
    const Message message{.in = data.data(), .out = data.data(), .size = 16, .start = {}};
    const auto refused = engine.run({Mode::ctr}, key, message, Stream{});
    ASSERT_EQ(refused.code(), Code::backend_absent);
    EXPECT_NE(refused.error().message.find("cuda: no code for this one"), std::string::npos)
        << refused.error().message;
}

TEST(Forced, TheNamedBackendRunsOrIsRefused) {
    const Key key = *Key::import(random_bytes(16, 3));
    for (const auto& info : list_backends()) {
        if (!info.present) {
            const auto engine = Engine::open({.backend = info.name});
            EXPECT_EQ(engine.code(), Code::backend_absent);
            EXPECT_NE(engine.error().message.find(info.missing), std::string::npos);
            continue;
        }
        auto engine = Engine::open({.backend = info.name});
        ASSERT_TRUE(engine) << engine.error().message;
        Bytes data(100);
        const auto ran = ctr::crypt(*engine, key, {}, data, data);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, info.name);
    }
}

// One message of a sequential mode fills one lane of libipsec-mb's sixteen, and OpenSSL is faster.
TEST(AutoOnTheHost, OneSequentialMessageGoesToOpensslAndManyToTheLanes) {
    if (!core::open_backend("cpu")) GTEST_SKIP() << "this machine or build has no backend cpu";
    auto engine = Engine::open({.backend = "auto", .calibrated = false});
    ASSERT_TRUE(engine);
    const Key key = *Key::import(random_bytes(16, 1));
    constexpr std::size_t kSize = 4096;
    Bytes data(64 * kSize, 7);
    const auto set = engine->keys(std::span(&key, 1));
    for (const Mode mode : {Mode::cbc, Mode::ofb}) {
        const auto one = engine->run({mode}, key, {data.data(), data.data(), data.size()});
        ASSERT_TRUE(one) << one.error().message;
        EXPECT_EQ(one->backend, "openssl") << name(mode);
        std::vector<Message> messages;
        for (std::size_t at = 0; at < data.size(); at += kSize) {
            messages.push_back({data.data() + at, data.data() + at, kSize});
            messages.back().start[0] = static_cast<std::uint8_t>(at / kSize);
        }
        std::vector<Code> codes(messages.size());
        const auto many = engine->run({mode}, *set, messages, codes);
        ASSERT_TRUE(many) << many.error().message;
        EXPECT_EQ(many->backend, "cpu") << name(mode);
    }
    const auto parallel = ctr::crypt(*engine, key, {}, data, data);
    ASSERT_TRUE(parallel);
    EXPECT_EQ(parallel->backend, "cpu");
    const Plan plan = engine->explain({{Mode::cbc}, 128, 1 << 20});
    EXPECT_EQ(plan.options.at(0).backend, "openssl");
    EXPECT_EQ(plan.options.at(1).backend, "cpu");
}

// GCM by libipsec-mb is faster than OpenSSL's where the CPU has VAES, and slower where it has not:
// what the entries expect of themselves decides, and auto takes the one of which more is expected.
TEST(AutoOnTheHost, GcmGoesWhereMoreIsExpected) {
    std::map<std::string, double> expected;
    for (const core::BackendEntry& entry : core::backend_list())
        if (entry.expected && core::open_backend(entry.name))
            expected[entry.name] = entry.expected("").gcm;
    ASSERT_TRUE(expected.contains("openssl"));
    const auto best =
        std::ranges::max_element(expected, {}, [](const auto& of) { return of.second; });
    auto engine = Engine::open({.backend = "auto", .calibrated = false});
    ASSERT_TRUE(engine);
    for (const std::size_t size : {std::size_t{1} << 10, std::size_t{1} << 20}) {
        const auto [ran, right] = run(*engine, gcm::sealing(), size);
        ASSERT_TRUE(ran);
        EXPECT_EQ(ran->backend, best->first);
        EXPECT_TRUE(right);
        EXPECT_EQ(engine->explain({gcm::sealing(), 256, size}).options.at(0).backend, best->first);
    }
}

const core::BackendEntry& entry_of(const std::string& name) {
    for (const core::BackendEntry& entry : core::backend_list())
        if (entry.name == name) return entry;
    throw std::runtime_error("no backend " + name);
}

// A form that has no VAES: whatever this machine has besides, GCM goes to OpenSSL.
TEST(AutoOnTheHost, GcmWithoutVaesGoesToOpenssl) {
    for (const char* form : {"sse", "avx2"}) {
        auto backend = core::open_backend("cpu", {form});
        if (!backend) GTEST_SKIP() << backend.error().message;
        EXPECT_LT(entry_of("cpu").expected(form).gcm, entry_of("openssl").expected("").gcm) << form;
        pipeline::Backends hosts = hosts_of({"openssl"});
        hosts.insert(hosts.begin(), std::move(*backend));
        Engine engine =
            pipeline::make_auto_engine(std::move(hosts), {}, {.backend = "auto", .form = form});
        const auto [ran, right] = run(engine, gcm::sealing(), 16 << 10);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, "openssl");
        EXPECT_TRUE(right);
    }
}

// A calibration has the last word, in GCM and XTS as in the others.
TEST(AutoOnTheHost, TheFasterOneByItsCalibration) {
    for (const Mode mode : kModes)
        for (const bool second : {false, true}) {
            Calibration calibration{"a machine", "2025-01-01T00:00:00Z", {}, {}};
            for (const Direction direction : kDirections)
                for (const int bits : {128, 192, 256})
                    for (const bool reference : {false, true}) {
                        const double rate = reference == second ? 9 : 3;
                        const Mode measured = mode == Mode::gcm_ctr ? Mode::ctr : mode;
                        calibration.hosts.push_back({reference ? "reference" : "openssl", measured,
                                                     direction, bits, rate, rate, rate, rate});
                    }
            Engine engine = pipeline::make_auto_engine(hosts_of({"openssl", "reference"}), {},
                                                       {.backend = "auto"}, calibration);
            const std::string faster = second ? "reference" : "openssl";
            const auto [ran, right] = run(engine, mode, 4096);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, faster) << name(mode);
            EXPECT_TRUE(right);
            const Plan plan = engine.explain({{mode}, bits_for(mode), 4096});
            EXPECT_EQ(plan.options.at(0).backend, faster);
            EXPECT_TRUE(plan.options.at(0).measured) << name(mode);
            EXPECT_NEAR(plan.options.at(0).gigabytes_per_second, 9, 1e-9) << name(mode);
        }
}

// What the first one lacks the next one does: no mode is without a backend under auto.
TEST(AutoOnTheHost, WhatOneLacksTheOtherDoes) {
    auto engine = Engine::open({.backend = "auto", .calibrated = false});
    ASSERT_TRUE(engine);
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const Plan plan = engine->explain({{mode, direction}, bits_for(mode), 65536});
            ASSERT_TRUE(plan.options.at(0).possible) << plan.summary;
            const auto [ran, right] = run(*engine, Cipher{mode, direction}, 65536);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, plan.options.at(0).backend);
            EXPECT_TRUE(right);
        }
    if (!core::open_backend("cpu")) return;
    for (const Option& option : engine->explain({{Mode::xts}, 256, 65536}).options)
        EXPECT_EQ(option.possible, option.backend != "cpu") << option.why;
}

TEST(Forced, TheEnvironmentForcesToo) {
    ASSERT_EQ(setenv("DAELSTROM_BACKEND", "openssl", 1), 0);
    EXPECT_EQ(Engine::open()->backends(), std::vector<std::string>{"openssl"});
    EXPECT_TRUE(Engine::open({.backend = "reference"}));  // what the program says goes first
    ASSERT_EQ(setenv("DAELSTROM_BACKEND", "abacus", 1), 0);
    const auto engine = Engine::open();
    EXPECT_EQ(engine.code(), Code::unknown_backend);
    EXPECT_NE(engine.error().message.find("abacus"), std::string::npos);
    unsetenv("DAELSTROM_BACKEND");
}

TEST(Pinned, AllocatesAndServesContainers) {
    std::vector<std::uint8_t, pinned_allocator<std::uint8_t>> bytes(100000, 7);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096, 0u);
    bytes.resize(300000);
    EXPECT_EQ(bytes[99999], 7);
    EXPECT_EQ(allocate_pinned(static_cast<std::size_t>(-1)), nullptr);
    release_pinned(nullptr);
}

}  // namespace
