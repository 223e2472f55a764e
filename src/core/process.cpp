// SPDX-License-Identifier: Apache-2.0
#include "core/process.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace dael::core {
namespace {

using Number = std::atomic<std::uint32_t>;

constinit Number last{1};     // the number of this process, or of the one that it was forked from
constinit Number by_hand{1};  // the same, where pthread_atfork() has to tell
constinit Number by_pid{0};   // not looked at: where neither can be had

// Memory of the process that the kernel empties in every copy of it.
Number* wiped_on_fork() noexcept {
#ifdef MADV_WIPEONFORK
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const memory =
        mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (madvise(memory, page, MADV_WIPEONFORK) == 0) return new (memory) Number{1};
    (void)munmap(memory, page);
#endif
    return nullptr;
}

// Where the number stands. Not a static of a function's: a child that is forked while a thread sets
// one up would wait for that thread. Of two that set it up at once one has a page for nothing.
Number* place() noexcept {
    constinit static std::atomic<Number*> chosen{nullptr};
    if (Number* const there = chosen.load(std::memory_order_acquire)) [[likely]]
        return there;
    Number* mine = wiped_on_fork();
    if (!mine) {
        const auto in_child = [] { by_hand.store(last.fetch_add(1) + 1); };
        mine = pthread_atfork(nullptr, nullptr, in_child) == 0 ? &by_hand : &by_pid;
    }
    Number* first = nullptr;
    return chosen.compare_exchange_strong(first, mine) ? mine : first;
}

}  // namespace

std::uint32_t this_process() noexcept {
    Number* const at = place();
    if (at == &by_pid) return static_cast<std::uint32_t>(getpid());
    if (const std::uint32_t mine = at->load(std::memory_order_relaxed)) [[likely]]
        return mine;
    // A new process. Whichever of its threads is first gives it its number.
    std::uint32_t nobody = 0;
    const std::uint32_t fresh = last.fetch_add(1) + 1;
    return at->compare_exchange_strong(nobody, fresh) ? fresh : nobody;
}

}  // namespace dael::core
