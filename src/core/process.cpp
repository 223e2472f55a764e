// SPDX-License-Identifier: Apache-2.0
#include "core/process.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace dael::core {
namespace {

using Number = std::atomic<std::uint32_t>;

// Memory of the process that the kernel empties in every copy of it.
struct Mark {
    Number* wiped = nullptr;  // null: there is none such here, and pthread_atfork() must do
    bool watched = false;     // by pthread_atfork()
    std::uint32_t pid = 0;    // where neither can be had

    Mark() noexcept {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        void* const memory =
            mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) {
#ifdef MADV_WIPEONFORK
            if (madvise(memory, page, MADV_WIPEONFORK) == 0) wiped = new (memory) Number{1};
#endif
            if (!wiped) (void)munmap(memory, page);
        }
        if (!wiped) watched = pthread_atfork(nullptr, nullptr, [] { last.fetch_add(1); }) == 0;
        if (!wiped && !watched) pid = static_cast<std::uint32_t>(getpid());
    }

    static Number last;  // the number of the process, or of the one that it was forked from
};
constinit Number Mark::last{1};

}  // namespace

std::uint32_t this_process() noexcept {
    static const Mark mark;
    if (mark.wiped) [[likely]] {
        if (const std::uint32_t mine = mark.wiped->load(std::memory_order_relaxed)) return mine;
        // A new process. Whichever of its threads is first gives it its number.
        std::uint32_t nobody = 0;
        const std::uint32_t fresh = Mark::last.fetch_add(1) + 1;
        return mark.wiped->compare_exchange_strong(nobody, fresh) ? fresh : nobody;
    }
    if (mark.watched) return Mark::last.load(std::memory_order_relaxed);
    const auto now = static_cast<std::uint32_t>(getpid());
    return now == mark.pid ? 1 : now + 1;
}

}  // namespace dael::core
