// SPDX-License-Identifier: Apache-2.0
// A chunk of a sealed stream in a buffer: some whole segments as the stream has them, the header in
// front of the first one. Chunk k of n segments begins at byte k * n * segment of the stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>

#include "formats/layout.hpp"

namespace dael::formats {

// Calls work(span) for the place of each segment's plaintext in the chunk that begins with segment
// `first`, until `size` bytes have been covered. Work returns a Result<>.
template <class Work>
Result<> for_pieces(const Layout& layout, std::uint64_t first, std::uint8_t* chunk,
                    std::uint64_t size, Work work) {
    for (std::uint64_t i = first; size != 0; ++i, chunk += layout.segment) {
        const std::uint64_t piece = std::min(size, layout.room(i));
        DAEL_TRY(work(std::span(chunk + (i == 0 ? layout.header : 0), piece)));
        size -= piece;
    }
    return {};
}

// Bytes of plaintext in a chunk of `sealed` bytes that begins with segment `first`. Errors:
// bad_format where a last one ends too early, limit.
inline Result<std::uint64_t> plain_in_chunk(const Layout& layout, std::uint64_t first,
                                            std::uint64_t sealed) {
    auto plain = layout.plain_size(first * layout.segment + sealed);
    if (plain) *plain -= layout.plain_at(first);
    return plain;
}

}  // namespace dael::formats
