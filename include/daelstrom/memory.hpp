// SPDX-License-Identifier: Apache-2.0
// Where data lies is part of its type: host spans and device spans cannot be mixed up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include <daelstrom/export.h>

namespace dael {

// Host memory: any readable or writable bytes of this process.
using HostIn = std::span<const std::uint8_t>;
using HostOut = std::span<std::uint8_t>;

// Memory of the engine's device, as raw pointers: cudaMalloc, a framework's tensor, ...
struct DeviceIn {
    const void* data = nullptr;
    std::size_t size = 0;  // bytes
};
struct DeviceOut {
    void* data = nullptr;
    std::size_t size = 0;  // bytes
    operator DeviceIn() const noexcept { return {data, size}; }
};

// An order of work on a device. For CUDA, `handle` is a cudaStream_t; null is the default stream.
struct Stream {
    void* handle = nullptr;
};

// Page-locked host memory, which devices copy to and from at full speed and asynchronously. Without
// a device it is plain memory. The first call of a process chooses the device that locks: one that
// the process uses already (of CUDA's the one that is current for the thread, before others), else
// the first there is, which it starts; so where there are several, open the engine on yours first.
// Threads: both from any number; nullptr means that memory ran out. fork(): a child has a copy of
// what was locked, which it may release; what it allocates is plain memory.
DAEL_API void* allocate_pinned(std::size_t size) noexcept;
DAEL_API void release_pinned(void* memory) noexcept;

// For standard containers: std::vector<std::uint8_t, dael::pinned_allocator<std::uint8_t>>.
template <class T>
struct pinned_allocator {
    using value_type = T;
    pinned_allocator() = default;
    template <class U>
    pinned_allocator(const pinned_allocator<U>&) noexcept {}
    T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
        if (void* memory = allocate_pinned(count * sizeof(T))) return static_cast<T*>(memory);
        throw std::bad_alloc();
    }
    void deallocate(T* memory, std::size_t) noexcept { release_pinned(memory); }
    template <class U>
    bool operator==(const pinned_allocator<U>&) const noexcept {
        return true;
    }
};

}  // namespace dael
