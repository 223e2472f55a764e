// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/kept.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace dael::opencl {
namespace {

struct Kept {
    std::vector<Ends> until;
    std::vector<SecretBuffer> what;
    Kept* next;

    bool is_over() const {
        return std::ranges::all_of(until, [](const Ends& ends) { return ends.are_over(); });
    }
};

// A list by itself, there from the beginning: who comes here may have no memory left and nobody to
// say so to, and no thread sets it up that a child of fork() would wait for. To the end of the
// process: static destructors may still need it.
struct AllKept {
    std::mutex mutex;  // guards the list
    Kept* first = nullptr;
    std::atomic<std::size_t> count{0};
};
constinit AllKept all;
static_assert(std::is_trivially_destructible_v<AllKept>);

}  // namespace

void keep(std::vector<Ends> until, std::vector<SecretBuffer> what) noexcept {
    if (after_fork()) return;  // where nothing of it can be reached
    auto* const kept = new (std::nothrow) Kept{std::move(until), std::move(what), nullptr};
    if (!kept) {  // no room to remember it: better lost than given back too early
        for (SecretBuffer& buffer : what) buffer.lose();
        return;
    }
    const std::lock_guard lock(all.mutex);
    kept->next = std::exchange(all.first, kept);
    ++all.count;
}

std::size_t retry_kept() noexcept {
    if (all.count == 0 || after_fork()) return 0;
    Kept* over = nullptr;
    std::size_t left = 0;
    {
        const std::lock_guard lock(all.mutex);
        for (Kept** at = &all.first; *at;) {
            if (!(*at)->is_over()) {
                at = &(*at)->next;
                continue;
            }
            Kept* const next = std::exchange((*at)->next, over);
            over = std::exchange(*at, next);
            --all.count;
        }
        left = all.count;
    }
    // Without the lock, since each waits for its wiping.
    while (over) delete std::exchange(over, over->next);
    return left;
}

}  // namespace dael::opencl
