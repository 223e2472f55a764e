// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/kept.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace dael::opencl {
namespace {

struct Kept {
    std::vector<Ends> until;
    std::vector<SecretBuffer> what;

    bool is_over() const {
        return std::ranges::all_of(until, [](const Ends& ends) { return ends.are_over(); });
    }
};

// To the end of the process: static destructors may still need it.
struct AllKept {
    std::mutex mutex;  // guards the list
    std::vector<Kept> list;
    std::atomic<std::size_t> count{0};
};
AllKept& all_kept() {
    static AllKept& all = *new AllKept;
    return all;
}

}  // namespace

void keep(std::vector<Ends> until, std::vector<SecretBuffer> what) noexcept {
    if (after_fork()) return;  // where nothing of it can be reached
    AllKept& all = all_kept();
    const std::lock_guard lock(all.mutex);
    try {
        all.list.reserve(all.list.size() + 1);
    } catch (...) {  // no room to remember it: better lost than given back too early
        for (SecretBuffer& buffer : what) buffer.lose();
        return;
    }
    all.list.push_back({std::move(until), std::move(what)});
    ++all.count;
}

std::size_t retry_kept() noexcept {
    AllKept& all = all_kept();
    if (all.count == 0 || after_fork()) return 0;
    std::vector<Kept> over;  // goes after the lock does, since it waits for its wiping
    const std::lock_guard lock(all.mutex);
    try {
        over.reserve(all.list.size());
    } catch (...) {
        return all.list.size();  // another time
    }
    std::erase_if(all.list, [&](Kept& kept) {
        if (!kept.is_over()) return false;
        over.push_back(std::move(kept));
        return true;
    });
    return all.count = all.list.size();
}

}  // namespace dael::opencl
