// SPDX-License-Identifier: Apache-2.0
// Memory that runs out while something is made that a process makes once.
#pragma once

#include <unistd.h>

#include "support/child.hpp"
#include "support/short_memory.hpp"

namespace dael::test {

// Calls holds(nth, failed) in children of their own, for each allocation, until none is left to
// fail. It lets the nth fail and sets whether that has, and is to return true.
template <class Holds>
void expect_in_children_with_little_memory(Holds holds) {
    bool failed = true;
    for (long nth = 1; failed; ++nth) {
        ASSERT_LT(nth, 1000) << "no end of allocations";
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        expect_in_a_child([&] {
            bool its = false;
            const bool held = holds(nth, its);
            return write(ends[1], &its, 1) == 1 && held;
        });
        close(ends[1]);
        ASSERT_EQ(read(ends[0], &failed, 1), 1);
        close(ends[0]);
        ASSERT_FALSE(testing::Test::HasFailure()) << "allocation " << nth;
    }
}

}  // namespace dael::test
