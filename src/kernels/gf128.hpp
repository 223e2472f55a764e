// SPDX-License-Identifier: Apache-2.0
// GHASH's field, GF(2^128) with x^128 = x^7 + x^2 + x + 1 (SP 800-38D 6.3), on 32-bit words, in
// constant time: no branch and no memory index depends on a value.
//
// An element is a block as it lies in memory: the coefficient of x^0 is the highest bit of byte 0.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/rounds.hpp>

namespace dael::kernels {

// The element 1.
DAEL_HD constexpr Words4 gf_one() {
    return {0x80, 0, 0, 0};
}

// The block whose only bit is `bit`: bit % 32 of word bit / 32.
DAEL_HD Words4 gf_basis(std::uint32_t bit) {
    const std::uint32_t one = 1u << (bit % 32);
    return {bit / 32 == 0 ? one : 0, bit / 32 == 1 ? one : 0, bit / 32 == 2 ? one : 0,
            bit / 32 == 3 ? one : 0};
}

// Carry-less product of two 32-bit words by ordinary multiplications: with every fourth bit alone,
// at most 8 partial products meet in one place, and their sum stays below the next bit that counts.
DAEL_HD std::uint64_t clmul32(std::uint32_t x, std::uint32_t y) {
    constexpr std::uint32_t m = 0x11111111;
    const std::uint32_t x0 = x & m, x1 = x & m << 1, x2 = x & m << 2, x3 = x & m << 3;
    const std::uint32_t y0 = y & m, y1 = y & m << 1, y2 = y & m << 2, y3 = y & m << 3;
    const auto mul = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} * b; };
    constexpr std::uint64_t w = 0x1111111111111111;
    return ((mul(x0, y0) ^ mul(x1, y3) ^ mul(x2, y2) ^ mul(x3, y1)) & w) |
           ((mul(x0, y1) ^ mul(x1, y0) ^ mul(x2, y3) ^ mul(x3, y2)) & w << 1) |
           ((mul(x0, y2) ^ mul(x1, y1) ^ mul(x2, y0) ^ mul(x3, y3)) & w << 2) |
           ((mul(x0, y3) ^ mul(x1, y2) ^ mul(x2, y1) ^ mul(x3, y0)) & w << 3);
}

// The same for 64-bit words (high : low), by Karatsuba.
struct Product128 {
    std::uint64_t high, low;
};
DAEL_HD Product128 clmul64(std::uint32_t a1, std::uint32_t a0, std::uint32_t b1, std::uint32_t b0) {
    const std::uint64_t high = clmul32(a1, b1), low = clmul32(a0, b0);
    const std::uint64_t middle = clmul32(a1 ^ a0, b1 ^ b0) ^ high ^ low;
    return {high ^ middle >> 32, low ^ middle << 32};
}

// The coefficients of x^0 to x^255, from the highest bit of p3 on, as an element: what is beyond
// x^127 times x^128 = 1 + x + x^2 + x^7. Multiplying by x shifts right, and what falls off the end
// comes back in front first.
DAEL_HD Words4 gf_reduce(std::uint64_t p3, std::uint64_t p2, std::uint64_t p1, std::uint64_t p0) {
    p1 ^= p0 << 63 ^ p0 << 62 ^ p0 << 57;
    p3 ^= p1 ^ p1 >> 1 ^ p1 >> 2 ^ p1 >> 7;
    p2 ^= p0 ^ (p0 >> 1 | p1 << 63) ^ (p0 >> 2 | p1 << 62) ^ (p0 >> 7 | p1 << 57);
    return {
        byte_swap(static_cast<std::uint32_t>(p3 >> 32)), byte_swap(static_cast<std::uint32_t>(p3)),
        byte_swap(static_cast<std::uint32_t>(p2 >> 32)), byte_swap(static_cast<std::uint32_t>(p2))};
}

DAEL_HD Words4 gf_multiply(const Words4& a, const Words4& b) {
    // As big-endian numbers, x^0 is the highest bit: products come out reflected, one bit short.
    const std::uint32_t a3 = byte_swap(a.x), a2 = byte_swap(a.y), a1 = byte_swap(a.z),
                        a0 = byte_swap(a.w);
    const std::uint32_t b3 = byte_swap(b.x), b2 = byte_swap(b.y), b1 = byte_swap(b.z),
                        b0 = byte_swap(b.w);
    const Product128 high = clmul64(a3, a2, b3, b2), low = clmul64(a1, a0, b1, b0);
    Product128 middle = clmul64(a3 ^ a1, a2 ^ a0, b3 ^ b1, b2 ^ b0);
    middle.high ^= high.high ^ low.high;
    middle.low ^= high.low ^ low.low;
    const std::uint64_t p3 = high.high, p2 = high.low ^ middle.high, p1 = low.high ^ middle.low,
                        p0 = low.low;
    // p3 : p2 are x^0 to x^127, p1 : p0 the rest
    return gf_reduce(p3 << 1 | p2 >> 63, p2 << 1 | p1 >> 63, p1 << 1 | p0 >> 63, p0 << 1);
}

// The inverse, a^(2^128 - 2); of 0 it is 0. By Fermat, for key set-up only: 2^128 - 2 has 127 ones.
DAEL_HD Words4 gf_inverse(const Words4& a) {
    Words4 power = a, result = gf_one();
    DAEL_UNROLL(1)
    for (int i = 1; i < 128; ++i) {
        power = gf_multiply(power, power);
        result = gf_multiply(result, power);
    }
    return result;
}

}  // namespace dael::kernels
