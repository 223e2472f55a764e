// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/address_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "backends/opencl/room.hpp"

namespace dael::opencl {
namespace {

// A page behind the end belongs to nobody, so that no end of a buffer is another's beginning.
std::size_t reserved(std::size_t size) {
    return size + 4096;
}

void give_back(std::uintptr_t begin, std::size_t size) {
    (void)munmap(reinterpret_cast<void*>(begin), reserved(size));
}

}  // namespace

AddressSpace::~AddressSpace() {
    for (const auto& [begin, range] : ranges_)
        if (range.buffer()) give_back(begin, range.size);
}

Result<void*> AddressSpace::add(cl::Buffer buffer, std::size_t size) {
    if (after_fork()) return fork_failure();
    auto room = room_in(ranges_);
    void* const begin = mmap(nullptr, reserved(size), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        return Error{Code::out_of_memory, "opencl: no " + std::to_string(size) +
                                              " bytes of address space are left for a buffer"};
    const std::unique_lock lock(mutex_);
    // Under two addresses, work in place would not be seen to be that.
    if (std::ranges::any_of(ranges_,
                            [&](const auto& range) { return range.second.buffer() == buffer(); })) {
        give_back(reinterpret_cast<std::uintptr_t>(begin), size);
        return Error{Code::invalid_argument, "opencl: this buffer is adopted already"};
    }
    room.key() = reinterpret_cast<std::uintptr_t>(begin);
    room.mapped() = {size, std::move(buffer)};
    put(ranges_, std::move(room));
    return begin;
}

Result<> AddressSpace::add_shared(void* memory, std::size_t size) {
    if (after_fork()) return fork_failure();
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    if (begin == 0 || begin % 16 != 0 || size == 0)
        return Error{Code::invalid_argument,
                     "opencl: shared memory must begin at a multiple of 16 and have a size"};
    const std::unique_lock lock(mutex_);
    const auto next = ranges_.lower_bound(begin);
    if (around(begin) != ranges_.end() || (next != ranges_.end() && next->first - begin < size))
        return Error{Code::invalid_argument, "opencl: this memory is known already"};
    ranges_[begin] = {size, {}};
    return {};
}

bool AddressSpace::remove(const void* address) noexcept {
    if (after_fork()) return false;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::unique_lock lock(mutex_);
    const auto found = ranges_.find(begin);
    if (found == ranges_.end()) return false;
    if (found->second.buffer()) give_back(begin, found->second.size);
    ranges_.erase(found);
    return true;
}

AddressSpace::Ranges::const_iterator AddressSpace::around(std::uintptr_t address) const {
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return ranges_.end();
    --after;
    return address - after->first < after->second.size ? after : ranges_.end();
}

Result<Region> AddressSpace::find(const void* address, std::uint64_t size) const {
    if (after_fork()) return fork_failure();
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::shared_lock lock(mutex_);
    const auto found = around(at);
    if (found == ranges_.end())
        return Error{
            Code::invalid_argument,
            "opencl: this address is not memory of the device; allocate it there, or adopt "
            "the buffer"};
    const std::uint64_t offset = at - found->first;
    if (size > found->second.size - offset)
        return Error{Code::invalid_argument, "opencl: " + std::to_string(size) +
                                                 " bytes reach beyond the end of the buffer"};
    const AddressRange& range = found->second;
    return Region{range.buffer, range.buffer() ? nullptr : reinterpret_cast<void*>(found->first),
                  offset};
}

bool AddressSpace::holds(const void* address) const {
    if (after_fork()) return false;
    const std::shared_lock lock(mutex_);
    return around(reinterpret_cast<std::uintptr_t>(address)) != ranges_.end();
}

}  // namespace dael::opencl
