// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include <daelstrom/modes.hpp>

namespace dael {

std::string_view name(Mode mode) noexcept {
    constexpr std::array<std::string_view, 5> kNames{"ecb", "cbc", "cfb", "ofb", "ctr"};
    const auto index = static_cast<std::size_t>(mode);
    return index < kNames.size() ? kNames[index] : "unknown";
}

std::string_view name(Direction direction) noexcept {
    return direction == Direction::encrypt ? "encrypt" : "decrypt";
}

std::optional<Mode> mode_by_name(std::string_view text) noexcept {
    for (const Mode mode : kModes)
        if (std::ranges::equal(text, name(mode), [](unsigned char a, unsigned char b) {
                return std::tolower(a) == b;
            }))
            return mode;
    return std::nullopt;
}

}  // namespace dael
