// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kept.hpp"

#include <map>
#include <mutex>
#include <vector>

namespace dael::cuda {
namespace {

// To the end of the process: static destructors may still need it.
struct All {
    std::mutex mutex;  // guards the lists
    std::map<int, std::vector<std::unique_ptr<Kept>>> by_device;
    std::atomic<std::size_t> count{0};
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

cudaError_t after_wait(cudaError_t status) noexcept {
    if (failing_waits.load(std::memory_order_relaxed) > 0) {
        failing_waits.fetch_sub(1);
        return cudaErrorUnknown;
    }
    return status;
}

}  // namespace dael::cuda
