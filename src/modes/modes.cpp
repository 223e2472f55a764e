// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "modes/traits.hpp"

namespace dael {

std::string_view name(Mode mode) noexcept {
    return static_cast<std::size_t>(mode) < kModes.size() ? modes::traits(mode).name : "unknown";
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
