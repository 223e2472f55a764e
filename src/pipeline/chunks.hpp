// SPDX-License-Identifier: Apache-2.0
// Cuts messages into chunks that fit a slot, and packs short messages into one chunk.
//
// Promises: every IV is taken here, before anything is written, so that chunks may be processed in
// place and in any order. Messages that the mode cannot cut stay whole. Empty messages are left
// out.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/backend.hpp"

namespace dael::pipeline {

// A segment of host memory and where it lies in its chunk's buffer.
struct Piece {
    core::Segment segment;
    std::size_t place = 0;  // bytes from the buffer's start, a multiple of 16
};

// Host memory that one copy moves, since it is contiguous on both sides.
struct Extent {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::size_t size = 0;
    std::size_t place = 0;
};

struct Chunk {
    std::size_t first = 0;  // of Chunks::pieces
    std::size_t count = 0;
    std::size_t size = 0;  // bytes from the buffer's start that are in use
};

struct Chunks {
    std::vector<Piece> pieces;
    std::vector<Chunk> chunks;

    std::span<const Piece> of(const Chunk& chunk) const noexcept {
        return std::span(pieces).subspan(chunk.first, chunk.count);
    }
};

// The smallest chunk in which every message that cannot be cut finds room.
std::size_t least_chunk(Mode mode, Direction direction, std::span<const core::Segment> segments);

// Cuts for slots of `capacity` bytes, which is at least least_chunk(). A single long message starts
// and ends with small chunks: while the first chunk goes in nothing comes out, and the other way
// round at the end, and these two stretches are what keeps the whole below the bus's rate.
Chunks cut(Mode mode, Direction direction, std::span<const core::Segment> segments,
           std::size_t capacity);

// The same for XTS: chunks of whole sectors, each a piece of its own.
std::size_t least_chunk(std::size_t sector_size);
Chunks cut_sectors(const core::Segment& segment, std::size_t sector_size, std::size_t capacity);

// The copies of one side that a chunk takes: short pieces that follow one another in host memory,
// and in the buffer, are one. (Long ones stay apart: neighbours may be separate page-locked
// allocations, which one copy may not span.)
std::vector<Extent> extents_in(std::span<const Piece> pieces);
std::vector<Extent> extents_out(std::span<const Piece> pieces);

}  // namespace dael::pipeline
