// SPDX-License-Identifier: Apache-2.0
// Sets of slots: whose turn it is, what comes back where memory runs out or a wait fails, what is
// kept and what trim() wipes.
#include "pipeline/slots.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "pipeline/engine_state.hpp"
#include "support/bytes.hpp"
#include "support/child.hpp"
#include "support/host_device.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using pipeline::SlotNeeds;
using pipeline::SlotPool;

// Booked as slots times capacity times four; with neither staging nor results it takes a quarter.
SlotNeeds needs(std::size_t capacity, int slots = 1) {
    return {.capacity = capacity, .least = capacity, .slots = slots, .out = false};
}

// A large call waits for all that are before it, and for none that come later: as long as it
// waits, they do.
TEST(Slots, WhoComesLaterWaitsBehindWhoWaits) {
    HostDevice device({.memory = std::uint64_t{4} << 30});
    {
        SlotPool pool(device);
        std::optional<SlotPool::Loan> first(*pool.acquire(needs(1 << 20)));
        std::atomic<int> order{0};
        std::atomic<int> large_at{-1}, small_at{-1};
        // More than all may have together: it comes when nothing is out.
        std::thread large([&] {
            auto set = pool.acquire(needs(std::size_t{600} << 20));
            ASSERT_TRUE(set) << set.error().message;
            large_at = order++;
        });
        while (pool.waiting() != 1) std::this_thread::yield();
        std::thread small([&] {
            auto set = pool.acquire(needs(1 << 20));
            ASSERT_TRUE(set);
            small_at = order++;
        });
        while (pool.waiting() != 2) std::this_thread::yield();
        EXPECT_EQ(order, 0);
        first.reset();
        large.join();
        small.join();
        EXPECT_LT(large_at, small_at);
    }
    expect_clean(device);
}

// What fails while a set is provided gives its room back, whatever it is.
TEST(Slots, AFailureLeavesNoRoomTaken) {
    for (const char* call : {"create_stream", "create_event", "allocate"}) {
        HostDevice device({.fail_at = 1, .fail_call = call});
        {
            SlotPool pool(device);
            EXPECT_EQ(pool.acquire(needs(4096)).code(), Code::device) << call;
            EXPECT_EQ(pool.used(), 0u) << call;
            EXPECT_TRUE(pool.acquire(needs(4096)));
        }
        expect_clean(device);
    }
    HostDevice full({.memory = 8192});
    {
        SlotPool pool(full);
        EXPECT_EQ(pool.acquire(needs(1 << 20)).code(), Code::out_of_memory);
        EXPECT_EQ(pool.used(), 0u);
    }
    expect_clean(full);
}

TEST(Slots, WhatIsIdleIsKeptUntilItIsTrimmed) {
    HostDevice device;
    {
        SlotPool pool(device);
        SlotNeeds staged = needs(64 << 10, 2);
        staged.in_staging = true;
        {
            auto set = pool.acquire(staged);
            ASSERT_TRUE(set);
            std::memset((*set)->slots()[0].in_staging, 0x5a, 64 << 10);
            set->went_well();
        }
        EXPECT_GT(device.live(), 0u);
        pool.trim();  // the device made of threads sees to it that it is wiped
        EXPECT_EQ(device.live(), 0u);
        pool.trim();
        EXPECT_TRUE(pool.acquire(staged));
    }
    expect_clean(device);
}

// Memory that the device may still read and write stays: it is neither wiped nor released.
TEST(Slots, WhatCannotBeWaitedForIsKept) {
    HostDevice device;
    {
        SlotPool pool(device);
        {
            auto set = pool.acquire(needs(64 << 10));
            ASSERT_TRUE(set);
            device.fail(1, "wait for stream", 1000);
        }
        device.fail(0);
        EXPECT_GT(device.live(), 0u);
        EXPECT_EQ(pool.used(), 0u);
        const std::size_t kept = device.live();
        {  // one failure alone is not that
            auto set = pool.acquire(needs(64 << 10));
            ASSERT_TRUE(set);
            device.fail(1, "wait for stream", 1);
        }
        EXPECT_EQ(device.live(), kept);
    }
    EXPECT_TRUE(device.violations().empty());
}

TEST(Slots, AnEngineIsTrimmed) {
    HostDevice device;
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        const Key key = *Key::import(Bytes(16, 1));
        Bytes data(1 << 20);
        ASSERT_TRUE(engine.run({Mode::ctr}, key, {data.data(), data.data(), data.size()}));
        EXPECT_GT(device.live(), 0u);
        expect_in_a_child([&] {
            engine.trim();  // whose devices these are not
            return true;
        });
        engine.trim();
        EXPECT_EQ(device.live(), 0u);
        ASSERT_TRUE(engine.run({Mode::ctr}, key, {data.data(), data.data(), data.size()}));
    }
    expect_clean(device);
}

}  // namespace
