// SPDX-License-Identifier: Apache-2.0
// Ordinary memory that may hold plaintext: what was used of it is wiped when it goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include <daelstrom/key.hpp>

namespace dael::formats {

class WipedBuffer {
  public:
    explicit WipedBuffer(std::size_t size)
        : bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(size)), size_(size) {}
    WipedBuffer(WipedBuffer&&) noexcept = default;
    WipedBuffer& operator=(WipedBuffer&&) = delete;
    ~WipedBuffer() {
        if (bytes_) wipe(bytes_.get(), used_);
    }
    std::size_t size() const { return size_; }
    std::uint8_t* data() { return bytes_.get(); }
    std::span<std::uint8_t> all() { return {bytes_.get(), size_}; }
    // Its beginning, which counts as used from now on: a large buffer for little data costs little.
    std::span<std::uint8_t> use(std::size_t size) {
        used_ = std::max(used_, size);
        return {bytes_.get(), size};
    }

  private:
    std::unique_ptr<std::uint8_t[]> bytes_;
    std::size_t size_, used_ = 0;
};

}  // namespace dael::formats
