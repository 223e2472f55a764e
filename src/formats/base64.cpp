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

}  // namespace dael::formats
