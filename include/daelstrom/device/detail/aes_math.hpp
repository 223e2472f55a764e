// SPDX-License-Identifier: Apache-2.0
// AES's arithmetic in GF(2^8) (FIPS 197 section 4.2), written without tables, branches on data or
// data-dependent addresses: the ground for the key schedule, the reference and the T-tables. For
// daelstrom's own use.
//
// The `_each` functions work on every byte of an unsigned integer at once, as so many elements of
// the field side by side: constant time comes for free, and eight bytes cost what one does.
#pragma once

#include <concepts>
#include <cstdint>

#include <daelstrom/device/detail/hd.hpp>

namespace dael::core {

// `byte` in every byte of a Word.
template <std::unsigned_integral Word>
DAEL_HD constexpr Word repeat(std::uint8_t byte) noexcept {
    return static_cast<Word>(static_cast<Word>(~Word{0}) / 0xff * byte);
}

// {02} * x modulo m(x) = x^8 + x^4 + x^3 + x + 1 (FIPS 197 4.2.1).
template <std::unsigned_integral Word>
DAEL_HD constexpr Word xtime_each(Word x) noexcept {
    const Word carried = (x >> 7) & repeat<Word>(1);
    return static_cast<Word>(((x & repeat<Word>(0x7f)) << 1) ^ (carried * 0x1b));
}

// a * b (FIPS 197 4.2): the sum of a * x^bit over the bits of b.
template <std::unsigned_integral Word>
DAEL_HD constexpr Word multiply_each(Word a, Word b) noexcept {
    Word product = 0;
    for (int bit = 0; bit < 8; ++bit) {
        const Word has_bit = (b >> bit) & repeat<Word>(1);
        product ^= static_cast<Word>(a & (has_bit * 0xff));
        a = xtime_each(a);
    }
    return product;
}

// x^(2^n). Squaring is linear in characteristic 2, and so is doing it n times: the result is the
// sum of the powers of x's bits, and bit i is {02}^i.
template <int n, std::unsigned_integral Word>
DAEL_HD constexpr Word square_each(Word x) noexcept {
    struct Powers {
        std::uint8_t of[8];
    };
    constexpr Powers kPowers = [] {
        Powers powers{};
        for (unsigned bit = 0; bit < 8; ++bit) {
            powers.of[bit] = static_cast<std::uint8_t>(1u << bit);
            for (int i = 0; i < n; ++i)
                powers.of[bit] = multiply_each(powers.of[bit], powers.of[bit]);
        }
        return powers;
    }();
    Word sum = 0;
    for (unsigned bit = 0; bit < 8; ++bit)
        sum ^= static_cast<Word>(((x >> bit) & repeat<Word>(1)) * kPowers.of[bit]);
    return sum;
}

// x^254, which is the inverse of x, and 0 for 0.
template <std::unsigned_integral Word>
DAEL_HD constexpr Word inverse_each(Word x) noexcept {
    const Word x2 = square_each<1>(x);
    const Word x3 = multiply_each(x2, x);
    const Word x12 = square_each<2>(x3);
    const Word x15 = multiply_each(x12, x3);
    const Word x240 = square_each<4>(x15);
    return multiply_each(multiply_each(x240, x12), x2);
}

template <std::unsigned_integral Word>
DAEL_HD constexpr Word rotate_left_each(Word x, int n) noexcept {
    const auto low = static_cast<std::uint8_t>(0xff << n);
    return static_cast<Word>(((x << n) & repeat<Word>(low)) |
                             ((x >> (8 - n)) & repeat<Word>(static_cast<std::uint8_t>(~low))));
}

// SubBytes and its inverse (FIPS 197 5.1.1, 5.3.2).
template <std::unsigned_integral Word>
DAEL_HD constexpr Word sub_each(Word x) noexcept {
    const Word i = inverse_each(x);
    return static_cast<Word>(i ^ rotate_left_each(i, 1) ^ rotate_left_each(i, 2) ^
                             rotate_left_each(i, 3) ^ rotate_left_each(i, 4) ^ repeat<Word>(0x63));
}
template <std::unsigned_integral Word>
DAEL_HD constexpr Word inv_sub_each(Word x) noexcept {
    return inverse_each(static_cast<Word>(rotate_left_each(x, 1) ^ rotate_left_each(x, 3) ^
                                          rotate_left_each(x, 6) ^ repeat<Word>(0x05)));
}

// MixColumns and its inverse (FIPS 197 5.1.3, 5.3.3) on two columns, the first in the low half,
// each with row 0 in its lowest byte.
DAEL_HD constexpr std::uint64_t rotate_columns(std::uint64_t x, int rows) noexcept {
    const std::uint64_t low = 0x0000000100000001u * (0xffffffffu >> (8 * rows));
    return ((x >> (8 * rows)) & low) | ((x << (32 - 8 * rows)) & ~low);
}
DAEL_HD constexpr std::uint64_t mix_columns_each(std::uint64_t a) noexcept {
    const std::uint64_t b = rotate_columns(a, 1);
    return xtime_each(a) ^ (xtime_each(b) ^ b) ^ rotate_columns(a, 2) ^ rotate_columns(a, 3);
}
DAEL_HD constexpr std::uint64_t inv_mix_columns_each(std::uint64_t a) noexcept {
    const std::uint64_t a2 = xtime_each(a), a4 = xtime_each(a2), a8 = xtime_each(a4);
    return (a8 ^ a4 ^ a2) ^                  // {0e} = 8 + 4 + 2
           rotate_columns(a8 ^ a2 ^ a, 1) ^  // {0b} = 8 + 2 + 1
           rotate_columns(a8 ^ a4 ^ a, 2) ^  // {0d} = 8 + 4 + 1
           rotate_columns(a8 ^ a, 3);        // {09} = 8 + 1
}

// The same for single bytes and columns of four bytes.
DAEL_HD constexpr std::uint8_t xtime(std::uint8_t x) noexcept {
    return xtime_each(x);
}
DAEL_HD constexpr std::uint8_t gf_multiply(std::uint8_t a, std::uint8_t b) noexcept {
    return multiply_each(a, b);
}
DAEL_HD constexpr std::uint8_t gf_inverse(std::uint8_t x) noexcept {
    return inverse_each(x);
}
DAEL_HD constexpr std::uint8_t sub_byte(std::uint8_t x) noexcept {
    return sub_each(x);
}
DAEL_HD constexpr std::uint8_t inv_sub_byte(std::uint8_t x) noexcept {
    return inv_sub_each(x);
}

static_assert(gf_multiply(0x57, 0x83) == 0xc1);  // the example of FIPS 197 4.2
static_assert(sub_byte(0x00) == 0x63 && sub_byte(0x53) == 0xed && inv_sub_byte(0xed) == 0x53);
static_assert(mix_columns_each(0x455313db) == 0xbca14d8e &&
              inv_mix_columns_each(0xbca14d8e) == 0x455313db);

// Bytes to integers and back, the first byte lowest, on any machine.
template <std::unsigned_integral Word>
DAEL_HD constexpr Word load_le(const std::uint8_t* bytes) noexcept {
    Word word = 0;
    for (unsigned i = 0; i < sizeof(Word); ++i)
        word |= static_cast<Word>(static_cast<Word>(bytes[i]) << (8 * i));
    return word;
}
template <std::unsigned_integral Word>
DAEL_HD constexpr void store_le(std::uint8_t* bytes, Word word) noexcept {
    for (unsigned i = 0; i < sizeof(Word); ++i)
        bytes[i] = static_cast<std::uint8_t>(word >> (8 * i));
}

}  // namespace dael::core
