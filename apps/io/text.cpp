// SPDX-License-Identifier: Apache-2.0
#include "io/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace dael::app {
namespace {

template <class... Values>
std::string print(const char* format, Values... values) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, values...);
    return text.data();
}

int digits_for(double value) {
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

// Marks that turn text around (Unicode's UAX 9), which can make one name look like another, and the
// separators of lines and paragraphs.
bool turns_lines(std::string_view character) {
    constexpr std::array<std::string_view, 14> kMarks{
        "\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b",
        "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"};
    return std::ranges::find(kMarks, character) != kMarks.end();
}

}  // namespace

std::size_t utf8_size(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (text.empty()) return 0;
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

bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character.front());
    if (character.size() == 1) return first < 0x20 || first == 0x7f;
    return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // C1
}

std::string on_one_line(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t size = utf8_size(text);
        const std::string_view character = text.substr(0, std::max<std::size_t>(1, size));
        if (size == 0 || is_control(character) || turns_lines(character))
            for (const char c : character) out += print("\\x%02x", static_cast<unsigned char>(c));
        else
            out += character;
        text.remove_prefix(character.size());
    }
    return out;
}

std::string shown_name(std::string_view name) {
    std::string doubled;
    for (const char c : name) doubled += c == '\\' ? "\\\\" : std::string(1, c);
    return on_one_line(doubled);
}

std::string in_quotes(std::string_view name) {
    return "'" + shown_name(name) + "'";
}

Result<std::uint64_t> parse_size(std::string_view text, std::string_view option) {
    double number = 0;
    std::uint64_t whole = 0;
    const char* const end = text.data() + text.size();
    const auto integer = std::from_chars(text.data(), end, whole);
    const auto real = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    std::string_view suffix(real.ptr, static_cast<std::size_t>(end - real.ptr));
    const Error wrong{Code::invalid_argument,
                      std::string(option) + ": " + in_quotes(text) +
                          " is not a size; give bytes, or a number with K, M, G or T"};
    if (real.ec != std::errc{} || number < 0) return wrong;
    int power = 0;
    if (!suffix.empty()) {
        constexpr std::string_view kUnits = "kmgt";
        const auto unit = kUnits.find(static_cast<char>(std::tolower(suffix[0])));
        if (unit == kUnits.npos) {
            if (suffix != "B") return wrong;
        } else {
            power = 10 * (static_cast<int>(unit) + 1);
            suffix.remove_prefix(1);
            if (!suffix.empty() && suffix != "B" && suffix != "iB") return wrong;
        }
    }
    if (integer.ptr == real.ptr) {  // no fraction: exact in 64 bits
        if (integer.ec != std::errc{} || (whole << power) >> power != whole) return wrong;
        return whole << power;
    }
    const double bytes = std::ldexp(number, power);
    if (bytes >= 0x1p63 || bytes != std::floor(bytes)) return wrong;
    return static_cast<std::uint64_t>(bytes);
}

std::string format_size(double bytes) {
    constexpr std::array<const char*, 6> kUnits{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
    const int digits = unit == 0 || bytes == std::floor(bytes) ? 0 : digits_for(bytes) - 1;
    return print("%.*f %s", std::max(digits, 0), bytes, kUnits[unit]);
}

std::string format_rate(double rate) {
    const bool giga = rate >= 1e9;
    const double value = rate / (giga ? 1e9 : 1e6);
    return print("%.*f %s", digits_for(value), value, giga ? "GB/s" : "MB/s");
}

std::string format_seconds(double seconds) {
    if (seconds < 1e-3) return print("%.*f us", digits_for(seconds * 1e6), seconds * 1e6);
    if (seconds < 1) return print("%.*f ms", digits_for(seconds * 1e3), seconds * 1e3);
    return print("%.*f s", digits_for(seconds), seconds);
}

std::string format_clock(double seconds) {
    const auto whole = static_cast<long long>(std::ceil(seconds));
    if (whole >= 3600)
        return print("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    return print("%lld:%02lld", whole / 60, whole % 60);
}

}  // namespace dael::app
