// SPDX-License-Identifier: Apache-2.0
// A mutex that a child of fork() finds free, and what it guards as it is between two calls: fork()
// waits for whoever has it. For mutexes that are held for no time, with nothing of ours taken under
// them, and that are `constinit`, since fork() may come at any time.
//
// fork() takes what was registered last first. So this is called by a [[gnu::constructor(101)]],
// before constructors of others: a lock of a caller's, who calls us with it held, is taken before.
#pragma once

#include <pthread.h>

namespace dael::core {

template <auto& mutex>
void hold_over_fork() noexcept {
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
}

}  // namespace dael::core
