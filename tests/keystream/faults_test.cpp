// SPDX-License-Identifier: Apache-2.0
// Devices that fail once, or do not answer: packets go the direct way meanwhile, a monitor sees it,
// keystream comes again when it can, and closing ends. And where a filler's threads run.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "keystream/flow.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"

namespace {

using namespace dael;
using namespace dael::test;

SaTableOptions ahead() {
    SaTableOptions options;
    options.plan = SaTableOptions::Plan::ahead;
    options.budget = std::size_t{1} << 20;
    options.idle_ms = 60000;
    return options;
}

// Waits for what other threads do, and fails after half a minute.
template <class Condition>
bool comes(Condition condition) {
    for (int i = 0; i < 30000; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
}

TEST(Faults, OneIsNotForEver) {
    struct Fault {
        const char* call;
        bool runs;
    };
    for (const Fault fault : {Fault{"begin runs", true}, Fault{"runs done", true},
                              Fault{"tables", true}, Fault{"copy_in", false}}) {
        SCOPED_TRACE(fault.call);
        HostDevice device({.fail_at = 2,
                           .fail_call = fault.call,
                           .reads_lists = !fault.runs,
                           .makes_keystream = fault.runs});
        {
            Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
            SaTable table = *SaTable::open(engine, ahead());
            Random random(3);
            std::vector<std::unique_ptr<Sender>> senders;
            const auto failed = [&] {  // more keys need more tables of them
                for (int i = 0; i < 20; ++i)
                    senders.push_back(std::make_unique<Sender>(table, random, SaOptions{}));
                for (auto& sender : senders) sender->send(8, 1000);
                table.settle();
                return table.filling().faults == 1;
            };
            for (int i = 0; i < 50 && !failed(); ++i) continue;
            ASSERT_EQ(table.filling().faults, 1u);
            EXPECT_NE(table.filling().fault.find(fault.call), std::string::npos);
            EXPECT_EQ(table.counters().fill_errors, 1u);
            const std::uint64_t hits = table.counters().hits;
            EXPECT_TRUE(comes([&] {
                senders.front()->send(8, 1000);
                return table.filling().works && table.counters().hits > hits + 100;
            })) << table.explain();
            EXPECT_EQ(table.filling().faults, 1u);
            EXPECT_NE(table.explain().find("as the test asked"), std::string::npos);
            EXPECT_TRUE(senders.front()->status().ahead);
        }
        expect_clean(device);
    }
}

class Hung : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Device, Hung, testing::Bool(),
                         [](const auto& which) { return which.param ? "Runs" : "Lists"; });

// Nothing that the device may still write to is freed, and it goes when the device answers.
TEST_P(Hung, ClosingEndsNevertheless) {
    HostDevice device({.reads_lists = !GetParam(), .makes_keystream = GetParam()});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        std::optional<SaFiller> filler(*SaFiller::open(engine, {.lanes = 2, .patience_ms = 20}));
        std::optional<SaTable> table(*SaTable::open(*filler, ahead()));
        Random random(4);
        Sender sender(*table, random, {}), gone(*table, random, {});
        sender.send(8, 1000);
        table->settle();
        device.hang(true);
        EXPECT_TRUE(comes([&] {
            sender.send(8, 1000);
            gone.send(8, 1000);
            return table->filling().waits_ms > 5;
        }));
        EXPECT_TRUE(table->remove(gone.id()));
        EXPECT_TRUE(table->rekey(sender.id(), key_of(fresh_key(random, 16)), {}));
        EXPECT_FALSE(table->explain().empty());
        table.reset();
        filler.reset();
        EXPECT_NE(device.live(), 0u);
    }
    device.hang(false);
    EXPECT_TRUE(comes([&] { return device.live() == 0; })) << device.live();
    expect_clean(device);
}

// One table goes, the other has keystream again once the device answers.
TEST_P(Hung, AnotherTableGoesOnAfterwards) {
    HostDevice device({.reads_lists = !GetParam(), .makes_keystream = GetParam()});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        SaFiller filler = *SaFiller::open(engine, {.lanes = 2, .patience_ms = 20});
        std::optional<SaTable> table(*SaTable::open(filler, ahead()));
        SaTable other = *SaTable::open(filler, ahead());
        Random random(4);
        Sender here(*table, random, {}), there(other, random, {});
        device.hang(true);
        EXPECT_TRUE(comes([&] {
            here.send(8, 1000);
            there.send(8, 1000);
            return table->filling().waits_ms > 5;
        }));
        table.reset();
        there.send(8, 1000);
        device.hang(false);
        EXPECT_TRUE(comes([&] {
            there.send(8, 1000);
            return there.status().counters.hits > 100;
        }));
    }
    // Where the filler took longer to end than it is waited for, it ends by itself.
    EXPECT_TRUE(comes([&] { return device.live() == 0; })) << device.live();
    expect_clean(device);
}

// A device that neither makes runs nor reads lists is asked message by message, on streams that
// know nothing of the one on which a key is replaced.
TEST(Slow, AKeyIsInItsPlaceBeforeItsKeystreamIsMade) {
    HostDevice device({.delay = std::chrono::microseconds(300), .reads_lists = false});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        SaTable table = *SaTable::open(engine, ahead());
        Random random(8);
        std::vector<std::unique_ptr<Sender>> senders;
        for (int i = 0; i < 12; ++i) {  // all but the first in places of the first one's set
            senders.push_back(std::make_unique<Sender>(table, random, SaOptions{}));
            void* const others = *device.allocate(16);  // who keep the default stream busy
            for (int work = 0; work < 40; ++work) ASSERT_TRUE(device.fill(others, 0, 16, {}));
            for (int round = 0; round < 3; ++round) {
                senders.back()->send(8, 1000);
                table.settle();
            }
            ASSERT_TRUE(device.wait(Stream{}));
            device.release(others);
            EXPECT_NE(senders.back()->status().counters.hits, 0u);
            if (i % 3 == 2) {
                EXPECT_TRUE(table.remove(senders.back()->id()));
            }
        }
    }
    expect_clean(device);
}

class Lost : public testing::TestWithParam<bool> {
  protected:
    // A fill that is under way when all waits for it fail; which leaves the device hanging.
    void lose(SaTable& table, Sender& sender, int failing_waits) {
        sender.send(8, 1000);
        table.settle();
        ASSERT_EQ(table.filling().faults, 0u);
        device.hang(true);
        device.fail(1, "wait for*", failing_waits);
        EXPECT_TRUE(comes([&] {
            sender.send(8, 1000);
            return table.filling().faults != 0;
        }));
    }

    // A filler that is closed while its device hangs goes on at it: the device stays, too.
    static HostDevice& kept(bool runs) {
        static auto* const all = new std::vector<std::unique_ptr<HostDevice>>;
        return *all->emplace_back(std::make_unique<HostDevice>(
            HostDeviceOptions{.gives_up = true, .reads_lists = !runs, .makes_keystream = runs}));
    }
    HostDevice& device = kept(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Device, Lost, testing::Bool(),
                         [](const auto& which) { return which.param ? "Runs" : "Lists"; });

// Its buffer is neither wiped nor given back nor filled again, nor anything else that the device
// may still read or write, whatever comes after.
TEST_P(Lost, AFillThatCannotBeWaitedForKeepsAllItHas) {
    std::uint64_t kept = 0;
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        std::optional<SaFiller> filler(*SaFiller::open(engine, {.lanes = 2, .patience_ms = 20}));
        std::optional<SaTable> table(*SaTable::open(*filler, ahead()));
        Random random(5);
        Sender sender(*table, random, {}), gone(*table, random, {});
        gone.send(8, 1000);
        lose(*table, sender, 1 << 30);
        EXPECT_TRUE(table->remove(gone.id()));
        sender.send(200, 1000);  // by the host
        kept = table->counters().memory;
        EXPECT_NE(kept, 0u);
        EXPECT_NE(table->explain().find("could not be waited for"), std::string::npos)
            << table->explain();
        device.fail(0);
        const std::uint64_t hits = table->counters().hits;
        // Other lanes, and other buffers, while the device gets round to what was lost.
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            device.hang(false);
        });
        EXPECT_TRUE(comes([&] {
            sender.send(8, 1000);
            return table->counters().hits > hits + 200;
        })) << table->explain();
        later.join();
    }
    EXPECT_TRUE(device.violations().empty()) << *device.violations().begin();
}

// The table goes while the device is still at it.
TEST_P(Lost, ItsTableMayGo) {
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        std::optional<SaFiller> filler(*SaFiller::open(engine, {.lanes = 2, .patience_ms = 20}));
        std::optional<SaTable> table(*SaTable::open(*filler, ahead()));
        Random random(6);
        Sender sender(*table, random, {});
        lose(*table, sender, 1 << 30);
        table.reset();
        filler.reset();
        EXPECT_NE(device.live(), 0u);
    }
    device.hang(false);
    EXPECT_TRUE(device.violations().empty()) << *device.violations().begin();
}

// Once the device says that it has ended all is as if it had only failed.
TEST_P(Lost, WhatIsWaitedForLaterComesBack) {
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        SaTable table = *SaTable::open(engine, ahead());
        Random random(7);
        Sender sender(table, random, {});
        lose(table, sender, 3);  // it was asked twice more
        EXPECT_EQ(device.given_up(), 3);
        device.hang(false);
        const std::uint64_t hits = table.counters().hits;
        EXPECT_TRUE(comes([&] {
            sender.send(8, 1000);
            return table.counters().hits > hits + 100;
        })) << table.explain();
        EXPECT_EQ(table.explain().find("could not be waited for"), std::string::npos)
            << table.explain();
    }
    expect_clean(device);
}

// What the kernel says of this process's threads whose name begins so: where they may run.
std::vector<std::string> processors_of(const std::string& name) {
    std::vector<std::string> found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(task.path() / "status");
        std::string line, its;
        while (std::getline(status, line)) {
            if (line.starts_with("Name:")) its = line.substr(line.find_last_of('\t') + 1);
            if (line.starts_with("Cpus_allowed_list:") && its.starts_with(name))
                found.push_back(line.substr(line.find_last_of('\t') + 1));
        }
    }
    return found;
}

TEST(Threads, RunWhereTheyAreToldNotWhereTheirOpenerIsBound) {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(static_cast<std::size_t>(cpu), &all)) cpus.push_back(cpu);
    if (cpus.size() < 2) GTEST_SKIP() << "one processor";
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    const auto main_threads = processors_of("keystream_fault");  // as much of a name as there is
    ASSERT_FALSE(main_threads.empty());
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(cpus[0]), &one);
        ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
        {
            SaFiller filler = *SaFiller::open(engine, {.threads = 2});
            const auto where = processors_of("dael-filler-");
            EXPECT_EQ(where, std::vector(2, main_threads.front()));
        }
        SaFiller filler = *SaFiller::open(engine, {.cpus = {cpus[1]}});
        EXPECT_EQ(processors_of("dael-filler-"), std::vector{std::to_string(cpus[1])});
    }).join();
    EXPECT_EQ(SaFiller::open(engine, {.cpus = {-1}}).code(), Code::invalid_argument);
    EXPECT_EQ(SaFiller::open(engine, {.cpus = {CPU_SETSIZE}}).code(), Code::invalid_argument);
    if (!CPU_ISSET(CPU_SETSIZE - 1, &all)) {
        EXPECT_EQ(SaFiller::open(engine, {.cpus = {CPU_SETSIZE - 1}}).code(),
                  Code::invalid_argument);
    }
}

}  // namespace
