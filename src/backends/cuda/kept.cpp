// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kept.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cuda/context.hpp"
#include "backends/cuda/error.hpp"
#include "core/known_answers.hpp"

namespace dael::cuda {
namespace {

// To the end of the process: static destructors may still need it.
struct All {
    std::mutex mutex;  // guards the lists
    std::map<int, std::vector<std::unique_ptr<Kept>>> by_device;
    std::atomic<std::size_t> count{0};
    std::map<int, std::vector<std::pair<void*, bool>>> asked_with;  // memory, and whether pinned
    std::atomic<bool> any_asked{false};
};
All& all() {
    static All* const all = new All;
    return *all;
}

void keep(int device, std::unique_ptr<Kept> what) noexcept {
    const std::lock_guard lock(all().mutex);
    try {
        all().by_device[device].push_back(std::move(what));
        ++all().count;
    } catch (...) {
        (void)what.release();  // no room to remember it: better lost than given back too early
    }
}

}  // namespace

void end_or_keep(int device, std::unique_ptr<Kept> what) noexcept {
    if (what && !what->settle(true)) keep(device, std::move(what));
}

std::size_t retry_kept(int device) noexcept {
    if (all().count == 0) return 0;
    std::vector<std::unique_ptr<Kept>> list;
    {
        const std::lock_guard lock(all().mutex);
        const auto found = all().by_device.find(device);
        if (found == all().by_device.end()) return 0;
        list.swap(found->second);
        all().count -= list.size();
    }
    // Without the lock: what ends may end others.
    std::size_t left = 0;
    for (auto& what : list) {
        if (what->settle(false)) continue;
        keep(device, std::move(what));
        ++left;
    }
    return left;
}

void give_back(int device, void* memory, bool pinned) noexcept {
    const auto release = [](void* what, bool is_pinned) {
        forget_failure(is_pinned ? cudaFreeHost(what) : cudaFree(what));
    };
    std::vector<std::pair<void*, bool>> list;
    if (core::asking() || all().any_asked) {
        const std::lock_guard lock(all().mutex);
        try {
            auto& its = all().asked_with[device];
            if (core::asking()) {
                its.emplace_back(memory, pinned);
                all().any_asked = true;
                return;
            }
            list.swap(its);
        } catch (...) {  // no memory to remember it: it is waited for
        }
    }
    const CurrentDevice current(device);
    const BesideCaptures beside;
    for (const auto& [what, is_pinned] : list) release(what, is_pinned);
    release(memory, pinned);
}

bool wait_fails() noexcept {
    if (failing_waits.load(std::memory_order_relaxed) <= 0) return false;
    failing_waits.fetch_sub(1);
    return true;
}

}  // namespace dael::cuda
