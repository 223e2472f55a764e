// SPDX-License-Identifier: Apache-2.0
#include "keystream/failing_memory.hpp"

#include <cstdlib>
#include <new>

namespace dael::test {

thread_local long allocations_left = -1;

}  // namespace dael::test

namespace {

using dael::test::allocations_left;

void* allocate(std::size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    const auto to = static_cast<std::size_t>(alignment);
    void* const memory = std::aligned_alloc(to, (size + to - 1) / to * to);
    if (!memory) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
