// SPDX-License-Identifier: Apache-2.0
// The 128-bit big-endian counter of CTR (SP 800-38A 6.5 and B.1), which wraps modulo 2^128.
#pragma once

#include <cstdint>

#include <daelstrom/message.hpp>

namespace dael::modes {

constexpr Block counter_add(Block counter, std::uint64_t blocks) noexcept {
    unsigned carry = 0;
    for (int i = 15; i >= 0; --i) {
        const unsigned sum = counter[i] + static_cast<unsigned>(blocks & 0xff) + carry;
        counter[i] = static_cast<std::uint8_t>(sum);
        carry = sum >> 8;
        blocks >>= 8;
    }
    return counter;
}

// GCM's inc32, `blocks` times: only the low 32 bits count, and wrap (SP 800-38D 6.2).
constexpr Block counter_add32(const Block& counter, std::uint32_t blocks) noexcept {
    Block sum = counter_add(counter, blocks);
    for (int i = 0; i < 12; ++i) sum[i] = counter[i];
    return sum;
}

// How many blocks can be made, this counter's own included, before its low 32 bits wrap to zero.
constexpr std::uint64_t blocks_before_wrap32(const Block& counter) noexcept {
    const std::uint32_t low = static_cast<std::uint32_t>(counter[12]) << 24 |
                              static_cast<std::uint32_t>(counter[13]) << 16 |
                              static_cast<std::uint32_t>(counter[14]) << 8 | counter[15];
    return (std::uint64_t{1} << 32) - low;
}

}  // namespace dael::modes
