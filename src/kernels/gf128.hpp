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

// Carry-less products of 32-bit words by ordinary multiplications: of words with every fourth bit
// alone at most 8 partial products meet in one place, and their sum stays below the next bit that
// counts. So do the sums of two such products if one, of bits i and j of fours, has i + j < 4 and
// the other has not: then they have their eights in different places, and at most 8 + 7 meet.
//
// A sum of products before its bits that do not count are taken away: sums[k] has every fourth bit
// from k on. These add up by XOR.
struct Holes {
    std::uint64_t sums[4];
    DAEL_HD friend Holes operator^(const Holes& a, const Holes& b) {
        return {{a.sums[0] ^ b.sums[0], a.sums[1] ^ b.sums[1], a.sums[2] ^ b.sums[2],
                 a.sums[3] ^ b.sums[3]}};
    }
    DAEL_HD std::uint64_t joined() const {
        constexpr std::uint64_t w = 0x1111111111111111;
        return (sums[0] & w) | (sums[1] & w << 1) | (sums[2] & w << 2) | (sums[3] & w << 3);
    }
};
DAEL_HD Holes clmul32_holes(std::uint32_t x, std::uint32_t y) {
    constexpr std::uint32_t m = 0x11111111;
    const std::uint32_t x0 = x & m, x1 = x & m << 1, x2 = x & m << 2, x3 = x & m << 3;
    const std::uint32_t y0 = y & m, y1 = y & m << 1, y2 = y & m << 2, y3 = y & m << 3;
    const auto mul = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} * b; };
    return {{(mul(x0, y0) + mul(x1, y3)) ^ mul(x2, y2) ^ mul(x3, y1),
             (mul(x0, y1) + mul(x2, y3)) ^ (mul(x1, y0) + mul(x3, y2)),
             (mul(x0, y2) + mul(x3, y3)) ^ mul(x1, y1) ^ mul(x2, y0),
             mul(x0, y3) ^ mul(x1, y2) ^ mul(x2, y1) ^ mul(x3, y0)}};
}
DAEL_HD std::uint64_t clmul32(std::uint32_t x, std::uint32_t y) {
    return clmul32_holes(x, y).joined();
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

// What Karatsuba multiplies of an element, twice over: its words as a big-endian number, where x^0
// is the highest bit, and sums of them.
struct KaratsubaWords {
    DAEL_HD explicit KaratsubaWords(const Words4& v) {
        const std::uint32_t v3 = byte_swap(v.x), v2 = byte_swap(v.y), v1 = byte_swap(v.z),
                            v0 = byte_swap(v.w);
        put(0, v3, v2);
        put(3, v1, v0);
        put(6, v3 ^ v1, v2 ^ v0);
    }
    std::uint32_t w[9];

  private:
    DAEL_HD void put(int at, std::uint32_t high, std::uint32_t low) {
        w[at] = high;
        w[at + 1] = low;
        w[at + 2] = high ^ low;
    }
};

// a[0] * b[0] ^ a[1] * b[1] ^ ..., for hardly more than what is multiplied: all else is done once.
template <int n>
DAEL_HD Words4 gf_sum_of_products(const KaratsubaWords (&a)[n], const KaratsubaWords (&b)[n]) {
    const auto product = [&](int at) {
        Holes sum = clmul32_holes(a[0].w[at], b[0].w[at]);
        DAEL_UNROLL(n)
        for (int i = 1; i < n; ++i) sum = sum ^ clmul32_holes(a[i].w[at], b[i].w[at]);
        return sum.joined();
    };
    struct Product128 {
        std::uint64_t high, low;
    };
    const auto product64 = [&](int at) {
        const std::uint64_t high = product(at), low = product(at + 1),
                            middle = product(at + 2) ^ high ^ low;
        return Product128{high ^ middle >> 32, low ^ middle << 32};
    };
    const Product128 high = product64(0), low = product64(3);
    Product128 middle = product64(6);
    middle.high ^= high.high ^ low.high;
    middle.low ^= high.low ^ low.low;
    const std::uint64_t p3 = high.high, p2 = high.low ^ middle.high, p1 = low.high ^ middle.low,
                        p0 = low.low;
    // p3 : p2 are x^0 to x^127, p1 : p0 the rest; products come out reflected, one bit short.
    return gf_reduce(p3 << 1 | p2 >> 63, p2 << 1 | p1 >> 63, p1 << 1 | p0 >> 63, p0 << 1);
}

DAEL_HD Words4 gf_multiply(const Words4& a, const Words4& b) {
    return gf_sum_of_products<1>({KaratsubaWords(a)}, {KaratsubaWords(b)});
}
// a * b ^ c * d
DAEL_HD Words4 gf_multiply_add(const Words4& a, const Words4& b, const Words4& c, const Words4& d) {
    return gf_sum_of_products<2>({KaratsubaWords(a), KaratsubaWords(c)},
                                 {KaratsubaWords(b), KaratsubaWords(d)});
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
