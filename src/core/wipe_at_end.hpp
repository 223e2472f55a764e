// SPDX-License-Identifier: Apache-2.0
// Wipes an object when the scope ends, by whichever way it does.
#pragma once

#include <cstddef>

#include <daelstrom/key.hpp>

namespace dael::core {

class WipeAtEnd {
  public:
    WipeAtEnd(void* memory, std::size_t size) noexcept : memory_(memory), size_(size) {}
    template <class T>
    explicit WipeAtEnd(T& object) noexcept : WipeAtEnd(&object, sizeof object) {}
    WipeAtEnd(const WipeAtEnd&) = delete;
    WipeAtEnd& operator=(const WipeAtEnd&) = delete;
    ~WipeAtEnd() { wipe(memory_, size_); }
    void keep() noexcept { size_ = 0; }  // it is not to be wiped after all

  private:
    void* const memory_;
    std::size_t size_;
};

}  // namespace dael::core
