// SPDX-License-Identifier: Apache-2.0
// XTS above the backends: what a call may ask, and cutting a run of sectors at their edges.
#pragma once

#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/modes.hpp>
#include <daelstrom/xts.hpp>

#include "core/backend.hpp"

namespace dael::modes {

// Whether the sectors and the data go together. Errors: invalid_argument (sector size, null data),
// ragged_length (a last sector of less than 16 bytes), overlap, limit (sector numbers past 2^128).
Result<> check(const XtsSectors& sectors, const std::uint8_t* in, const std::uint8_t* out,
               std::size_t size);

// What check() has passed, with the first sector's number as its IV.
core::Segment to_segment(const XtsSectors& sectors, const std::uint8_t* in, std::uint8_t* out,
                         std::size_t size) noexcept;

// The number of a later sector. Numbers are little-endian, 128 bits (IEEE 1619 5.1).
Block sector_add(Block number, std::uint64_t sectors) noexcept;

// `size` bytes of `segment` from byte `begin` on, which is a sector's edge; it ends at one, too, or
// with the segment.
core::Segment slice_sectors(const core::Segment& segment, std::size_t sector_size,
                            std::size_t begin, std::size_t size) noexcept;

// All of `segment` in pieces of whole sectors, about `piece` bytes each and one sector at least.
std::vector<core::Segment> split_sectors(const core::Segment& segment, std::size_t sector_size,
                                         std::size_t piece);

}  // namespace dael::modes
