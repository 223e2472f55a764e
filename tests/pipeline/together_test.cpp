// SPDX-License-Identifier: Apache-2.0
// Several devices, and devices and the host, on one job: the same bytes as one, whichever of them
// is slow, fails or has no room, in every mode, in place too; and what is told of it.
#include <gtest/gtest.h>

#include <thread>

#include <daelstrom/plan.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/work.hpp"
#include "support/cancelled.hpp"
#include "support/figures.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kChunk = 64 << 10;

const Cipher kCiphers[] = {{Mode::ctr},
                           {Mode::ecb},
                           {Mode::ecb, Direction::decrypt},
                           {Mode::xts, Direction::encrypt, 16, 0, 512},
                           {Mode::cbc, Direction::decrypt},
                           {Mode::cbc},
                           {Mode::cfb, Direction::decrypt},
                           {Mode::ofb},
                           {Mode::gcm_ctr},
                           gcm::sealing(),
                           gcm::opening()};

// Devices, and an engine on all of them, the first `hosts` of the list's host backends among them.
class Set {
  public:
    Set(std::vector<HostDeviceOptions> options, const char* host = "openssl") {
        for (auto& its : options) {
            its.name = "threads:" + std::to_string(devices_.size());
            devices_.emplace_back(its);
        }
        open(host);
    }
    void open(const char* host) {
        engine_.reset();
        pipeline::Backends set;
        for (auto& device : devices_) set.push_back(std::make_unique<HostDeviceBackend>(device));
        if (host) set.push_back(*core::open_backend(host));
        engine_.emplace(pipeline::make_set_engine(std::move(set), {.threads = 2, .chunk = kChunk}));
    }
    ~Set() {
        engine_.reset();
        for (auto& device : devices_) expect_clean(device);
    }
    Engine& engine() { return *engine_; }
    HostDevice& device(std::size_t i) { return *std::next(devices_.begin(), static_cast<long>(i)); }
    std::size_t size() const { return devices_.size(); }

  private:
    std::list<HostDevice> devices_;
    std::optional<Engine> engine_;
};

Result<Ran> run(Engine& engine, const KeyRing& ring, const Cipher& cipher, Work& work) {
    DAEL_LET(set, engine.keys(ring.keys));
    return engine.run(cipher, set, work.messages, work.codes);
}

std::vector<std::size_t> fitting_all(const Cipher& cipher, std::vector<std::size_t> sizes) {
    for (auto& size : sizes) size = fitting(cipher, size);
    return sizes;
}

TEST(Together, EveryModeInPlaceAndApartPageLockedAndNot) {
    Random random(1);
    Set set(std::vector<HostDeviceOptions>(2));
    std::uint64_t kernels[2] = {};
    for (const Cipher& cipher : kCiphers) {
        const KeyRing ring(random, 3, cipher.mode);
        for (const bool in_place : {true, false})
            for (const bool pinned : {true, false})
                for (const bool many : {true, false}) {
                    const auto sizes =
                        many ? std::vector<std::size_t>(thorough(60, 30), 40'000)
                             : std::vector<std::size_t>{thorough(3u << 20, 1u << 20), 100, 0,
                                                        thorough(700'000u, 200'000u), 17};
                    Work work(random, ring,
                              {cipher, fitting_all(cipher, sizes), in_place,
                               pinned ? &set.device(0) : nullptr});
                    const auto ran = run(set.engine(), ring, cipher, work);
                    ASSERT_TRUE(ran) << ran.error().message;
                    ASSERT_EQ(work.fault(Code::ok), "")
                        << name(cipher.mode) << (in_place ? " in place" : "")
                        << (pinned ? " page-locked" : "");
                }
    }
    for (std::size_t i = 0; i < 2; ++i) kernels[i] = set.device(i).kernels();
    EXPECT_GT(kernels[0], 10u);
    EXPECT_GT(kernels[1], 10u);
}

TEST(Together, TellsWhoDidHowMuch) {
    Random random(2);
    const KeyRing ring(random, 1);
    Set set({{}, {}}, nullptr);
    Work work(random, ring, {{Mode::ctr}, {16 << 20}});
    Result<Ran> ran = Error{};
    // Where the machine is busy one may do it all, before the other comes to it.
    for (int tries = 0; tries < 50 && (!ran || ran->percent[0] == 0); ++tries) {
        work.again();
        ran = run(set.engine(), ring, {Mode::ctr}, work);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(work.fault(Code::ok), "");
    }
    EXPECT_EQ(ran->backend, "threads:0+threads:1");
    EXPECT_NEAR(ran->percent[0] + ran->percent[1], 100, 1);
    EXPECT_GT(ran->percent[0], 0);
    EXPECT_GT(ran->percent[1], 0);
    EXPECT_FALSE(ran->replaced);
    EXPECT_EQ(set.engine().backends(), (std::vector<std::string>{"threads:0", "threads:1"}));
}

// One that is slow gets little, and the others do not wait for more than that.
TEST(Together, WhoIsSlowDoesLess) {
    Random random(3);
    const KeyRing ring(random, 1);
    Set set({{.delay = std::chrono::milliseconds(20)}, {}}, nullptr);
    Work work(random, ring, {{Mode::ctr}, {16 << 20}, false});
    const auto ran = run(set.engine(), ring, {Mode::ctr}, work);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(work.fault(Code::ok), "");
    EXPECT_LT(ran->percent[0], 50) << +ran->percent[1];
}

TEST(Together, WhatOneCannotDoTheOthersDo) {
    Random random(4);
    const KeyRing ring(random, 1);
    Set set({{.lacks = Mode::ctr}, {}}, nullptr);
    Work work(random, ring, {{Mode::ctr}, {1 << 20}});
    const auto ran = run(set.engine(), ring, {Mode::ctr}, work);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->backend, "threads:1");
    Set none({{.lacks = Mode::ctr}, {.lacks = Mode::ctr}}, nullptr);
    const auto refused = run(none.engine(), ring, {Mode::ctr}, work);
    EXPECT_EQ(refused.code(), Code::unsupported);
}

TEST(Together, ADeviceWithoutRoomTakesNoPart) {
    Random random(5);
    const KeyRing ring(random, 1);
    Set set({{.memory = 4096}, {}}, nullptr);
    for (const bool in_place : {true, false}) {
        Work work(random, ring, {gcm::sealing(), std::vector<std::size_t>(8, 1 << 20), in_place});
        const auto ran = run(set.engine(), ring, gcm::sealing(), work);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, "threads:1");
        EXPECT_FALSE(ran->replaced);  // it has not failed, and is asked again
        EXPECT_EQ(work.fault(Code::ok), "");
    }
}

// All of them fail, and nobody is there to turn to: the codes are true.
TEST(Together, WhenAllHaveFailedTheCodesSayWhatIsLeft) {
    Random random(6);
    const KeyRing ring(random, 1);
    Set set({{.fail_at = 3, .fail_call = "run*"}, {.fail_at = 2, .fail_call = "run*"}}, nullptr);
    Work work(random, ring, {{Mode::ctr}, {8 << 20, 1 << 20, 5000}});
    const auto ran = run(set.engine(), ring, {Mode::ctr}, work);
    ASSERT_EQ(ran.code(), Code::device);
    EXPECT_EQ(work.fault(ran.code()), "");
    EXPECT_EQ(work.codes.back(), Code::device);
    work.again();  // those who failed are tried again where there is nobody else
    const auto next = run(set.engine(), ring, {Mode::ctr}, work);
    ASSERT_TRUE(next) << next.error().message;
    EXPECT_EQ(work.fault(Code::ok), "");
}

const std::vector<std::size_t> kLong{(8u << 20) + 5u, 9u << 20, (11u << 20) - 16u};
const std::vector<std::size_t> kFewLong{(8u << 20) + 5u};

// One message of GCM, which no device or thread could have a part of as it is.
TEST(Together, OneLongMessageOfGcm) {
    Random random(11);
    Set set(std::vector<HostDeviceOptions>(2), nullptr);
    const KeyRing ring(random, 2);
    for (const Cipher& cipher :
         {gcm::sealing(), gcm::opening(), Cipher{Mode::gcm, Direction::encrypt, 12},
          Cipher{Mode::gcm, Direction::decrypt, 13}})
        for (const std::size_t size : thorough(kLong, kFewLong))
            for (const bool in_place : {true, false})
                for (const bool wraps : {false, true}) {
                    Work work(random, ring, {cipher, {size}, in_place, nullptr, wraps});
                    // Whole, it would be one's. Where the machine is busy one may do all parts.
                    const bool in_parts = !wraps || modes::encrypts(cipher);
                    bool several = false;
                    for (int tries = 0; tries == 0 || (in_parts && !several && tries < 50);
                         ++tries) {
                        work.again();
                        const auto ran = run(set.engine(), ring, cipher, work);
                        ASSERT_TRUE(ran) << ran.error().message;
                        EXPECT_EQ(work.fault(Code::ok), "") << size << (wraps ? " wraps" : "");
                        several |= ran->backend == "threads:0+threads:1";
                    }
                    EXPECT_EQ(several, in_parts);
                    // Altered anywhere, nothing comes of it, and in place it stays as it was.
                    if (modes::encrypts(cipher)) continue;
                    work.again();
                    Message& m = work.messages[0];
                    auto* const altered = const_cast<std::uint8_t*>(m.in) + random.below(size);
                    *altered ^= 4;
                    const Bytes before(m.out, m.out + size);
                    const auto forged = run(set.engine(), ring, cipher, work);
                    ASSERT_TRUE(forged) << forged.error().message;
                    EXPECT_EQ(work.codes[0], Code::authentication);
                    if (in_place) {
                        EXPECT_EQ(difference(before, std::span(m.out, size)), "");
                    } else {
                        EXPECT_TRUE(std::equal(before.begin(), before.end(), m.out));
                    }
                }
}

// Of additional data alone there is nothing to part.
TEST(Together, LongAdditionalDataOfNoMessage) {
    Random random(13);
    const KeyRing ring(random, 1);
    const Bytes aad = random.bytes(9 << 20);
    Set set(std::vector<HostDeviceOptions>(2));
    auto keys = set.engine().keys(ring.keys);
    ASSERT_TRUE(keys);
    Block tag{};
    Message m;
    m.aad = aad.data();
    m.aad_size = aad.size();
    m.tag = tag.data();
    m.start[15] = 1;
    Code code = Code::internal;
    const auto ran = set.engine().run(gcm::sealing(), *keys, {&m, 1}, {&code, 1});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(code, Code::ok);
    EXPECT_EQ(difference(oracle(ring.raw[0], gcm::sealing(), m).tag, tag), "");
}

// One long message of GCM has all of the host's threads, too, where these are several.
TEST(Together, OneLongMessageOfGcmOnTheHostAlone) {
    Random random(14);
    const KeyRing ring(random, 1);
    auto engine = Engine::open({.backend = "openssl", .threads = 4, .calibrated = false});
    ASSERT_TRUE(engine) << engine.error().message;
    for (const Cipher& cipher : {gcm::sealing(), gcm::opening()}) {
        const Plan plan = engine->explain({cipher, 256, kLong[0]});
        EXPECT_EQ(plan.options.front().threads, 4);
        for (const bool in_place : {true, false}) {
            Work work(random, ring, {cipher, {kLong[0]}, in_place});
            const auto ran = run(*engine, ring, cipher, work);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(work.fault(Code::ok), "");
            EXPECT_EQ(ran->backend, "openssl");
            if (modes::encrypts(cipher)) continue;
            work.again();
            work.messages[0].tag[3] ^= 1;
            const Message& m = work.messages[0];
            const Bytes before(m.out, m.out + m.size);
            ASSERT_TRUE(run(*engine, ring, cipher, work));
            EXPECT_EQ(work.codes[0], Code::authentication);
            EXPECT_EQ(difference(before, std::span(m.out, m.size)), "");
        }
    }
}

// And on one device it goes in chunks, both ways of the bus at once, however small its memory.
TEST(Together, OneLongMessageOfGcmOnOneDevice) {
    Random random(16);
    const KeyRing ring(random, 1);
    for (const Cipher& cipher : {gcm::sealing(), gcm::opening()}) {
        Set set({{.memory = 6 << 20}}, nullptr);
        Work work(random, ring, {cipher, {kLong[0]}});
        const auto ran = run(set.engine(), ring, cipher, work);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(work.fault(Code::ok), "");
        EXPECT_GE(ran->chunks, 4u);
    }
}

// A thread that is cancelled amid a job of several: what the others are at is seen to its end, and
// engine and devices are as good as before.
TEST(Together, TheCallerIsCancelledAmidAJob) {
    Random random(15);
    const KeyRing ring(random, 1);
    for (const Cipher& cipher : {Cipher{Mode::ctr}, gcm::opening()})
        for (int at = 1; at < thorough(60, 20); at += 7) {
            std::atomic<int> calls{0};
            std::atomic<pthread_t> caller{};
            std::atomic<bool> asked{false};
            const auto ask = [&](const char*) {
                if (++calls == at && !asked.exchange(true)) pthread_cancel(caller);
            };
            Set set({{.at = ask}, {.at = ask}});
            auto keys = set.engine().keys(ring.keys);
            ASSERT_TRUE(keys);
            Work work(random, ring, {cipher, std::vector<std::size_t>(12, 200'000)});
            calls = 0;
            const bool ended = cancelled([&] {
                caller = pthread_self();
                calls = 0;
                (void)set.engine().run(cipher, *keys, work.messages, work.codes);
                while (asked) pthread_testcancel();
            });
            EXPECT_EQ(ended, asked.load());
            work.again();
            const auto ran = set.engine().run(cipher, *keys, work.messages, work.codes);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(work.fault(Code::ok), "");
        }
}

// One that never answers: ordinary memory, and what is in place, the others do. What it has it
// keeps for as long as it likes.
TEST(Together, WhoNeverAnswersIsGivenUp) {
    Random random(12);
    const KeyRing ring(random, 1);
    for (const Cipher& cipher : {Cipher{Mode::ctr}, gcm::sealing(), gcm::opening()})
        for (const bool pinned : {false, true}) {
            std::list<HostDevice> devices;
            pipeline::Backends set;
            for (const char* name : {"threads:0", "threads:1"}) {
                devices.emplace_back(HostDeviceOptions{.name = name});
                set.push_back(std::make_unique<HostDeviceBackend>(devices.back()));
            }
            {
                Engine engine = pipeline::make_set_engine(
                    std::move(set), {.threads = 2, .chunk = kChunk, .patience = .2});
                auto keys = engine.keys(ring.keys);
                ASSERT_TRUE(keys);
                Work work(random, ring,
                          {cipher, std::vector<std::size_t>(6, thorough(1 << 20, 1 << 18)), true,
                           pinned ? &devices.back() : nullptr});
                const auto before = engine.run(cipher, *keys, work.messages, work.codes);
                ASSERT_TRUE(before) << before.error().message;  // what it kept may be in use, too
                work.again();
                devices.front().hang(true);
                const auto ran = engine.run(cipher, *keys, work.messages, work.codes);
                ASSERT_TRUE(ran) << ran.error().message;
                EXPECT_EQ(work.fault(Code::ok), "");
                EXPECT_EQ(ran->backend, "threads:1");
                work.again();
                const auto next = engine.run(cipher, *keys, work.messages, work.codes);
                ASSERT_TRUE(next) << next.error().message;
                EXPECT_EQ(work.fault(Code::ok), "");
                const Plan plan = engine.explain({{Mode::ctr}, 128, 1 << 30});
                EXPECT_NE(plan.options.back().why.find("has not answered"), std::string::npos)
                    << plan.options.back().why;
                engine.trim();
            }
            devices.front().hang(false);  // the engine has ended without it
            expect_clean(devices.back());
            for (const auto& violation : devices.front().violations()) ADD_FAILURE() << violation;
        }
}

// Random sets on random jobs, any call of any of them failing: the bytes are always whole, in place
// and page-locked too, as long as one of them is left.
TEST(Together, WalkOverSetsJobsAndTheCallsThatFail) {
    std::size_t replaced = 0, several = 0;
    for (Walks walks("sets of failing devices", thorough(60u, 8u)); walks.next();) {
        SCOPED_TRACE(walks.text());
        Random random(walks.seed());
        const Cipher cipher = kCiphers[random.below(std::size(kCiphers))];
        const KeyRing ring(random, 1 + random.below(3), cipher.mode);
        std::vector<HostDeviceOptions> options(1 + random.below(3));
        for (auto& its : options) {
            its.reads_lists = random.below(4) != 0;
            its.delay = std::chrono::microseconds(random.below(3) * random.below(300));
            its.gives_up = random.below(8) == 0;
        }
        const bool pinned = random.below(2) != 0, in_place = random.below(4) != 0;
        const char* const host = random.below(2) != 0 || options.size() == 1 ? "openssl" : nullptr;
        Set set(options, host);
        std::vector<std::size_t> sizes{random.below(40 * kChunk), 8 * kChunk};
        for (std::size_t more = random.below(2) * random.below(20); more != 0; --more)
            sizes.push_back(random.below(random.below(3) == 0 ? 4 * kChunk : 5000));
        Work work(random, ring,
                  {cipher, fitting_all(cipher, sizes), in_place,
                   pinned ? &set.device(random.below(set.size())) : nullptr});
        for (int round = 0; round < 4; ++round) {
            walks.step();
            set.open(host);
            work.again();
            // One at least does not fail.
            const std::size_t spared = host ? set.size() : random.below(set.size());
            std::string failing;
            for (std::size_t i = 0; i < set.size(); ++i) {
                if (i == spared || random.below(3) == 0) continue;
                set.device(i).throw_instead(random.below(4) == 0);
                set.device(i).fail(1 + static_cast<int>(random.below(round == 0 ? 20 : 100)), {},
                                   random.below(4) == 0 ? 2 : 1);
                failing += " " + std::to_string(i);
            }
            const auto ran = run(set.engine(), ring, cipher, work);
            for (std::size_t i = 0; i < set.size(); ++i) set.device(i).fail(0);
            ASSERT_TRUE(ran) << name(cipher.mode) << (in_place ? " in place" : " apart")
                             << (pinned ? ", page-locked" : "") << ", may fail:" << failing << ": "
                             << ran.error().message;
            ASSERT_EQ(work.fault(Code::ok), "")
                << work.messages.size() << " messages of " << name(cipher.mode)
                << (in_place ? " in place" : " apart") << (pinned ? ", page-locked" : "")
                << ", may fail:" << failing << ", by " << ran->backend;
            replaced += ran->replaced;
            several += ran->backend.find('+') != ran->backend.npos;
        }
    }
    std::printf("%zu calls replaced, %zu by several\n", replaced, several);
    EXPECT_GT(replaced, 0u);
    EXPECT_GT(several, 0u);
}

TEST(Together, ManyCallersAtOnce) {
    Random random(8);
    const KeyRing ring(random, 1);
    Set set(std::vector<HostDeviceOptions>(2));
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i)
        callers.emplace_back([&, seed = i] {
            Random mine(static_cast<std::uint64_t>(seed));
            const Cipher cipher = seed % 2 == 0 ? Cipher{Mode::ctr} : gcm::sealing();
            for (int call = 0; call < 4; ++call) {
                Work work(mine, ring, {cipher, {2 << 20, 300'000, 5}, call % 2 == 0});
                const auto ran = run(set.engine(), ring, cipher, work);
                ASSERT_TRUE(ran) << ran.error().message;
                ASSERT_EQ(work.fault(Code::ok), "");
            }
        });
    for (auto& caller : callers) caller.join();
}

// Each has the part that it can do in the time of all, once it is set up.
TEST(Together, TheyEndTogether) {
    const auto plan = [](std::vector<double> rates, std::vector<double> setups, double bytes,
                         double memory = 0) {
        std::vector<pipeline::Estimate> each;
        for (std::size_t i = 0; i < rates.size(); ++i)
            each.push_back({.possible = rates[i] > 0,
                            .setup_seconds = setups[i],
                            .seconds = setups[i] + bytes / rates[i] / 1e9,
                            .rate = rates[i]});
        return pipeline::together(each, bytes, memory);
    };
    const auto even = plan({50, 50}, {1e-4, 1e-4}, 1e9);
    EXPECT_EQ(even.shares, (std::vector<double>{.5, .5}));
    EXPECT_NEAR(even.seconds, 1e-4 + 1e9 / 100e9, 1e-9);
    // Before the device is set up the host has ended.
    const auto short_job = plan({50, 20}, {1e-4, 2e-6}, 1e6);
    EXPECT_EQ(short_job.shares[0], 0);
    EXPECT_EQ(short_job.members(), 1u);
    const auto later = plan({50, 20}, {1e-4, 2e-6}, 1e9);
    EXPECT_NEAR(later.shares[0] + later.shares[1], 1, 1e-9);
    EXPECT_GT(later.shares[0], .7);
    EXPECT_LT(later.seconds, 1e-4 + 1e9 / 50e9);
    // Memory allows no more than it does, but what the best does alone.
    EXPECT_NEAR(plan({50, 50}, {0, 0}, 1e9, 80).seconds, 1e9 / 80e9, 1e-9);
    EXPECT_NEAR(plan({50, 50}, {0, 0}, 1e9, 20).seconds, 1e9 / 50e9, 1e-9);
    EXPECT_EQ(plan({0, 30}, {0, 0}, 1e9).members(), 1u);
    EXPECT_EQ(plan({}, {}, 1e9).members(), 0u);
}

TEST(Together, ThePlanOfASetSaysWhatEachWillDo) {
    Set set(std::vector<HostDeviceOptions>(2));
    const Job job{{Mode::ctr}, 256, std::uint64_t{1} << 30};
    const Plan plan = set.engine().explain(job);
    ASSERT_EQ(plan.options.size(), 4u);
    const Option& all = plan.options.front();
    EXPECT_EQ(all.backend, "threads:0+threads:1+openssl");
    ASSERT_EQ(all.shares.size(), 3u);
    EXPECT_NEAR(all.shares[0] + all.shares[1] + all.shares[2], 1, 1e-6);
    EXPECT_NE(plan.summary.find("threads:1 "), std::string::npos) << plan.summary;
    EXPECT_LE(all.seconds, plan.options[1].seconds);
    // Too little, or where it lies only one of them comes to it.
    EXPECT_TRUE(set.engine().explain({{Mode::ctr}, 256, 1000}).options.front().shares.empty());
    EXPECT_TRUE(set.engine()
                    .explain({{Mode::ctr}, 256, 1 << 30, 1, Job::From::device})
                    .options.front()
                    .shares.empty());
}

// Two devices that are as fast as each other, by the figures; a host that does nothing beside.
TEST(Together, AutoHasSeveralWhereThatPays) {
    Random random(9);
    const KeyRing ring(random, 1);
    HostDevice first, second({.name = "threads:1"});
    {
        Calibration calibration = figures({.setup_seconds = 1e-6});
        calibration.devices.push_back(calibration.devices[0]);
        calibration.devices[1].backend = "threads:1";
        pipeline::Backends hosts;
        hosts.push_back(*core::open_backend("openssl"));
        Engine engine = pipeline::make_auto_engine(
            std::move(hosts),
            [&] {
                pipeline::Backends backends;
                backends.push_back(std::make_unique<HostDeviceBackend>(first));
                backends.push_back(std::make_unique<HostDeviceBackend>(second));
                return backends;
            },
            {.threads = 2}, calibration);
        const Job job{{Mode::ctr}, 128, 16 << 20};
        for (const bool in_place : {false, true}) {
            Work work(random, ring, {{Mode::ctr}, {16 << 20}, in_place});
            const auto ran = run(engine, ring, {Mode::ctr}, work);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(work.fault(Code::ok), "");
        }
        // Whether they have a part in the end is up to who is free; both were asked.
        EXPECT_GT(first.calls(), 0);
        EXPECT_GT(second.calls(), 0);
        const Plan plan = engine.explain(job);
        EXPECT_TRUE(plan.options.front().backend.starts_with("threads:0+threads:1"))
            << plan.summary;
        // What is page-locked and in place one device copies straight, and several do not.
        Work pinned(random, ring, {{Mode::ctr}, {16 << 20}, true, &first});
        const auto ran = run(engine, ring, {Mode::ctr}, pinned);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, "threads:0");
        EXPECT_EQ(pinned.fault(Code::ok), "");
    }
    expect_clean(first);
    expect_clean(second);
}

TEST(Sets, AreNamedByWhatTheyHave) {
    const auto code = [](const char* backend, const char* form = "") {
        const auto engine = Engine::open({.backend = backend, .form = form});
        return engine ? std::string() : engine.error().message;
    };
    EXPECT_NE(code("cpu+openssl").find("name one of them"), std::string::npos);
    EXPECT_NE(code("openssl+openssl").find("twice"), std::string::npos);
    EXPECT_NE(code("openssl+auto").find("stands by itself"), std::string::npos);
    EXPECT_NE(code("all+openssl").find("stands by itself"), std::string::npos);
    EXPECT_NE(code("openssl+").find("no backend ''"), std::string::npos) << code("openssl+");
    EXPECT_NE(code("openssl+cuda:77").find("not available"), std::string::npos);
    EXPECT_NE(code("openssl+cuda", "avx2").find("several"), std::string::npos);
}

// Whatever this machine has, PoCL's device among it where that is installed.
TEST(Sets, WhatIsHereWorksTogether) {
    Random random(10);
    const KeyRing ring(random, 1);
    for (const char* backend : {"all", "opencl+openssl"}) {
        auto engine = Engine::open({.backend = backend, .threads = 2});
        if (!engine) {
            EXPECT_EQ(engine.code(), Code::backend_absent) << engine.error().message;
            continue;
        }
        for (const Cipher& cipher : {Cipher{Mode::ctr}, Cipher{Mode::cbc, Direction::decrypt}}) {
            Work work(random, ring, {cipher, {24 << 20}});
            const auto ran = run(*engine, ring, cipher, work);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(work.fault(Code::ok), "") << ran->backend;
        }
    }
}

}  // namespace
