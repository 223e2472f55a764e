// SPDX-License-Identifier: Apache-2.0
// Callbacks of C++ programs that use the C interface: what they throw becomes a status, and a
// thread that is cancelled in one unwinds.
#include <daelstrom/daelstrom.h>
#include <gtest/gtest.h>

#include <new>
#include <string>

#include "support/cancelled.hpp"

namespace {

TEST(CallbacksOfC, WhateverTheyThrowBecomesAStatus) {
    EXPECT_EQ(dael_list_backends([](void*, const dael_backend*) { throw 7; }, nullptr),
              DAEL_INTERNAL);
    EXPECT_NE(std::string(dael_last_error()), "");
    EXPECT_EQ(
        dael_list_backends([](void*, const dael_backend*) { throw std::bad_alloc(); }, nullptr),
        DAEL_OUT_OF_MEMORY);
    EXPECT_NE(std::string(dael_last_error()), "") << "out of memory has its words too";
}

TEST(CallbacksOfC, ACancelledThreadUnwinds) {
    EXPECT_TRUE(dael::test::cancelled([] {
        (void)dael_list_backends([](void*, const dael_backend*) { dael::test::cancel_me(); },
                                 nullptr);
    }));
}

}  // namespace
