// SPDX-License-Identifier: Apache-2.0
// fork() at every lock, one by one: a program that links lock_steps.cpp has pthread's mutexes and
// read-write locks, and the guards of static objects, replaced by ones that stop the thread that
// has just taken a lock at a place where none was taken before. Another thread then forks, and the
// child does what it may. So no lock is found by luck, and nothing of it is in the library.
//
// A lock that the library holds over fork() (pthread_atfork) is met by the fork itself, which waits
// for it: the thread that has it goes on then.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/thorough.hpp"

namespace dael::test {

// Sanitizers have these functions replaced themselves.
inline constexpr bool kLockSteps = !kSanitized;

struct LockSteps {
    int locks = 0;   // each of them at each place that takes it, where a child was forked
    int waited = 0;  // of these, where fork() itself waited for it
    std::vector<std::string> wrong;  // what children did not do, and where their parent was
};

// Runs `work` on a thread of its own, twice and until no lock is passed over that it takes while
// fork() waits, and `child` in a child that is forked at each lock that this takes. `child` answers
// what went wrong, or an empty text; one that hangs ends by a signal. Locks that this program's own
// code takes, the library's among it, and that of shared libraries whose path contains `module`;
// without those that `but` takes.
LockSteps fork_at_each_lock(
    const std::function<void()>& work, const std::function<std::string()>& child,
    const std::string& module = "", const std::function<void()>& but = [] {});

}  // namespace dael::test
