// SPDX-License-Identifier: Apache-2.0
#include "support/short_memory.hpp"

#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> countdown{0}, live{0};

std::atomic<bool> alone{false};
thread_local bool here = false;
std::atomic<int> enough{0};

bool fails() noexcept {
    if (enough.load(std::memory_order_relaxed) != 0) return false;
    if (alone.load(std::memory_order_relaxed) && !here) return false;
    long left = countdown.load(std::memory_order_relaxed);
    while (left > 0 && !countdown.compare_exchange_weak(left, left == 1 ? -1 : left - 1)) {
    }
    return left == 1;
}

void* counted(std::size_t size, std::size_t alignment) noexcept {
    if (fails()) return nullptr;
    size = size != 0 ? size : 1;
    void* const memory =
        alignment == 0
            ? std::malloc(size)
            : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (memory) ++live;
    return memory;
}

void released(void* memory) noexcept {
    if (memory) --live;
    std::free(memory);
}

void* crypto_allocate(std::size_t size, const char*, int) {
    return size != 0 ? counted(size, 0) : nullptr;
}
void* crypto_reallocate(void* memory, std::size_t size, const char*, int) {
    if (!memory) return crypto_allocate(size, nullptr, 0);
    if (size == 0) {
        released(memory);
        return nullptr;
    }
    return fails() ? nullptr : std::realloc(memory, size);
}
void crypto_release(void* memory, const char*, int) {
    released(memory);
}

// Before libcrypto has allocated anything.
[[maybe_unused]] const int replaced =
    dael::test::kShortMemory
        ? CRYPTO_set_mem_functions(crypto_allocate, crypto_reallocate, crypto_release)
        : 0;

}  // namespace

namespace dael::test {

bool fail_allocation(long nth) noexcept {
    return countdown.exchange(nth) == -1;
}
MemoryEnough::MemoryEnough() noexcept {
    ++enough;
}
MemoryEnough::~MemoryEnough() {
    --enough;
}
void fail_here_alone(bool only) noexcept {
    here = only;
    alone = only;
}
long live_allocations() noexcept {
    return live;
}

}  // namespace dael::test

#if !defined(DAEL_SANITIZED)

void* operator new(std::size_t size) {
    if (void* const memory = counted(size, 0)) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    if (void* const memory = counted(size, static_cast<std::size_t>(alignment))) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return counted(size, 0);
}
void operator delete(void* memory) noexcept {
    released(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    released(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    released(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    released(memory);
}

extern "C" void* mmap(void* address, std::size_t size, int protection, int flags, int file,
                      off_t offset) noexcept {
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(
        syscall(SYS_mmap, address, size, protection, flags, file, offset));
}

#endif
