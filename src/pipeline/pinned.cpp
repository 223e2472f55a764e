// SPDX-License-Identifier: Apache-2.0
// allocate_pinned(): memory that a device pins, or plain pages where there is no device. The device
// is one that this process uses already, where there is one: pinning starts the device that it goes
// through, and one memory serves them all.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include <daelstrom/memory.hpp>

#include "core/device.hpp"
#include "core/guard.hpp"
#include "core/process.hpp"
#include "core/registry.hpp"

namespace dael {
namespace {

// A page in front of each allocation says where it came from; the memory handed out starts on a
// page, as direct file access wants it.
constexpr std::size_t kHeader = 4096;
struct Header {
    core::Device* device;  // null: plain memory
};

core::Backend* open_to_pin(const core::BackendEntry& entry, int index) {
    auto opened = entry.open({.form = {}, .index = index});
    return opened ? opened->release() : nullptr;
}

// One in use, else the first that can be opened.
core::Backend* choose_device() {
    core::Backend* chosen = nullptr;
    for (const core::BackendEntry& entry : core::backend_list()) {
        const int index = entry.in_use ? entry.in_use() : -1;
        if (index >= 0) chosen = open_to_pin(entry, index);
        if (chosen) return chosen;
    }
    core::visit_devices([&](const core::BackendEntry& entry, int index, const std::string&) {
        chosen = open_to_pin(entry, index);
        return chosen != nullptr;
    });
    return chosen;
}

// The device that pins, opened by the first allocation and kept until the process ends, since
// memory may be released at any time, even by static destructors. Null in a child that was forked
// from one that had chosen, or was choosing, which takes as long as drivers take to start.
struct Pinning {
    // 0: nobody has chosen; else twice the number of the process that is at it, and one more when
    // it has.
    std::atomic<std::uint32_t> state{0};
    core::Backend* backend = nullptr;

    core::Device* device() {
        const std::uint32_t at_it = 2 * core::this_process();
        for (;;) {
            std::uint32_t now = state.load(std::memory_order_acquire);
            if (now == at_it + 1) return backend ? backend->device() : nullptr;
            if (now == at_it)
                state.wait(now);
            else if (now != 0)
                return nullptr;
            else if (state.compare_exchange_strong(now, at_it))
                break;
        }
        try {
            backend = choose_device();
        } catch (...) {  // no memory to look with: the next one looks again
            state.store(0);
            state.notify_all();
            return nullptr;
        }
        state.store(at_it + 1, std::memory_order_release);
        state.notify_all();
        return backend ? backend->device() : nullptr;
    }
    bool ours() const noexcept {
        return state.load(std::memory_order_acquire) == 2 * core::this_process() + 1;
    }
};
constinit Pinning pinning;

}  // namespace

void* allocate_pinned(std::size_t size) noexcept try {
    const core::Uncancelled whole;
    if (size > SIZE_MAX - 2 * kHeader) return nullptr;
    core::Device* device = pinning.device();
    void* memory = nullptr;
    if (device) {
        if (auto pinned = device->memory().allocate_pinned(kHeader + size))
            memory = *pinned;
        else
            device = nullptr;
    }
    if (!memory) memory = std::aligned_alloc(kHeader, (size + 2 * kHeader - 1) / kHeader * kHeader);
    if (!memory) return nullptr;
    new (memory) Header{device};
    return static_cast<std::byte*>(memory) + kHeader;
} catch (...) {
    return nullptr;
}

void release_pinned(void* memory) noexcept {
    if (!memory) return;
    const core::Uncancelled whole;
    void* start = static_cast<std::byte*>(memory) - kHeader;
    core::Device* const device = static_cast<Header*>(start)->device;
    if (!device)
        std::free(start);
    else if (pinning.ours())
        device->memory().release_pinned(start);
    // Else a parent's: a copy of its content, which goes with the process.
}

}  // namespace dael
