// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chunks.hpp"

#include <utility>

namespace dael::pipeline {
namespace {

constexpr std::size_t kWorthOwnCopy = std::size_t{128} << 10;

std::size_t aligned(std::uint64_t size) noexcept {
    return static_cast<std::size_t>((size + kBlockSize - 1) / kBlockSize * kBlockSize);
}

template <class Follows>
std::vector<Extent> extents(std::span<const Piece> pieces, bool rows, Follows follows) {
    std::vector<Extent> result;
    std::size_t before = 0;  // which message the last one was of
    for (const Piece& piece : pieces) {
        const auto size = static_cast<std::size_t>(piece.message.size);
        if (size == 0) continue;
        if (!result.empty() && ((rows && piece.index - before <= 1) || size < kWorthOwnCopy) &&
            result.back().place + result.back().size == piece.data &&
            follows(result.back(), piece.message))
            result.back().size += size;
        else
            result.push_back({piece.message.in, piece.message.out, size, piece.data});
        before = piece.index;
    }
    return result;
}

}  // namespace

std::size_t footprint(const Cipher& cipher, const Message& message) noexcept {
    return aligned(message.size) +
           (authenticates(cipher.mode) ? aligned(cipher.tag) + aligned(message.aad_size) : 0);
}

void lay_out(const Cipher& cipher, std::size_t list, Chunk& chunk) noexcept {
    std::size_t at = list, end = list;
    for (Piece& piece : chunk.pieces) {
        piece.data = at;
        end = at + static_cast<std::size_t>(piece.message.size);
        at += aligned(piece.message.size);
    }
    chunk.data_end = chunk.tags_end = chunk.end = end;
    if (!authenticates(cipher.mode)) return;
    chunk.data_end = at;
    for (Piece& piece : chunk.pieces) piece.tag = std::exchange(at, at + aligned(cipher.tag));
    chunk.tags_end = at;
    for (Piece& piece : chunk.pieces)
        piece.aad = std::exchange(at, at + aligned(piece.message.aad_size));
    chunk.end = at;
}

std::vector<Extent> extents_in(std::span<const Piece> pieces, bool rows) {
    return extents(pieces, rows, [](const Extent& before, const Message& message) {
        return before.in && before.in + before.size == message.in;  // null: a keystream
    });
}

std::vector<Extent> extents_out(std::span<const Piece> pieces, bool rows) {
    return extents(pieces, rows, [](const Extent& before, const Message& message) {
        return before.out + before.size == message.out;
    });
}

}  // namespace dael::pipeline
