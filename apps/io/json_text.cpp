// SPDX-License-Identifier: Apache-2.0
#include "io/json_text.hpp"

#include <array>
#include <cstdio>

namespace dael::app {
namespace {

// How many bytes a character takes that begins `text`, or 0 where it is none (RFC 3629).
std::size_t utf8_size(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const unsigned second = byte(1);
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool surrogate = first == 0xed && second >= 0xa0;
    return overlong || surrogate || (first == 0xf4 && second >= 0x90) ? 0 : size;
}

}  // namespace

std::string json_string(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const std::size_t size = utf8_size(text);
        const auto byte = static_cast<unsigned char>(text[0]);
        if (size == 0) {
            out += "\\ufffd";
        } else if (byte < 0x20 || byte == 0x7f) {
            std::array<char, 8> escape{};
            std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
            out += escape.data();
        } else {
            if (byte == '"' || byte == '\\') out += '\\';
            out += text.substr(0, size);
        }
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return out + '"';
}

JsonText& JsonText::add(std::string_view name, double number) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", number);
    return add_text(name, text.data());
}

JsonText& JsonText::add_text(std::string_view name, std::string_view value) {
    if (text_.size() > 1) text_ += ", ";
    if (end_ == '}') text_ += json_string(name) + ": ";
    text_ += value;
    return *this;
}

}  // namespace dael::app
