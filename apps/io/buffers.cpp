// SPDX-License-Identifier: Apache-2.0
#include "io/buffers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include <daelstrom/key.hpp>
#include <daelstrom/memory.hpp>

namespace dael::app {

Result<> Buffer::allocate(std::size_t size, bool pinned) {
    if (data_ && size <= size_ && pinned == pinned_) return {};
    release();
    void* memory =
        pinned ? allocate_pinned(size)
               : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || !memory)
        return Error{Code::out_of_memory, "no memory for buffers of " + std::to_string(size) +
                                              " bytes; close other programs or use --backend cpu"};
    data_ = static_cast<std::uint8_t*>(memory);
    size_ = size;
    pinned_ = pinned;
    return {};
}

void Buffer::touch(std::size_t size) noexcept {
    touched_ = std::max(touched_, std::min(size, size_));
}

void Buffer::release() noexcept {
    if (!data_) return;
    wipe(data_, touched_);
    pinned_ ? release_pinned(data_) : static_cast<void>(::munmap(data_, size_));
    data_ = nullptr;
    size_ = touched_ = 0;
}

}  // namespace dael::app
