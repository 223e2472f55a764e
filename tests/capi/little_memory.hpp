// SPDX-License-Identifier: Apache-2.0
// Calls of the C interface with little memory: each of their allocations fails in turn. The call
// works, or is DAEL_OUT_OF_MEMORY; nothing leaks; no handle comes out; and the call then works.
#pragma once

#include <gtest/gtest.h>

#include <daelstrom/daelstrom.h>

#include <functional>
#include <string>

#include "support/short_memory.hpp"

namespace dael::test {

// An engine of one backend, without a calibration.
inline dael_engine_options little_engine(const char* backend, int threads) {
    return {.struct_size = sizeof(dael_engine_options),
            .backend = backend,
            .form = nullptr,
            .threads = threads,
            .uncalibrated = 1,
            .chunk = 0,
            .thread_started = nullptr,
            .thread_context = nullptr};
}

// Calls `call` with each allocation failing, until none is left to fail. `call` gives back what it
// gets; `before` is called before each, with memory enough. `right`: what it answers where nothing
// fails.
inline void with_little_memory(
    const std::string& what, const std::function<int()>& call,
    const std::function<void()>& before = [] {}, int right = DAEL_OK) {
    SCOPED_TRACE(what);
    for (int warm = 0; warm < 2; ++warm) {  // what is made once for a thread or the process
        before();
        ASSERT_EQ(call(), right) << dael_last_error();
    }
    for (long nth = 1;; ++nth) {
        ASSERT_LT(nth, 5000) << "no end of allocations";
        bool failed = false;
        // What grows each time leaks; a cache is full one time.
        long live = 0, before_that = 0;
        for (int time = 0; time < 40 && (time < 2 || live > before_that); ++time) {
            before();
            before_that = live_allocations();
            fail_allocation(nth);
            const int status = call();
            failed = fail_allocation(0);
            live = live_allocations();
            if (failed)
                EXPECT_TRUE(status == right || status == DAEL_OUT_OF_MEMORY)
                    << "allocation " << nth << ": " << status << ", " << dael_last_error();
            else
                EXPECT_EQ(status, right) << dael_last_error();
        }
        EXPECT_LE(live, before_that) << "allocation " << nth << " leaks";
        if (!failed || testing::Test::HasFailure()) return;
        before();
        ASSERT_EQ(call(), right) << "after allocation " << nth << ": " << dael_last_error();
    }
}

// After a call that worked, with memory enough: what makes it undone.
template <class Undo>
int then(int status, Undo undo) {
    const MemoryEnough enough;
    if (status == DAEL_OK) {
        EXPECT_EQ(undo(), DAEL_OK) << dael_last_error();
    }
    return status;
}

// A call that makes a handle, which is then freed.
template <class Handle>
void making(const std::string& what, const std::function<int(Handle**)>& make,
            void (*release)(Handle*)) {
    const auto once = [&] {
        Handle* handle = reinterpret_cast<Handle*>(&handle);
        const int status = make(&handle);
        EXPECT_EQ(status == DAEL_OK, handle != nullptr) << what;
        release(handle);
        return status;
    };
    with_little_memory(what, once);
}

}  // namespace dael::test
