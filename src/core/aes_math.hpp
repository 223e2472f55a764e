// SPDX-License-Identifier: Apache-2.0
// AES's arithmetic in GF(2^8) (FIPS 197 section 4.2), written without tables, branches on data or
// data-dependent addresses: the ground for the key schedule, the reference and the T-tables.
#pragma once

#include <cstdint>

namespace dael::core {

// {02} * x modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197 4.2.1).
constexpr std::uint8_t xtime(std::uint8_t x) noexcept {
    return static_cast<std::uint8_t>((x << 1) ^ ((x >> 7) * 0x1b));
}

constexpr std::uint8_t gf_multiply(std::uint8_t a, std::uint8_t b) noexcept {
    std::uint8_t product = 0;
    for (int bit = 0; bit < 8; ++bit) {
        product ^= static_cast<std::uint8_t>(a & -((b >> bit) & 1));
        a = xtime(a);
    }
    return product;
}

// x^254, which is the inverse of x, and 0 for 0.
constexpr std::uint8_t gf_inverse(std::uint8_t x) noexcept {
    const std::uint8_t x2 = gf_multiply(x, x);
    const std::uint8_t x3 = gf_multiply(x2, x);
    const std::uint8_t x6 = gf_multiply(x3, x3);
    const std::uint8_t x12 = gf_multiply(x6, x6);
    const std::uint8_t x15 = gf_multiply(x12, x3);
    const std::uint8_t x30 = gf_multiply(x15, x15);
    const std::uint8_t x60 = gf_multiply(x30, x30);
    const std::uint8_t x120 = gf_multiply(x60, x60);
    const std::uint8_t x126 = gf_multiply(x120, x6);
    const std::uint8_t x127 = gf_multiply(x126, x);
    return gf_multiply(x127, x127);
}

constexpr std::uint8_t rotate_left(std::uint8_t x, int n) noexcept {
    return static_cast<std::uint8_t>((x << n) | (x >> (8 - n)));
}

// SubBytes and its inverse, one byte (FIPS 197 5.1.1, 5.3.2).
constexpr std::uint8_t sub_byte(std::uint8_t x) noexcept {
    const std::uint8_t i = gf_inverse(x);
    return static_cast<std::uint8_t>(i ^ rotate_left(i, 1) ^ rotate_left(i, 2) ^ rotate_left(i, 3) ^
                                     rotate_left(i, 4) ^ 0x63);
}
constexpr std::uint8_t inv_sub_byte(std::uint8_t x) noexcept {
    return gf_inverse(static_cast<std::uint8_t>(rotate_left(x, 1) ^ rotate_left(x, 3) ^
                                                rotate_left(x, 6) ^ 0x05));
}

static_assert(sub_byte(0x00) == 0x63 && sub_byte(0x53) == 0xed && inv_sub_byte(0xed) == 0x53);

// One column of MixColumns and its inverse, in place (FIPS 197 5.1.3, 5.3.3).
constexpr void mix_column(std::uint8_t* c) noexcept {
    const std::uint8_t a = c[0], b = c[1], d = c[2], e = c[3];
    const std::uint8_t all = a ^ b ^ d ^ e;
    c[0] = static_cast<std::uint8_t>(a ^ all ^ xtime(a ^ b));
    c[1] = static_cast<std::uint8_t>(b ^ all ^ xtime(b ^ d));
    c[2] = static_cast<std::uint8_t>(d ^ all ^ xtime(d ^ e));
    c[3] = static_cast<std::uint8_t>(e ^ all ^ xtime(e ^ a));
}
constexpr void inv_mix_column(std::uint8_t* c) noexcept {
    const std::uint8_t a = c[0], b = c[1], d = c[2], e = c[3];
    for (int i = 0; i < 4; ++i) {
        const std::uint8_t s[4] = {a, b, d, e};
        c[i] = static_cast<std::uint8_t>(
            gf_multiply(s[i], 0x0e) ^ gf_multiply(s[(i + 1) & 3], 0x0b) ^
            gf_multiply(s[(i + 2) & 3], 0x0d) ^ gf_multiply(s[(i + 3) & 3], 0x09));
    }
}

}  // namespace dael::core
