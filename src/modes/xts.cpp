// SPDX-License-Identifier: Apache-2.0
#include "modes/xts.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <daelstrom/device/detail/aes_math.hpp>

#include "modes/segment.hpp"

namespace dael::modes {

Result<> check(const XtsSectors& sectors, const std::uint8_t* in, const std::uint8_t* out,
               std::size_t size) {
    if (sectors.size < kXtsLeast || sectors.size > kXtsMost)
        return Error{Code::invalid_argument, "sector size is " + std::to_string(sectors.size) +
                                                 " bytes; XTS takes 16 to " +
                                                 std::to_string(kXtsMost)};
    // The pointers are those of a message in a mode that takes any length.
    DAEL_TRY(check(Mode::ofb, Message{in, const_cast<std::uint8_t*>(out), size, {}, 0}));
    if (const std::size_t last = size % sectors.size; last != 0 && last < kXtsLeast)
        return Error{Code::ragged_length,
                     "length " + std::to_string(size) + " leaves a last sector of " +
                         std::to_string(last) +
                         " bytes; it takes at least 16: give whole sectors of " +
                         std::to_string(sectors.size) + " bytes, or a longer rest"};
    const std::uint64_t count = size / sectors.size + (size % sectors.size != 0);
    constexpr auto kLargest = std::numeric_limits<std::uint64_t>::max();
    if (count != 0 && sectors.first_high == kLargest && count - 1 > kLargest - sectors.first)
        return Error{Code::limit, "the sectors' numbers pass 2^128 - 1"};
    return {};
}

core::Segment to_segment(const XtsSectors& sectors, const std::uint8_t* in, std::uint8_t* out,
                         std::size_t size) noexcept {
    core::Segment segment{in, out, size, {}, 0};
    core::store_le(segment.iv.data(), sectors.first);
    core::store_le(segment.iv.data() + 8, sectors.first_high);
    return segment;
}

Block sector_add(Block number, std::uint64_t sectors) noexcept {
    const auto low = core::load_le<std::uint64_t>(number.data());
    const auto high = core::load_le<std::uint64_t>(number.data() + 8);
    core::store_le(number.data(), low + sectors);
    core::store_le(number.data() + 8, high + (low + sectors < low));
    return number;
}

core::Segment slice_sectors(const core::Segment& segment, std::size_t sector_size,
                            std::size_t begin, std::size_t size) noexcept {
    return {segment.in + begin, segment.out + begin, size,
            sector_add(segment.iv, begin / sector_size), 0};
}

std::vector<core::Segment> split_sectors(const core::Segment& segment, std::size_t sector_size,
                                         std::size_t piece) {
    piece = std::max(piece / sector_size, std::size_t{1}) * sector_size;
    std::vector<core::Segment> pieces;
    pieces.reserve(segment.size / piece + 1);
    for (std::size_t begin = 0; begin < segment.size; begin += piece)
        pieces.push_back(
            slice_sectors(segment, sector_size, begin, std::min(piece, segment.size - begin)));
    return pieces;
}

}  // namespace dael::modes
