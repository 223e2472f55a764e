// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/unauthenticated.hpp>

#include <algorithm>

namespace dael {

Block pad(std::span<const std::uint8_t> tail) noexcept {
    Block block;
    block.fill(static_cast<std::uint8_t>(padding_for(tail.size())));
    std::ranges::copy(tail, block.begin());
    return block;
}

Result<std::size_t> unpad(const Block& last) noexcept {
    const unsigned count = last[kBlockSize - 1];
    // All ones in bit 31 where the condition is true; no comparison that could become a branch.
    unsigned wrong = (count - 1) | (kBlockSize - count);  // bit 31 when count is 0 or above 16
    wrong = (wrong >> 31) & 1;
    for (unsigned i = 0; i < kBlockSize; ++i) {
        const unsigned from_end = static_cast<unsigned>(kBlockSize) - i;  // 16 .. 1
        const unsigned inside = 1 ^ ((count - from_end) >> 31);   // 1 when from_end <= count
        const unsigned differs = (0u - (last[i] ^ count)) >> 31;  // 1 when they differ
        wrong |= inside & differs;
    }
    if (wrong)
        return Error{
            Code::bad_padding,
            "wrong padding: the key, the IV or the data is not what it was encrypted with"};
    return kBlockSize - count;
}

}  // namespace dael
