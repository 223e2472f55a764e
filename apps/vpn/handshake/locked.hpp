// SPDX-License-Identifier: Apache-2.0
// Objects with secrets, in pages of their own: locked against swapping where the limit allows, left
// out of core dumps, wiped at the end.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <new>
#include <utility>

#include <daelstrom/key.hpp>

namespace dael::vpn {

template <class T>
struct Unlock {
    void operator()(T* object) const noexcept {
        object->~T();
        wipe(static_cast<void*>(object), sizeof(T));
        ::munmap(static_cast<void*>(object), sizeof(T));
    }
};
template <class T>
using Locked = std::unique_ptr<T, Unlock<T>>;

// nullptr: there is no memory.
template <class T, class... Arguments>
Locked<T> make_locked(Arguments&&... arguments) {
    void* const memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    ::madvise(memory, sizeof(T), MADV_DONTDUMP);
    (void)::mlock(memory, sizeof(T));
    return Locked<T>(new (memory) T(std::forward<Arguments>(arguments)...));
}

}  // namespace dael::vpn
