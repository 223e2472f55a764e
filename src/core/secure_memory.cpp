// SPDX-License-Identifier: Apache-2.0
#include "core/secure_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include <daelstrom/key.hpp>

namespace dael {

void wipe(void* memory, std::size_t size) noexcept {
    if (size != 0) explicit_bzero(memory, size);
}

namespace core {
namespace {

std::size_t whole_pages(std::size_t size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (size + page - 1) / page * page;
}

}  // namespace

void* secure_allocate(std::size_t size, Swapping swapping) noexcept {
    const std::size_t pages = whole_pages(size);
    void* memory = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    // In this order, neighbours become one mapping of the kernel's, whose number is limited: once
    // locked, pages are present, and present pages of different mappings are not joined any more.
    (void)madvise(memory, pages, MADV_DONTDUMP);
    // Best effort: an unprivileged process may lock little, and a key that can be used but might be
    // swapped serves its owner better than none.
    if (swapping == Swapping::prevented) (void)mlock(memory, pages);
    return memory;
}

void secure_release(void* memory, std::size_t size) noexcept {
    wipe(memory, size);
    munmap(memory, whole_pages(size));
}

}  // namespace core
}  // namespace dael
