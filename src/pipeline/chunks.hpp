// SPDX-License-Identifier: Apache-2.0
// Cuts messages into chunks that fit a staging buffer (slots.hpp), and packs short ones into one.
//
// Promises: every start is taken here, before anything is written, so that chunks may be processed
// in place and in any order. Messages that the mode cannot cut stay whole. Messages that need
// nothing of a device are left out: without a byte, in modes that do not authenticate.
//
// A chunk in its buffer, each part from a multiple of 16 on:
//     list (where the device reads it) | data of each message | tags, 16 bytes each | AAD of each
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "pipeline/request.hpp"

namespace dael::pipeline {

// A message of host memory, or a part of one, and where it lies in its chunk's buffer.
struct Piece {
    Message message;
    std::size_t index = 0;  // of the message in the request
    std::size_t data = 0;   // bytes from the buffer's start, as the others
    std::size_t tag = 0;
    std::size_t aad = 0;
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
    std::size_t data_end = 0;  // bytes from the buffer's start
    std::size_t tags_end = 0;
    std::size_t end = 0;
};

struct Chunks {
    std::vector<Piece> pieces;
    std::vector<Chunk> chunks;

    std::span<const Piece> of(const Chunk& chunk) const noexcept {
        return std::span(pieces).subspan(chunk.first, chunk.count);
    }
};

// How a request's messages may be laid into chunks.
struct Packing {
    std::size_t capacity = 0;  // bytes of a buffer, at least least_chunk()
    std::size_t list = 0;      // bytes that the list takes at the buffer's start
    std::size_t most_pieces = ~std::size_t{0};
};

// What a message takes of a chunk.
std::size_t footprint(const Cipher& cipher, const Message& message) noexcept;

// The smallest chunk in which every message that cannot be cut finds room, without a list.
std::size_t least_chunk(const Request& request);

// A single long message that may be cut starts and ends with small chunks: while the first chunk
// goes in nothing comes out, and the other way round at the end, and these two stretches are what
// keeps the whole below the bus's rate. Messages that the mode refuses get their codes, the others
// ok.
Chunks cut(const Request& request, const Packing& packing);

// The copies of the data of one side that a chunk takes: short pieces that follow one another in
// host memory, and in the buffer, are one. (Long ones stay apart: neighbours may be separate
// page-locked allocations, which one copy may not span.)
std::vector<Extent> extents_in(std::span<const Piece> pieces);
std::vector<Extent> extents_out(std::span<const Piece> pieces);

}  // namespace dael::pipeline
