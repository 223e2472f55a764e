// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kept.hpp"

#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "backends/cuda/context.hpp"
#include "backends/cuda/error.hpp"
#include "core/guard.hpp"
#include "core/known_answers.hpp"

namespace dael::cuda {
namespace {

// What is to be given back later, since it came while a known answer was asked.
struct GivenBack {
    int kept_at;  // the device
    void* memory;
    bool pinned;
    GivenBack* next;
};

// Lists by themselves, there from the beginning: who comes here may have no memory left and nobody
// to say so to. To the end of the process: static destructors may still need them.
struct All {
    std::mutex mutex;  // guards the lists
    Kept* kept = nullptr;
    std::atomic<std::size_t> count{0};
    GivenBack* asked_with = nullptr;
    std::atomic<bool> any_asked{false};
};
constinit All all;
static_assert(std::is_trivially_destructible_v<All>);

// Those of a device go from one list to another.
template <class T>
T* take(T*& list, int device) noexcept {
    T* taken = nullptr;
    for (T** at = &list; *at;) {
        T* const one = *at;
        if (one->kept_at != device) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = std::exchange(taken, one);
    }
    return taken;
}

bool has_settled(Kept& what, bool waits) noexcept {
    const core::Uncancelled whole;
    return bool(core::guarded([&] { return what.settle(waits); }));
}

void keep(int device, std::unique_ptr<Kept> what) noexcept {
    const std::lock_guard lock(all.mutex);
    what->kept_at = device;
    what->next = all.kept;
    all.kept = what.release();
    ++all.count;
}

void release(void* memory, bool pinned) noexcept {
    forget_failure(pinned ? cudaFreeHost(memory) : cudaFree(memory));
}

}  // namespace

void end_or_keep(int device, std::unique_ptr<Kept> what) noexcept {
    if (what && !has_settled(*what, true)) keep(device, std::move(what));
}

std::size_t retry_kept(int device) noexcept {
    if (all.count == 0) return 0;
    Kept* list = nullptr;
    {
        const std::lock_guard lock(all.mutex);
        list = take(all.kept, device);
        for (const Kept* one = list; one; one = one->next) --all.count;
    }
    // Without the lock: what ends may end others.
    std::size_t left = 0;
    while (list) {
        std::unique_ptr<Kept> what(list);
        list = what->next;
        if (has_settled(*what, false)) continue;
        keep(device, std::move(what));
        ++left;
    }
    return left;
}

void give_back(int device, void* memory, bool pinned) noexcept {
    if (core::asking()) {
        auto* const later = new (std::nothrow) GivenBack{device, memory, pinned, nullptr};
        if (!later) return;  // better lost than waited for
        const std::lock_guard lock(all.mutex);
        later->next = std::exchange(all.asked_with, later);
        all.any_asked = true;
        return;
    }
    GivenBack* list = nullptr;
    if (all.any_asked) {
        const std::lock_guard lock(all.mutex);
        list = take(all.asked_with, device);
        all.any_asked = all.asked_with != nullptr;
    }
    const CurrentDevice current(device);
    const BesideCaptures beside;
    while (list) {
        const std::unique_ptr<GivenBack> one(list);
        list = one->next;
        release(one->memory, one->pinned);
    }
    release(memory, pinned);
}

bool wait_fails() noexcept {
    if (failing_waits.load(std::memory_order_relaxed) <= 0) return false;
    failing_waits.fetch_sub(1);
    return true;
}

}  // namespace dael::cuda
