// SPDX-License-Identifier: Apache-2.0
#include "formats/base64.hpp"

#include "formats/json.hpp"

namespace dael::formats {
namespace {

// Some writers have \/ or \u003d in base64, some break its lines.
bool is_space(std::int32_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Calls digit(c) for what is neither white space nor padding at the end. False where something
// stands that cannot be base64.
template <class Digit>
bool for_digits(std::span<const std::uint8_t> string, Digit digit) {
    bool padding = false;
    for (JsonCharacters characters(string); characters.more();) {
        const std::int32_t c = characters.next();
        if (is_space(c)) continue;
        if (c < 0 || c > 0x7f || (padding && c != '=')) return false;
        padding = c == '=';
        if (!padding) digit(static_cast<unsigned>(c));
    }
    return true;
}

}  // namespace

Result<SecretBytes> decode_base64(std::span<const std::uint8_t> string) {
    const Error none{Code::bad_format, "not base64"};
    std::size_t digits = 0;
    if (!for_digits(string, [&](unsigned) { ++digits; }) || digits % 4 == 1) return none;
    auto out = SecretBytes::create(digits / 4 * 3 + digits % 4 * 3 / 4);
    if (!out) return out;
    const auto in_range = [](unsigned c, unsigned low, unsigned high) {  // all ones or zero
        return 0u - (1 ^ (((c - low) | (high - c)) >> 31));
    };
    unsigned good = ~0u, bits = 0;
    std::size_t i = 0;
    for_digits(string, [&](unsigned c) {
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
        ++i;
    });
    if (good == 0) return none;
    return out;
}

Result<SecretBytes> encode_base64(std::span<const std::uint8_t> bytes) {
    auto out = SecretBytes::create((bytes.size() + 2) / 3 * 4);
    if (!out) return out;
    const auto from = [](unsigned value, unsigned least) {  // all ones where it is no less, or zero
        return 0u - (1 ^ ((value - least) >> 31));
    };
    for (std::size_t i = 0; i < out->bytes().size(); ++i) {
        // The six bits from 6 i on lie in two bytes at most.
        const std::size_t at = 6 * i / 8, shift = 6 * i % 8;
        if (at >= bytes.size()) {
            out->bytes()[i] = '=';
            continue;
        }
        const unsigned next = at + 1 < bytes.size() ? bytes[at + 1] : 0u;
        const unsigned value = ((bytes[at] << 8 | next) >> (10 - shift)) & 63;
        // A to Z, a to z, 0 to 9, +, /: what each begins at, less where the one before would be.
        const unsigned c = value + 'A' + (from(value, 26) & ('a' - 'Z' - 1)) -
                           (from(value, 52) & ('z' - '0' + 1)) -
                           (from(value, 62) & ('9' - '+' + 1)) +
                           (from(value, 63) & ('/' - '+' - 1));
        out->bytes()[i] = static_cast<std::uint8_t>(c);
    }
    return out;
}

}  // namespace dael::formats
