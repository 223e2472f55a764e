// SPDX-License-Identifier: Apache-2.0
// What tensor cores count for kernels/gcm_quads.hpp and kernels/gcm_fused.hpp, on the host.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/gcm_quads.hpp"

namespace dael::test {

inline std::uint32_t word(const kernels::Words4& v, std::uint32_t i) {
    std::uint32_t words[4];
    std::memcpy(words, &v, sizeof words);
    return words[i];
}

// What a lane's accumulators get of one operand: 64 rows of registers (PTX ISA, wgmma m64nNk256:
// lane 4 g + t has words t of both halves of rows g and g + 8) by 128 columns of memory. `a[lane]`
// are a warp's registers.
inline void count(std::uint32_t (&counts)[64], const std::uint32_t (&a)[32][4], std::uint32_t lane,
                  const std::uint32_t* columns) {
    const std::uint32_t g = lane / 4, t = lane % 4;
    for (std::uint32_t i = 0; i < 64; ++i) {
        const std::uint32_t row = i / 2 % 2, column = 8 * (i / 4) + 2 * t + i % 2;
        for (std::uint32_t k = 0; k < 8; ++k)
            counts[i] += static_cast<std::uint32_t>(
                std::popcount(a[4 * g + k % 4][2 * (k / 4) + row] &
                              columns[(k / 4 * kernels::kQuadColumns + column) * 4 + k % 4]));
    }
}

// The words of a binary matrix that multiplies by `factor`: put(output, word, bits).
template <class Put>
void for_each_word(const kernels::Words4& factor, Put put) {
    for (std::uint32_t of = 0; of < 4; ++of)
        for (std::uint32_t output = 0; output < 128; ++output) {
            std::uint32_t bits = 0;
            for (std::uint32_t bit = 0; bit < 32; ++bit) {
                const kernels::Words4 product =
                    kernels::gf_multiply(factor, kernels::gf_basis(32 * of + bit));
                bits |= (word(product, output / 32) >> (output % 32) & 1) << bit;
            }
            put(output, of, bits);
        }
}

}  // namespace dael::test
