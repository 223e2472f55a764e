// SPDX-License-Identifier: Apache-2.0
// Secret bytes of a fixed number, in locked memory that wipes itself; move-only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include <daelstrom/error.hpp>

#include "core/secure_memory.hpp"

namespace dael::formats {

class SecretBytes {
  public:
    static Result<SecretBytes> create(std::size_t size) {  // zeroed
        SecretBytes secret;
        secret.data_ =
            static_cast<std::uint8_t*>(core::secure_allocate(std::max<std::size_t>(size, 1)));
        if (!secret.data_) return Error{Code::out_of_memory, "no memory for a secret"};
        secret.size_ = size;
        return secret;
    }
    static Result<SecretBytes> copy(std::span<const std::uint8_t> bytes) {
        auto secret = create(bytes.size());
        if (secret) std::ranges::copy(bytes, secret->data_);
        return secret;
    }

    SecretBytes() = default;
    SecretBytes(SecretBytes&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    SecretBytes& operator=(SecretBytes&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~SecretBytes() {
        if (data_) core::secure_release(data_, std::max<std::size_t>(size_, 1));
    }

    std::span<std::uint8_t> bytes() noexcept { return {data_, size_}; }
    std::span<const std::uint8_t> bytes() const noexcept { return {data_, size_}; }

  private:
    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace dael::formats
