// SPDX-License-Identifier: Apache-2.0
// What the backend does for want of memory, in functions that cannot say so. No GPU is needed.
#include <gtest/gtest.h>

#include <new>

#include "backends/cuda/context.hpp"
#include "backends/cuda/kept.hpp"
#include "support/short_memory.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr int kNone = 1000, kOther = 1001;  // GPUs that there are not

enum class Wait { fails, lacks_memory, ends };

struct Thing final : cuda::Kept {
    Thing(Wait& its_wait, int& count) : wait(its_wait), ended(count) {}
    ~Thing() override { ++ended; }
    Result<> settle(bool) override {
        if (wait == Wait::lacks_memory) throw std::bad_alloc();
        if (wait == Wait::fails) return Error{Code::device, "no"};
        return {};
    }
    Wait& wait;
    int& ended;
};

// The first use there is, in this process.
TEST(CudaMemory, WhatCouldNotBeWaitedForNeedsNone) {
    if (!kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    for (const Wait how : {Wait::fails, Wait::lacks_memory}) {
        Wait wait = how;
        int ended = 0;
        auto one = std::make_unique<Thing>(wait, ended), two = std::make_unique<Thing>(wait, ended),
             other = std::make_unique<Thing>(wait, ended);
        const long live = live_allocations();
        fail_allocation(1);
        EXPECT_EQ(cuda::retry_kept(kNone), 0u);
        cuda::end_or_keep(kNone, std::move(one));
        cuda::end_or_keep(kNone, std::move(two));
        cuda::end_or_keep(kOther, std::move(other));
        EXPECT_EQ(cuda::retry_kept(kNone), 2u);
        EXPECT_EQ(ended, 0);
        wait = Wait::ends;
        EXPECT_EQ(cuda::retry_kept(kNone), 0u);
        EXPECT_EQ(ended, 2);
        EXPECT_EQ(cuda::retry_kept(kOther), 0u);
        EXPECT_FALSE(fail_allocation(0));  // none of it took any
        EXPECT_EQ(ended, 3);
        EXPECT_EQ(live_allocations(), live - 3);
    }
}

// Of GPUs that lack of memory hides for now nothing is remembered.
TEST(CudaMemory, GpusAreLookedForAgain) {
    if (!kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    (void)cuda::has_context(0);  // with memory enough for the driver's own
    fail_here_alone(true);
    for (int failing = 1; failing <= 3; ++failing) {
        fail_allocation(failing);
        const cuda::CurrentDevice without(0);
        fail_allocation(0);
    }
    const bool there = cuda::CurrentDevice(0).works();
    EXPECT_EQ(there, cuda::has_context(0));
    if (!there)
        GTEST_SKIP() << "no GPU is here: " << cuda::CurrentDevice(0).result().error().message;
}

}  // namespace
