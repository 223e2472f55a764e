// SPDX-License-Identifier: Apache-2.0
// Children that are forked while another thread is inside of what takes long: they go on, and
// wait for nobody who is not there.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

#include <daelstrom/ctr.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/plan.hpp>

#include "core/backend.hpp"
#include "core/process.hpp"
#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/bytes.hpp"
#include "support/child.hpp"
#include "support/figures.hpp"
#include "support/host_device.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using namespace dael::test;

Result<Ran> long_job(Engine& engine, const Key& key) {
    Bytes data(4 << 20);
    return ctr::crypt(engine, key, {}, data, data);
}

TEST(Fork, WhileAnotherThreadStartsTheDevice) {
    std::latch starting(1), forked(1);
    HostDevice device;
    {
        pipeline::Backends hosts;
        hosts.push_back(*core::open_backend("openssl"));
        Engine engine = pipeline::make_auto_engine(
            std::move(hosts),
            [&] {
                starting.count_down();
                forked.wait();  // a driver that takes its time
                pipeline::Backends backends;
                backends.push_back(std::make_unique<HostDeviceBackend>(device));
                return backends;
            },
            {.backend = "auto", .threads = 2}, figures());
        const Key key = *Key::import(Bytes(16, 1));
        std::thread first([&] { EXPECT_EQ(long_job(engine, key)->backend, "threads:0"); });
        starting.wait();
        expect_in_a_child([&] {
            const auto ran = long_job(engine, key);
            const std::uint8_t there = 0;
            return ran && ran->backend == "openssl" &&
                   engine.run({Mode::ctr}, key, {&there, nullptr, 0}, Stream{}).code() !=
                       Code::ok &&
                   engine.backends().size() == 1 && engine.explain({}).options.size() == 1;
        });
        forked.count_down();
        first.join();
        expect_in_a_child([&] { return long_job(engine, key)->backend == "openssl"; });
    }
    expect_clean(device);
}

// A child of an engine that has not started its devices may start its own.
TEST(Fork, BeforeTheDeviceIsStarted) {
    HostDevice* in_child = nullptr;
    pipeline::Backends hosts;
    hosts.push_back(*core::open_backend("openssl"));
    Engine engine = pipeline::make_auto_engine(
        std::move(hosts),
        [&] {
            in_child = new HostDevice;
            pipeline::Backends backends;
            backends.push_back(std::make_unique<HostDeviceBackend>(*in_child));
            return backends;
        },
        {.backend = "auto", .threads = 2}, figures());
    const Key key = *Key::import(Bytes(16, 1));
    expect_in_a_child([&] { return long_job(engine, key)->backend == "threads:0"; });
}

TEST(Fork, EnginesMayBeOpenedInChildrenOfBusyProcesses) {
    if (!kBusyProcessesFork) GTEST_SKIP() << "the sanitizer's allocator has locks of its own";
    std::atomic<bool> stop{false};
    std::thread opening([&] {
        while (!stop) (void)Engine::open({.backend = "openssl"});
    });
    for (int i = 0; i < 20; ++i)
        expect_in_a_child([] { return Engine::open({.backend = "openssl"}) ? true : false; });
    stop = true;
    opening.join();
}

// Whatever locks the parent's threads hold at the moment, the child does all that it may.
TEST(Fork, WhileOthersAreInTheMidstOfEverything) {
    if (!kBusyProcessesFork) GTEST_SKIP() << "the sanitizer's allocator has locks of its own";
    HostDevice device;
    {
        pipeline::Backends hosts;
        hosts.push_back(*core::open_backend("openssl"));
        Engine engine = pipeline::make_auto_engine(
            std::move(hosts),
            [&] {
                pipeline::Backends backends;
                backends.push_back(std::make_unique<HostDeviceBackend>(device));
                return backends;
            },
            {.backend = "auto", .threads = 2}, figures());
        const Key key = *Key::import(Bytes(16, 1));
        KeySet set = *engine.keys(std::span(&key, 1));
        const auto seal = [](Engine& with, const KeySet& keys) {
            Bytes data(100 << 10), tag(16);
            Message m{data.data(), data.data(), data.size(), nullptr, 0, tag.data()};
            Code code = Code::internal;
            return static_cast<bool>(with.run(gcm::sealing(), keys, {&m, 1}, {&code, 1}));
        };
        std::atomic<bool> stop{false};
        std::vector<std::thread> busy;
        const auto over_and_over = [&](auto work) {
            busy.emplace_back([&stop, work] {
                while (!stop) work();
            });
        };
        over_and_over([&] { (void)long_job(engine, key); });
        over_and_over([&] { EXPECT_TRUE(seal(engine, set)); });
        over_and_over([&] {
            KeySet own = *engine.keys(std::span(&key, 1));
            EXPECT_TRUE(seal(engine, own) && own.replace(0, key, {}));
            EXPECT_TRUE(device.wait(Stream{}));  // the set's end comes after the work
        });
        over_and_over([&] { engine.trim(); });
        over_and_over([] { (void)Engine::open({.backend = "openssl"}); });
        for (int i = 0; i < 15; ++i)
            expect_in_a_child([&] {
                const Key other = *Key::import(Bytes(32, 2));
                KeySet own = *engine.keys(std::span(&other, 1));
                Engine opened = *Engine::open({.backend = "openssl", .threads = 2});
                KeySet of_opened = *opened.keys(std::span(&other, 1));
                Bytes data(1000);
                Pieces pieces = *engine.begin({Mode::ctr}, key, {});
                engine.trim();
                return long_job(engine, other) && seal(engine, set) && seal(engine, own) &&
                       own.replace(0, key, {}) && seal(engine, own) && seal(opened, of_opened) &&
                       pieces.update(data, data) && pieces.finish();
            });
        stop = true;
        for (auto& thread : busy) thread.join();
    }
    expect_clean(device);
}

TEST(Process, HasANumberOfItsOwn) {
    const std::uint32_t mine = core::this_process();
    EXPECT_NE(mine, 0u);
    EXPECT_EQ(core::this_process(), mine);
    expect_in_a_child([&] {
        const std::uint32_t childs = core::this_process();
        if (childs == mine || childs == 0 || core::this_process() != childs) return false;
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(core::this_process() != childs && core::this_process() != mine);
        int status = 0;
        return waitpid(grandchild, &status, 0) == grandchild && WEXITSTATUS(status) == 1;
    });
    // One that the C library knows nothing of.
    const auto child =
        static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
    ASSERT_GE(child, 0);
    if (child == 0) _exit(core::this_process() != mine ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(Process, ItsLocksAreNotTheParents) {
    core::ProcessLock lock;
    int inside = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; ++i) {
                const std::lock_guard held(lock);
                ++inside;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(inside, 4000);
    const std::lock_guard held(lock);
    expect_in_a_child([&] {
        const std::lock_guard taken(lock);
        return true;
    });
}

}  // namespace
