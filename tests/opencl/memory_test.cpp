// SPDX-License-Identifier: Apache-2.0
// What the backend does for want of memory, in functions that cannot say so. No driver is needed.
#include <gtest/gtest.h>

#include "backends/opencl/kept.hpp"
#include "support/short_memory.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// The first use there is, in this process.
TEST(OpenClMemory, WhatCouldNotBeWaitedForNeedsNone) {
    if (!kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    fail_allocation(1);
    EXPECT_EQ(opencl::retry_kept(), 0u);
    EXPECT_FALSE(fail_allocation(1));  // it took none
    opencl::keep({}, {});              // and this is lost where there is none
    EXPECT_TRUE(fail_allocation(0));
    EXPECT_EQ(opencl::retry_kept(), 0u);
    const long live = live_allocations();
    opencl::keep({}, {});
    opencl::keep({}, {});
    EXPECT_EQ(live_allocations(), live + 2);
    EXPECT_EQ(opencl::retry_kept(), 0u);
    EXPECT_EQ(live_allocations(), live);
}

}  // namespace
