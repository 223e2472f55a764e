// SPDX-License-Identifier: Apache-2.0
// allocate_pinned(): memory that the first device pins, or plain pages where there is no device.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include <daelstrom/memory.hpp>

#include "core/device.hpp"
#include "core/registry.hpp"

namespace dael {
namespace {

// A page in front of each allocation says where it came from; the memory handed out starts on a
// page, as direct file access wants it.
constexpr std::size_t kHeader = 4096;
struct Header {
    core::Device* device;  // null: plain memory
};

// The device that pins, opened by the first allocation and kept until the process ends, since
// memory may be released at any time, even by static destructors.
core::Device* pinning_device() {
    static core::Backend* const backend = [] {
        core::Backend* first = nullptr;
        core::visit_devices([&](const core::BackendEntry& entry, int index, const std::string&) {
            if (auto opened = entry.open({.form = {}, .index = index})) first = opened->release();
            return first != nullptr;
        });
        return first;
    }();
    return backend ? backend->device() : nullptr;
}

}  // namespace

void* allocate_pinned(std::size_t size) noexcept try {
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
    void* start = static_cast<std::byte*>(memory) - kHeader;
    if (core::Device* device = static_cast<Header*>(start)->device)
        device->memory().release_pinned(start);
    else
        std::free(start);
}

}  // namespace dael
