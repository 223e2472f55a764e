// SPDX-License-Identifier: Apache-2.0
// GHASH on the host (SP 800-38D 6.3, 6.4), in constant time, over the one field arithmetic that
// kernels and host share (kernels/gf128.hpp). Tens of megabytes a second: for making tables, for
// IVs that are not 96 bits, and for tests; backends have faster ways for data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/gf128.hpp"

namespace dael::modes {

// An element of GF(2^128), as its block lies in memory.
using Element = kernels::Words4;

inline constexpr Element kOne = kernels::gf_one();

inline Element load_element(const std::uint8_t* block) noexcept {
    Element a;
    std::memcpy(&a, block, sizeof a);
    return a;
}
inline void store_element(std::uint8_t* block, const Element& a) noexcept {
    std::memcpy(block, &a, sizeof a);
}
inline Element add(const Element& a, const Element& b) noexcept {
    return {a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w};
}
inline Element multiply(const Element& a, const Element& b) noexcept {
    return kernels::gf_multiply(a, b);
}
inline Element inverse(const Element& a) noexcept {
    return kernels::gf_inverse(a);
}
inline bool equal(const Element& a, const Element& b) noexcept {
    return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0;
}

// a^exponent. The time depends on the exponent, which is not secret, and not on a.
inline Element power(Element a, std::uint64_t exponent) noexcept {
    Element result = kOne;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result = modes::multiply(result, a);
        a = modes::multiply(a, a);
    }
    return result;
}

// GHASH of `size` bytes, filled up with zeros to whole blocks, on top of what `y` has hashed so
// far.
inline Element ghash(const Element& h, Element y, const std::uint8_t* bytes,
                     std::size_t size) noexcept {
    while (size != 0) {
        std::uint8_t block[16] = {};
        const std::size_t count = size < 16 ? size : 16;
        std::memcpy(block, bytes, count);
        y = modes::multiply(add(y, load_element(block)), h);
        bytes += count;
        size -= count;
    }
    return y;
}

}  // namespace dael::modes
