// SPDX-License-Identifier: Apache-2.0
// Locked memory of the calling thread's own for a T that a call fills and uses, and that is wiped
// when it is over. Made at the thread's first use, released when the thread ends. One at a time.
#pragma once

#include <cstddef>
#include <memory>

#include <daelstrom/key.hpp>

#include "core/secure_memory.hpp"

namespace dael::cpu {

template <class T>
class MemoryOfCall {
  public:
    MemoryOfCall() noexcept {
        thread_local std::unique_ptr<T, Release> mine;
        if (!mine) mine.reset(static_cast<T*>(core::secure_allocate(sizeof(T))));
        memory_ = mine.get();
    }
    MemoryOfCall(const MemoryOfCall&) = delete;
    MemoryOfCall& operator=(const MemoryOfCall&) = delete;
    ~MemoryOfCall() {
        if (memory_) wipe(memory_, used_);
    }
    // Of a large T no more than this has been written: so many bytes from its beginning, of all
    // that was said.
    void used(std::size_t bytes) noexcept {
        if (!said_) used_ = 0;
        said_ = true;
        if (bytes > used_) used_ = bytes;
    }
    explicit operator bool() const noexcept { return memory_ != nullptr; }  // false: there is none
    T& operator*() const noexcept { return *memory_; }
    T* operator->() const noexcept { return memory_; }

  private:
    struct Release {
        void operator()(T* memory) const noexcept { core::secure_release(memory, sizeof(T)); }
    };
    T* memory_;
    std::size_t used_ = sizeof(T);
    bool said_ = false;
};

}  // namespace dael::cpu
