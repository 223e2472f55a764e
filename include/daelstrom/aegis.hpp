// SPDX-License-Identifier: Apache-2.0
// AEGIS (RFC 10032): authenticated encryption from AES rounds alone, at twice GCM's speed and more.
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/export.h>
#include <daelstrom/message.hpp>

namespace dael::aegis {

// The most bytes of a message, and of AAD: fewer than 2^61 (RFC 10032, "Authenticated Encryption").
inline constexpr std::uint64_t kMaxData = (std::uint64_t{1} << 61) - 1;
inline constexpr std::uint64_t kMaxAad = (std::uint64_t{1} << 61) - 1;

constexpr bool valid_tag_size(std::size_t size) noexcept {
    return size == 16 || size == 32;
}

}  // namespace dael::aegis
