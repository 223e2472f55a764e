// SPDX-License-Identifier: Apache-2.0
#include "core/quoted.hpp"

namespace dael::core {
namespace {

constexpr std::size_t kMax = 64;  // bytes of a name that messages show

// Bytes that a terminal may take for orders: ASCII's, and in UTF-8 those of ISO 6429 (U+0080 to
// U+009F), which are 0xc2 and a byte below 0xa0.
bool is_order(std::string_view name, std::size_t at) {
    const auto byte = static_cast<unsigned char>(name[at]);
    if (byte < 0x20 || byte == 0x7f) return true;
    return byte == 0xc2 && at + 1 < name.size() && static_cast<unsigned char>(name[at + 1]) < 0xa0;
}

}  // namespace

std::string quoted(std::string_view name) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text = "'";
    std::size_t at = 0;
    for (; at < name.size(); ++at) {
        const auto byte = static_cast<unsigned char>(name[at]);
        const bool begins = (byte & 0xc0) != 0x80;  // a character, which is not cut in two
        if (begins && text.size() > kMax) break;
        if (is_order(name, at)) {
            text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
        } else {
            text += name[at];
        }
    }
    return text + (at < name.size() ? "...'" : "'");
}

}  // namespace dael::core
