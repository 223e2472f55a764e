// SPDX-License-Identifier: Apache-2.0
// What holds in a child of fork().
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dael::test {

// Runs `holds` in a child, which is to find it true. One that waits forever ends by a signal. The
// child's copies of the test's objects are not destroyed, but for what `holds` itself lets go.
template <class Holds>
void expect_in_a_child(Holds holds) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(120);
        _exit(holds() ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace dael::test
