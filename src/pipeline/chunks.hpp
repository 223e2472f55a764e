// SPDX-License-Identifier: Apache-2.0
// A chunk: what a worker takes of a call's messages at a time (work_queue.hpp), and how it lies in
// a staging buffer (slots.hpp) on its way across a device.
//
// A chunk in its buffer, each part from a multiple of 16 on:
//     list (where the device reads it) | data of each message | tags, 16 bytes each | AAD of each
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pipeline/request.hpp"

namespace dael::pipeline {

// How far a piece has come. Of one that is untouched, or leaving the staging buffer, nothing is
// written; of one that is begun a device writes the caller's memory. One that is lost may have been
// written in part.
enum class Stand : std::uint8_t { untouched, begun, leaving, done, lost };

// A message of host memory, or a part of one, and where it lies in its chunk's buffer.
struct Piece {
    Message message;
    std::size_t index = 0;  // of the message in the request
    std::size_t data = 0;   // bytes from the buffer's start, as the others
    std::size_t tag = 0;
    std::size_t aad = 0;
    Stand stand = Stand::untouched;
    bool written = false;  // its output may be, by somebody who then failed
};

// Host memory that one copy moves, since it is contiguous on both sides.
struct Extent {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::size_t size = 0;
    std::size_t place = 0;
};

struct Chunk {
    std::vector<Piece> pieces;
    std::size_t data_end = 0;  // bytes from the buffer's start
    std::size_t tags_end = 0;
    std::size_t end = 0;
};

// What a message takes of a chunk.
std::size_t footprint(const Cipher& cipher, const Message& message) noexcept;

// The least that is worth a chunk, and the least of the chunks that a long message begins and ends
// with.
inline constexpr std::size_t kLeastChunk = std::size_t{64} << 10;
inline constexpr std::size_t kSmallChunk = std::size_t{1} << 20;

// Says where each piece lies, behind a list of `list` bytes.
void lay_out(const Cipher& cipher, std::size_t list, Chunk& chunk) noexcept;

// The copies of the data of one side that pieces take: those that follow one another in host
// memory, and in the buffer, are one. Long ones only where one copy may span `rows` of those that
// are neighbours in the list, too: others may be separate page-locked allocations.
std::vector<Extent> extents_in(std::span<const Piece> pieces, bool rows);
std::vector<Extent> extents_out(std::span<const Piece> pieces, bool rows);

}  // namespace dael::pipeline
