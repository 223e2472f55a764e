// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "formats/keyset.hpp"

namespace dael::formats {
namespace {

using Bytes = std::span<const std::uint8_t>;

const Error kBadValue{Code::bad_format, "the keyset has a key whose value is not base64"};

// One JSON string's content from `at` on, which is behind its opening quote; ends on the closing
// one. False where there is none.
bool skip_string(Bytes json, std::size_t& at) {
    for (; at < json.size() && json[at] != '"'; ++at)
        if (json[at] == '\\') ++at;
    return at < json.size();
}

int hex_digit(std::uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// A JSON string's characters with its escapes undone, which say nothing about a key: some writers
// have \/ or \u003d in base64. In locked memory.
Result<SecretBytes> unescape(Bytes text) {
    auto out = SecretBytes::create(text.size());
    if (!out) return out;
    std::size_t size = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::uint8_t c = text[i];
        if (c == '\\' && i + 1 < text.size()) {
            c = text[++i];
            if (c == 'u') {
                int code = 0;
                for (int digit = 0; digit < 4; ++digit) {
                    const int value = ++i < text.size() ? hex_digit(text[i]) : -1;
                    if (value < 0) return kBadValue;
                    code = 16 * code + value;
                }
                if (code > 0x7f) return kBadValue;
                c = static_cast<std::uint8_t>(code);
            } else if (c != '/') {
                return kBadValue;
            }
        }
        out->bytes()[size++] = c;
    }
    return decode_base64(Bytes(out->bytes()).first(size));
}

bool is_space(std::uint8_t c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

Result<SecretBytes> decode_base64(Bytes text) {
    for (int padding = 0; padding < 2 && !text.empty() && text.back() == '='; ++padding)
        text = text.first(text.size() - 1);
    if (text.size() % 4 == 1) return kBadValue;
    auto out = SecretBytes::create(text.size() * 3 / 4);
    if (!out) return out;
    const auto in_range = [](unsigned c, unsigned low, unsigned high) {  // all ones or zero
        return 0u - (1 ^ (((c - low) | (high - c)) >> 31));
    };
    unsigned good = ~0u, bits = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const unsigned c = text[i];
        const unsigned upper = in_range(c, 'A', 'Z'), lower = in_range(c, 'a', 'z'),
                       digit = in_range(c, '0', '9');
        const unsigned plus = in_range(c, '+', '+') | in_range(c, '-', '-');
        const unsigned slash = in_range(c, '/', '/') | in_range(c, '_', '_');
        good &= upper | lower | digit | plus | slash;
        bits = bits << 6 | (upper & (c - 'A')) | (lower & (c - 'a' + 26)) |
               (digit & (c - '0' + 52)) | (plus & 62) | (slash & 63);
        // After 2, 3 and 4 characters a byte is whole, with 4, 2 and 0 bits to spare.
        if (i % 4 != 0)
            out->bytes()[i / 4 * 3 + i % 4 - 1] =
                static_cast<std::uint8_t>(bits >> (6 - 2 * (i % 4)));
    }
    if (good == 0) return kBadValue;
    return out;
}

Result<KeysetText> take_values_out(Bytes json) {
    KeysetText taken;
    bool behind_name = false;  // of a `value`
    for (std::size_t i = 0; i < json.size(); ++i) {
        if (json[i] != '"') {
            taken.text += static_cast<char>(json[i]);
            behind_name = behind_name && (is_space(json[i]) || json[i] == ':');
            continue;
        }
        const std::size_t begin = ++i;
        if (!skip_string(json, i))
            return Error{Code::bad_format, "the keyset is not JSON: a string does not end"};
        const Bytes string = json.subspan(begin, i - begin);
        const auto* characters = reinterpret_cast<const char*>(string.data());
        taken.text += '"';
        if (behind_name) {
            auto value = unescape(string);
            if (!value) return std::move(value).error();
            taken.text += std::to_string(taken.values.size());
            taken.values.push_back(std::move(*value));
        } else {
            taken.text.append(characters, string.size());
        }
        taken.text += '"';
        behind_name = !behind_name && std::string_view(characters, string.size()) == "value";
    }
    return taken;
}

}  // namespace dael::formats
