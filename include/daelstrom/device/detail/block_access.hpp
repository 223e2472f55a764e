// SPDX-License-Identifier: Apache-2.0
// Blocks, and how they are read and written in memory: any alignment, any part. For daelstrom's own
// use.
#pragma once

#include <cstdint>
#include <cstring>

#include <daelstrom/device/detail/hd.hpp>

namespace dael::kernels {

// A block or a state: four columns, words in memory order.
struct alignas(16) Words4 {
    std::uint32_t x, y, z, w;
};

DAEL_HD Words4 operator^(const Words4& a, const Words4& b) {
    return {a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w};
}

// The first `size` (0 to 16) bytes of a block, zeros after them.
DAEL_HD Words4 first_bytes(const Words4& v, int size) {
    const auto word = [size](std::uint32_t w, int at) {
        const int here = size - at;
        return here >= 4 ? w : here <= 0 ? 0u : w & ((1u << (8 * here)) - 1);
    };
    return {word(v.x, 0), word(v.y, 4), word(v.z, 8), word(v.w, 12)};
}

DAEL_HD bool aligned16(const void* a, const void* b) {
    return ((reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b)) & 15) == 0;
}

// A whole block at an address that is a multiple of 16.
DAEL_HD Words4 load_aligned(const unsigned char* p) {
#ifdef __CUDA_ARCH__
    const uint4 v = *reinterpret_cast<const uint4*>(p);
    return {v.x, v.y, v.z, v.w};
#else
    Words4 v;
    std::memcpy(&v, p, sizeof v);
    return v;
#endif
}
DAEL_HD void store_aligned(unsigned char* p, const Words4& v) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<uint4*>(p) = make_uint4(v.x, v.y, v.z, v.w);
#else
    std::memcpy(p, &v, sizeof v);
#endif
}

// A word at an address that is a multiple of 4. The host's compiler may assume what it likes of a
// pointer's type, so there the bytes are copied.
DAEL_HD std::uint32_t load_word(const unsigned char* p) {
#ifdef __CUDA_ARCH__
    return *reinterpret_cast<const std::uint32_t*>(p);
#else
    std::uint32_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
#endif
}
DAEL_HD void store_word(unsigned char* p, std::uint32_t word) {
#ifdef __CUDA_ARCH__
    *reinterpret_cast<std::uint32_t*>(p) = word;
#else
    std::memcpy(p, &word, sizeof word);
#endif
}

// Bytes `from` to `to` (0 to 16) of a block that would begin at `p`; the others are left as zero
// and not touched. Four bytes at a time where the address allows.
DAEL_HD Words4 load_part(const unsigned char* p, int from, int to) {
    std::uint32_t words[4] = {0, 0, 0, 0};
    const bool word_aligned = (reinterpret_cast<std::uintptr_t>(p) & 3) == 0;
    DAEL_UNROLL(4)
    for (int w = 0; w < 4; ++w) {
        if (word_aligned && from <= 4 * w && 4 * w + 4 <= to) {
            words[w] = load_word(p + 4 * w);
            continue;
        }
        DAEL_UNROLL(4)
        for (int b = 0; b < 4; ++b)
            if (const int at = 4 * w + b; at >= from && at < to)
                words[w] |= std::uint32_t{p[at]} << (8 * b);
    }
    return {words[0], words[1], words[2], words[3]};
}
DAEL_HD void store_part(unsigned char* p, const Words4& v, int from, int to) {
    const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
    const bool word_aligned = (reinterpret_cast<std::uintptr_t>(p) & 3) == 0;
    DAEL_UNROLL(4)
    for (int w = 0; w < 4; ++w) {
        if (word_aligned && from <= 4 * w && 4 * w + 4 <= to) {
            store_word(p + 4 * w, words[w]);
            continue;
        }
        DAEL_UNROLL(4)
        for (int b = 0; b < 4; ++b)
            if (const int at = 4 * w + b; at >= from && at < to)
                p[at] = static_cast<unsigned char>(words[w] >> (8 * b));
    }
}

}  // namespace dael::kernels
