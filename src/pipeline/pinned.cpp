// SPDX-License-Identifier: Apache-2.0
// allocate_pinned(): memory that a device pins, or plain pages where there is no device. The device
// is one that this process uses already, where there is one: pinning starts the device that it goes
// through, and one memory serves them all.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include <daelstrom/memory.hpp>

#include "core/device.hpp"
#include "core/guard.hpp"
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
// memory may be released at any time, even by static destructors.
core::Device* pinning_device() {
    static core::Backend* const backend = choose_device();
    return backend ? backend->device() : nullptr;
}

}  // namespace

void* allocate_pinned(std::size_t size) noexcept try {
    const core::Uncancelled whole;
    if (size > SIZE_MAX - 2 * kHeader) return nullptr;
    core::Device* device = pinning_device();
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
    if (core::Device* device = static_cast<Header*>(start)->device)
        device->memory().release_pinned(start);
    else
        std::free(start);
}

}  // namespace dael
