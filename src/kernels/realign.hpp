// SPDX-License-Identifier: Apache-2.0
// Bytes of one alignment from aligned words of another.
#pragma once

#include <daelstrom/device/detail/block_access.hpp>

namespace dael::kernels {

// The lower word of (high : low) shifted right by `bits`, 0 to 31.
DAEL_HD std::uint32_t funnel(std::uint32_t low, std::uint32_t high, std::uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __funnelshift_r(low, high, bits);
#else
    return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> bits);
#endif
}

// 16 of the 32 bytes of `a` and `b`, from byte `first` (0 to 15) on. Two steps choose the words and
// a third shifts bytes, without a branch or an index.
DAEL_HD Words4 bytes_from(const Words4& a, const Words4& b, std::uint32_t first) {
    const bool two = (first & 8) != 0, one = (first & 4) != 0;
    const std::uint32_t bits = first % 4 * 8;
    const std::uint32_t x0 = two ? a.z : a.x, x1 = two ? a.w : a.y, x2 = two ? b.x : a.z,
                        x3 = two ? b.y : a.w, x4 = two ? b.z : b.x, x5 = two ? b.w : b.y;
    const std::uint32_t y0 = one ? x1 : x0, y1 = one ? x2 : x1, y2 = one ? x3 : x2,
                        y3 = one ? x4 : x3, y4 = one ? x5 : x4;
    return {funnel(y0, y1, bits), funnel(y1, y2, bits), funnel(y2, y3, bits), funnel(y3, y4, bits)};
}

}  // namespace dael::kernels
