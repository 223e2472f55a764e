// SPDX-License-Identifier: Apache-2.0
// Whether fork() came in between, and a lock that a child of it never finds held.
#pragma once

#include <atomic>
#include <cstdint>

namespace dael::core {

// A number, 1 or more, that a process has to itself among those that it was forked from and those
// that are forked from it: by fork(), _Fork(), or clone() with memory of its own. Every launch
// asks, and getpid() is a call to the system, which takes a tenth as long as a launch, and says the
// same in a new namespace. A snapshot of a machine or a process that is gone on with twice is no
// new process, here or anywhere. Before Linux 4.14 fork() alone is noticed.
std::uint32_t this_process() noexcept;

// A lock for what takes long, such as foreign code, and for what is one's own: who finds it held by
// a thread that is not in this process takes it over. What it guards must be whole at any moment,
// or say that it is not. For std::lock_guard.
class ProcessLock {
  public:
    void lock() noexcept {
        const std::uint32_t mine = this_process();
        for (;;) {
            std::uint32_t holder = holder_.load();
            if (holder == mine)
                holder_.wait(mine);
            else if (holder_.compare_exchange_strong(holder, mine))
                return;  // from nobody, or from a thread that stayed in another process
        }
    }
    void unlock() noexcept {
        holder_.store(0);
        holder_.notify_one();
    }

  private:
    std::atomic<std::uint32_t> holder_{0};  // the process of the thread that has it
};

}  // namespace dael::core
