// SPDX-License-Identifier: Apache-2.0
#include "formats/layout.hpp"

#include <algorithm>
#include <string>

namespace dael::sealed {
namespace {

using formats::kMaxSegments;

Error too_long(const Layout& layout) {
    return {Code::limit, "sealed data is at most 2^32 segments of " +
                             std::to_string(layout.segment) +
                             " bytes; use larger segments, or several files"};
}

Error within_a_segment(std::uint64_t size) {
    return {Code::invalid_argument, std::to_string(size) +
                                        " bytes end within a segment; only a stream's last chunk "
                                        "may"};
}

std::uint64_t room_of(const Layout& layout) {
    return layout.segment - gcm::kTagSize;
}

}  // namespace

std::uint64_t Layout::room(std::uint64_t i) const noexcept {
    return room_of(*this) - (i == 0 ? header : 0);
}

std::uint64_t Layout::plain_at(std::uint64_t i) const noexcept {
    return i == 0 ? 0 : i * room_of(*this) - header;
}

std::uint64_t Layout::segment_of(std::uint64_t at) const noexcept {
    return (at + header) / room_of(*this);
}

std::uint64_t Layout::segments(std::uint64_t plain) const noexcept {
    return plain == 0 ? 1 : segment_of(plain - 1) + 1;
}

Result<std::uint64_t> Layout::sealed_size(std::uint64_t plain) const {
    // The first comparison keeps the arithmetic of the second within 64 bits.
    if (plain > kMaxSegments * room_of(*this) || segments(plain) > kMaxSegments)
        return too_long(*this);
    return header + plain + segments(plain) * gcm::kTagSize;
}

Result<std::uint64_t> Layout::plain_size(std::uint64_t sealed) const {
    if (sealed > kMaxSegments * segment) return too_long(*this);
    const std::uint64_t count = sealed / segment + (sealed % segment != 0);
    const std::uint64_t front = count <= 1 ? header : (count - 1) * segment;
    // Only the first segment may be empty: nobody begins another without a byte for it.
    if (sealed < front + gcm::kTagSize + (count > 1 ? 1 : 0))
        return Error{Code::bad_format, "the data is cut off or added to: no segment ends after " +
                                           std::to_string(sealed) + " bytes"};
    return sealed - header - count * gcm::kTagSize;
}

Result<Chunk> Layout::covering(Range plain, std::uint64_t size) const {
    const auto all = sealed_size(size);
    if (!all) return all.error();
    if (plain.at > size || plain.size > size - plain.at)
        return Error{Code::invalid_argument, std::to_string(plain.size) + " bytes from byte " +
                                                 std::to_string(plain.at) +
                                                 " on are not all within the " +
                                                 std::to_string(size) + " bytes of plaintext"};
    const std::uint64_t segments_of_all = segments(size), to = plain.at + plain.size;
    const std::uint64_t first = std::min(segment_of(plain.at), segments_of_all - 1);
    const std::uint64_t end = to == size        ? segments_of_all
                              : plain.size == 0 ? first + 1
                                                : segment_of(to - 1) + 1;
    const bool last = end == segments_of_all;
    const std::uint64_t sealed_end = last ? *all : end * segment;
    const std::uint64_t plain_end = last ? size : plain_at(end);
    return Chunk{first,
                 end - first,
                 {plain_at(first), plain_end - plain_at(first)},
                 {first * segment, sealed_end - first * segment},
                 last};
}

Result<Chunk> Layout::of_plain(std::uint64_t first, std::uint64_t plain, bool last) const {
    const std::uint64_t most = kMaxSegments * room_of(*this);
    if (first > kMaxSegments || plain > most) return too_long(*this);
    const std::uint64_t end = plain_at(first) + plain;
    std::uint64_t count = 0;
    if (last) {
        if (plain == 0 && first != 0)
            return Error{
                Code::invalid_argument,
                "a last chunk without a byte; the one before it should have been the last"};
        count = segments(end) - first;
    } else if (plain != 0) {
        if ((end + header) % room_of(*this) != 0) return within_a_segment(plain);
        count = segment_of(end) - first;
    }
    if (first + count > kMaxSegments) return too_long(*this);
    const std::uint64_t front = first == 0 && count != 0 ? header : 0;
    return Chunk{first,
                 count,
                 {plain_at(first), plain},
                 {first * segment, front + plain + count * gcm::kTagSize},
                 last};
}

Result<Chunk> Layout::of_sealed(std::uint64_t first, std::uint64_t sealed, bool last) const {
    if (first > kMaxSegments || sealed > kMaxSegments * segment) return too_long(*this);
    const std::uint64_t count = sealed / segment + (sealed % segment != 0);
    if (first + count > kMaxSegments) return too_long(*this);
    std::uint64_t end = 0;
    if (last) {
        if (sealed == 0 && first != 0)  // whose end would never be verified
            return Error{Code::invalid_argument, "a last chunk without a segment"};
        const auto size = plain_size(first * segment + sealed);
        if (!size) return size.error();
        end = *size;
    } else {
        if (sealed % segment != 0) return within_a_segment(sealed);
        end = plain_at(first + count);
    }
    return Chunk{
        first, count, {plain_at(first), end - plain_at(first)}, {first * segment, sealed}, last};
}

Range Layout::place(const Chunk& chunk, std::uint64_t i) const noexcept {
    const std::uint64_t which = chunk.first + i;
    const std::uint64_t left = chunk.plain.at + chunk.plain.size - plain_at(which);
    return {i * segment + (which == 0 ? header : 0), std::min(left, room(which))};
}

}  // namespace dael::sealed
