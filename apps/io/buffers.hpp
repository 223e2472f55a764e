// SPDX-License-Identifier: Apache-2.0
// Memory for data on its way through the program. It is used again by the next file, and wiped as
// far as it was touched, since it held plaintext.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <daelstrom/error.hpp>

namespace dael::app {

// Page-aligned. Pages that nobody touches take no memory.
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }

    // Has room for `size` bytes, `pinned` if a device is to copy from it at full speed. What it
    // held is gone if that took new memory. Errors: out_of_memory.
    Result<> allocate(std::size_t size, bool pinned = false);
    // Says that the first `size` bytes are or will be written to; more than there are means all.
    void touch(std::size_t size) noexcept;
    std::uint8_t* data() const noexcept { return data_; }

  private:
    void release() noexcept;

    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0, touched_ = 0;
    bool pinned_ = false;
};

// What one file after another takes. For one thread at a time.
using Buffers = std::array<Buffer, 5>;

}  // namespace dael::app
