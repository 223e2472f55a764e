// SPDX-License-Identifier: Apache-2.0
#include "io/json_text.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdio>

#include "io/text.hpp"

namespace dael::app {
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

std::string json_name(std::string_view name) {
    bool is_utf8 = true;
    for (std::string_view left = name; !left.empty() && is_utf8;) {
        const std::size_t size = utf8_size(left);
        is_utf8 = size != 0;
        left.remove_prefix(size);
    }
    if (is_utf8) return json_string(name);
    std::string base64(4 * ((name.size() + 2) / 3) + 1, '\0');  // with the zero that it writes
    base64.resize(static_cast<std::size_t>(EVP_EncodeBlock(
        reinterpret_cast<unsigned char*>(base64.data()),
        reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()))));
    return R"({"bytes": ")" + base64 + R"("})";
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
