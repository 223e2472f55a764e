// SPDX-License-Identifier: Apache-2.0
// How a thread block shares out one GCM message: its blocks, AAD first and then data, each filled
// up to whole ones, are rows of 256, a block to a thread of eight warps. The last one ends a row,
// so that what every thread owes its sum at last does not depend on the message's size.
//
// From row to row a sum is multiplied by H^256. At the end lane l owes H^(33 - l), of which one H
// is for the block of lengths, and its warp, the w-th of eight, H^(32 (7 - w)).
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/ttable.hpp>

namespace dael::kernels {

inline constexpr std::uint32_t kTeamWarps = 8, kTeamBlocks = kTeamWarps * kLanes;
// H^256 among a key's H^(2^j).
inline constexpr std::uint32_t kTeamSquare = 8;

// The rows as one thread sees them, the `place`-th of 256. Sizes in bytes, of messages with fewer
// than 2^27 blocks.
class TeamRows {
  public:
    DAEL_HD TeamRows(std::uint64_t aad_size, std::uint64_t data_size, std::uint32_t place)
        : aad_blocks_(static_cast<std::int32_t>((aad_size + 15) / 16)),
          aad_size_(static_cast<std::int32_t>(aad_size)) {
        const auto blocks = static_cast<std::uint32_t>(aad_blocks_) +
                            static_cast<std::uint32_t>((data_size + 15) / 16);
        count = (blocks + kTeamBlocks - 1) / kTeamBlocks;
        first_ = static_cast<std::int32_t>(place + blocks) -
                 static_cast<std::int32_t>(count * kTeamBlocks);
    }

    // Which block of the AAD is this thread's in a row, and which of the data; another number, less
    // than 0 or past the end, where it has none of that.
    DAEL_HD std::int32_t aad_block(std::uint32_t row) const {
        return first_ + static_cast<std::int32_t>(row * kTeamBlocks);
    }
    DAEL_HD std::int32_t data_block(std::uint32_t row) const {
        return aad_block(row) - aad_blocks_;
    }
    // Bytes of the AAD in the row's block: 1 to 16, or 0 where it is none.
    DAEL_HD int aad_here(std::uint32_t row) const {
        const std::int32_t block = aad_block(row);
        if (block < 0 || block >= aad_blocks_) return 0;
        const std::int32_t left = aad_size_ - block * 16;
        return left < 16 ? left : 16;
    }

    std::uint32_t count;  // rows

  private:
    std::int32_t aad_blocks_, aad_size_;
    std::int32_t first_ = 0;  // this thread's block in row 0, AAD and data being one sequence
};

// What a thread's sum is multiplied by in the end: H to this power, and then the warp's to that.
DAEL_HD std::uint32_t team_lane_power(std::uint32_t lane) {
    return kLanes + 1 - lane;
}
DAEL_HD std::uint32_t team_leap(std::uint32_t warp) {  // in 32 blocks
    return kTeamWarps - 1 - warp;
}

}  // namespace dael::kernels
