// SPDX-License-Identifier: Apache-2.0
// Addresses for memory that has none. OpenCL's buffers are handles, and what is above backends
// takes pointers, adds to them and compares them. So each buffer gets a range of this process's
// address space, reserved so that nothing else lies there and protected so that touching it on the
// host is a fault at once, not a mystery. Shared virtual memory keeps the addresses that it has.
//
// Whoever names memory by address is checked against the ranges: a kernel never sees a buffer that
// it was not given, nor a size beyond its end. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

// Where an address lies, as kernels and copies take it: a buffer, or memory that is shared with the
// device, and the bytes from its beginning. Keeps the buffer, which may be forgotten meanwhile.
struct Region {
    cl::Buffer buffer;
    void* shared = nullptr;
    std::uint64_t offset = 0;

    bool same_memory(const Region& other) const {
        return buffer() == other.buffer() && shared == other.shared;
    }
    // Of memory that is shared.
    void* address() const { return static_cast<char*>(shared) + offset; }
};

class AddressSpace {
  public:
    AddressSpace() = default;
    AddressSpace(const AddressSpace&) = delete;
    ~AddressSpace();

    // Both keep what they are given until it is removed. Errors: out_of_memory; invalid_argument
    // for a buffer that is known, and for shared memory that is not on a multiple of 16, or
    // overlaps what is known.
    Result<void*> add(cl::Buffer buffer, std::size_t size);
    Result<> add_shared(void* memory, std::size_t size);
    // Takes the beginning of a range; false if there is none.
    bool remove(const void* address) noexcept;

    // Errors: invalid_argument where not all of the `size` bytes lie in one range.
    Result<Region> find(const void* address, std::uint64_t size) const;
    bool holds(const void* address) const;

  private:
    struct AddressRange {
        std::size_t size = 0;
        cl::Buffer buffer;  // null: shared memory
    };
    using Ranges = std::map<std::uintptr_t, AddressRange>;
    Ranges::const_iterator around(std::uintptr_t address) const;

    mutable std::shared_mutex mutex_;
    Ranges ranges_;
};

}  // namespace dael::opencl
