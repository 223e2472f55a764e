// SPDX-License-Identifier: Apache-2.0
// Text as bytes, and bytes as text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace dael::core {

inline std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace dael::core
