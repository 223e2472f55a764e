// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"

#include "core/text.hpp"

namespace dael::core {
namespace {

bool is_digit(std::uint8_t c) {
    return c >= '0' && c <= '9';
}

bool is_surrogate(std::int32_t code) {
    return code >= 0xd800 && code < 0xe000;
}

}  // namespace

std::string json_quoted(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') out += '\\';
        if (byte < 0x20)
            out += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
        else
            out += c;
    }
    return out + '"';
}

std::int32_t JsonCharacters::next() noexcept {
    if (left_.empty()) return -1;
    const std::uint8_t c = left_[0];
    left_ = left_.subspan(1);
    if (c == '\\') return escape();
    if (c >= 0x80) return utf8(c);
    return c < 0x20 ? -1 : c;
}

std::int32_t JsonCharacters::escape() noexcept {
    if (left_.empty()) return -1;
    const char c = static_cast<char>(left_[0]);
    left_ = left_.subspan(1);
    if (c != 'u') {
        constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
        const auto at = kNames.find(c);
        return at == kNames.npos ? -1 : kMeanings[at];
    }
    const std::int32_t code = hex();
    if (!is_surrogate(code)) return code;
    // The first of two (RFC 8259 section 7).
    if (code >= 0xdc00 || left_.size() < 2 || left_[0] != '\\' || left_[1] != 'u') return -1;
    left_ = left_.subspan(2);
    const std::int32_t second = hex();
    if (second < 0xdc00 || second >= 0xe000) return -1;
    return 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
}

std::int32_t JsonCharacters::hex() noexcept {
    if (left_.size() < 4) return -1;
    std::int32_t code = 0;
    for (const std::uint8_t c : left_.first(4)) {
        const int lower = c | 0x20;
        const bool letter = lower >= 'a' && lower <= 'f';
        if (!letter && !is_digit(c)) return -1;
        code = 16 * code + (letter ? lower - 'a' + 10 : c - '0');
    }
    left_ = left_.subspan(4);
    return code;
}

// RFC 3629: as short as can be, no surrogates, nothing above 0x10ffff.
std::int32_t JsonCharacters::utf8(std::uint8_t first) noexcept {
    const std::size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    constexpr std::int32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (first < 0xc0 || first >= 0xf8 || left_.size() < more) return -1;
    std::int32_t code = first & (0x3f >> more);
    for (const std::uint8_t c : left_.first(more)) {
        if ((c & 0xc0) != 0x80) return -1;
        code = code << 6 | (c & 0x3f);
    }
    left_ = left_.subspan(more);
    return code < kLeast[more] || code > 0x10ffff || is_surrogate(code) ? -1 : code;
}

std::string json_text(std::span<const std::uint8_t> string) {
    std::string text;
    for (JsonCharacters characters(string); characters.more();) {
        const std::int32_t code = characters.next();
        const auto put = [&](std::int32_t bits) { text += static_cast<char>(bits); };
        const auto tail = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
        if (code < 0x80) {
            put(code);
        } else if (code < 0x800) {
            put(0xc0 | code >> 6), tail(0);
        } else if (code < 0x10000) {
            put(0xe0 | code >> 12), tail(6), tail(0);
        } else {
            put(0xf0 | code >> 18), tail(12), tail(6), tail(0);
        }
    }
    return text;
}

Error JsonReader::not_json() const {
    return {Code::bad_format, std::string(name_) + " is not JSON"};
}

void JsonReader::skip_space() {
    const auto is_space = [](std::uint8_t c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
    };
    while (!left_.empty() && is_space(left_[0])) left_ = left_.subspan(1);
}

bool JsonReader::taken(char c) {
    skip_space();
    if (left_.empty() || left_[0] != static_cast<std::uint8_t>(c)) return false;
    left_ = left_.subspan(1);
    return true;
}

Result<> JsonReader::take(char c) {
    if (!taken(c)) return not_json();
    return {};
}

Result<JsonReader::Kind> JsonReader::kind() {
    skip_space();
    if (left_.empty()) return not_json();
    switch (left_[0]) {
        case '{':
            return Kind::object;
        case '[':
            return Kind::array;
        case '"':
            return Kind::string;
        case 'n':
            return Kind::null;
        case 't':
        case 'f':
            return Kind::other;
        default:
            if (left_[0] == '-' || is_digit(left_[0])) return Kind::number;
            return not_json();
    }
}

Result<bool> JsonReader::took_null() {
    const auto next = kind();
    if (!next) return next.error();
    if (*next != Kind::null) return false;
    if (!text_of(left_).starts_with("null")) return not_json();
    left_ = left_.subspan(4);
    return true;
}

Result<JsonReader::Bytes> JsonReader::string() {
    DAEL_TRY(take('"'));
    std::size_t size = 0;
    for (; size < left_.size() && left_[size] != '"'; ++size)
        if (left_[size] == '\\') ++size;
    if (size >= left_.size()) return not_json();
    const Bytes content = left_.first(size);
    for (JsonCharacters characters(content); characters.more();)
        if (characters.next() < 0) return not_json();
    left_ = left_.subspan(size + 1);
    return content;
}

Result<std::string_view> JsonReader::number() {
    std::size_t size = 0;
    const auto at = [&] { return size < left_.size() ? left_[size] : std::uint8_t{0}; };
    const auto digits = [&] {
        const std::size_t begin = size;
        while (is_digit(at())) ++size;
        return size != begin;
    };
    size += at() == '-';
    if (at() == '0')
        ++size;
    else if (!digits())
        return not_json();
    if (at() == '.') {
        ++size;
        if (!digits()) return not_json();
    }
    if ((at() | 0x20) == 'e') {
        ++size;
        size += at() == '+' || at() == '-';
        if (!digits()) return not_json();
    }
    const std::string_view text = text_of(left_.first(size));
    left_ = left_.subspan(size);
    return text;
}

Result<> JsonReader::end() {
    skip_space();
    if (!left_.empty()) return not_json();
    return {};
}

}  // namespace dael::core
