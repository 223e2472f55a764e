// SPDX-License-Identifier: Apache-2.0
// GHASH's arithmetic in GF(2^128) (SP 800-38D 6.3), without tables, branches on data or
// data-dependent addresses. Tens of megabytes a second: for making tables, for IVs that are not 96
// bits, and for tests; backends have faster ways for data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dael::core {

// A polynomial modulo x^128 + x^7 + x^2 + x + 1. As the standard numbers them, a block's first bit
// is the coefficient of x^0: the highest bit of `high`, which holds a block's first eight bytes
// with the first byte uppermost. The lowest bit of `low` is that of x^127.
struct FieldElement {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    friend constexpr FieldElement operator^(FieldElement a, FieldElement b) noexcept {
        return {a.high ^ b.high, a.low ^ b.low};
    }
    friend constexpr bool operator==(FieldElement, FieldElement) noexcept = default;
};

inline constexpr FieldElement kFieldOne{std::uint64_t{1} << 63, 0};

// The 16 bytes of a block to an element and back.
constexpr FieldElement load_element(const std::uint8_t* block) noexcept {
    FieldElement a;
    for (int i = 0; i < 8; ++i) {
        a.high = a.high << 8 | block[i];
        a.low = a.low << 8 | block[8 + i];
    }
    return a;
}
constexpr void store_element(std::uint8_t* block, FieldElement a) noexcept {
    for (int i = 7; i >= 0; --i) {
        block[i] = static_cast<std::uint8_t>(a.high);
        block[8 + i] = static_cast<std::uint8_t>(a.low);
        a.high >>= 8;
        a.low >>= 8;
    }
}

// x * a: one step towards higher powers; what leaves at x^128 comes back as x^7 + x^2 + x + 1.
constexpr FieldElement times_x(FieldElement a) noexcept {
    const std::uint64_t carried = 0 - (a.low & 1);
    return {(a.high >> 1) ^ (carried & (std::uint64_t{0xe1} << 56)), a.low >> 1 | a.high << 63};
}

// a * b: the sum of b * x^i over the bits i of a.
constexpr FieldElement multiply(FieldElement a, FieldElement b) noexcept {
    FieldElement product;
    for (int i = 0; i < 128; ++i) {
        const std::uint64_t has_bit = 0 - (a.high >> 63);
        product.high ^= b.high & has_bit;
        product.low ^= b.low & has_bit;
        b = times_x(b);
        a.high = a.high << 1 | a.low >> 63;
        a.low <<= 1;
    }
    return product;
}

// a^exponent. The time depends on the exponent, which is not secret, and not on a.
constexpr FieldElement power(FieldElement a, std::uint64_t exponent) noexcept {
    FieldElement result = kFieldOne;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result = multiply(result, a);
        a = multiply(a, a);
    }
    return result;
}

// a^(2^128 - 2), which is 1 / a, and 0 for 0: the product of a^2, a^4, ..., a^(2^127).
constexpr FieldElement inverse(FieldElement a) noexcept {
    FieldElement result = kFieldOne;
    for (int i = 1; i < 128; ++i) {
        a = multiply(a, a);
        result = multiply(result, a);
    }
    return result;
}

// GHASH (6.4) of `size` bytes, filled up with zeros to whole blocks, on top of what `y` has hashed
// so far.
constexpr FieldElement ghash(FieldElement h, FieldElement y, const std::uint8_t* bytes,
                             std::size_t size) noexcept {
    while (size != 0) {
        std::uint8_t block[16] = {};
        const std::size_t count = size < 16 ? size : 16;
        for (std::size_t i = 0; i < count; ++i) block[i] = bytes[i];
        y = multiply(y ^ load_element(block), h);
        bytes += count;
        size -= count;
    }
    return y;
}

static_assert(times_x({0, 1}) == FieldElement{std::uint64_t{0xe1} << 56, 0});
static_assert(multiply(kFieldOne, {3, 5}) == FieldElement{3, 5});

}  // namespace dael::core
