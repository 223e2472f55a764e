// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chunks.hpp"

#include <algorithm>

namespace dael::pipeline {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLeast = std::size_t{64} << 10;  // bytes worth a chunk
constexpr std::size_t kSmallestChunk = std::size_t{1}
                                       << 20;  // of the small chunks at start and end
constexpr std::size_t kWorthOwnCopy = std::size_t{128} << 10;
constexpr std::size_t kRamp = 8;  // the first chunk is this part of a full one

std::size_t aligned(std::uint64_t size) noexcept {
    return static_cast<std::size_t>((size + kBlockSize - 1) / kBlockSize * kBlockSize);
}

class Packer {
  public:
    Packer(const Cipher& cipher, const Packing& packing)
        : cipher_(cipher),
          unit_(modes::traits(cipher.mode).unit(cipher)),
          list_(packing.list),
          capacity_(packing.capacity - packing.list),
          most_pieces_(packing.most_pieces) {}

    // One message in chunks of its own: sizes double up to the full chunk, and halve towards the
    // end. They are whole pages where that goes, and whole units in any case.
    void ramp(const Message& message, std::size_t index) {
        const std::size_t step = cipher_.mode == Mode::xts ? unit_ : kPage;
        std::size_t next = std::max(kSmallestChunk, capacity_ / kRamp);
        for (std::uint64_t begin = 0; begin < message.size;) {
            const auto left = static_cast<std::size_t>(message.size - begin);
            const std::size_t size =
                std::min({next, capacity_, std::max(kSmallestChunk, left / 2)});
            begin += add_part(message, index, begin, std::max(size / step * step, unit_));
            close();
            next = std::min(next * 2, capacity_);
        }
    }

    // Messages one after another into shared chunks.
    void pack(const Message& message, std::size_t index) {
        if (!modes::can_cut(cipher_)) {
            add(message, index);
            return;
        }
        const std::size_t most = capacity_ / unit_ * unit_;
        for (std::uint64_t begin = 0; begin < message.size;)
            begin += add_part(message, index, begin, most);
    }

    Chunks finish() && {
        close();
        return std::move(result_);
    }

  private:
    // Adds up to `size` bytes from `begin` on; returns how many.
    std::uint64_t add_part(const Message& message, std::size_t index, std::uint64_t begin,
                           std::size_t size) {
        const std::size_t whole = begin == 0 && message.size > size ? size - message.skip : size;
        const std::uint64_t part = std::min<std::uint64_t>(whole, message.size - begin);
        add(modes::slice(cipher_, message, begin, part), index);
        return part;
    }

    void add(const Message& message, std::size_t index) {
        const std::size_t size = footprint(cipher_, message);
        const std::size_t open = result_.pieces.size() - first_;
        if (open != 0 && (size > capacity_ - used_ || open == most_pieces_)) close();
        result_.pieces.push_back({message, index});
        used_ += size;
    }

    void close() {
        const std::size_t count = result_.pieces.size() - first_;
        if (count == 0) return;
        Chunk chunk{first_, count};
        const auto pieces = std::span(result_.pieces).subspan(first_);
        std::size_t at = list_, end = list_;
        for (Piece& piece : pieces) {
            piece.data = at;
            end = at + static_cast<std::size_t>(piece.message.size);
            at += aligned(piece.message.size);
        }
        chunk.data_end = chunk.tags_end = chunk.end = end;
        if (authenticates(cipher_.mode)) {
            chunk.data_end = at;
            for (Piece& piece : pieces) piece.tag = std::exchange(at, at + kBlockSize);
            chunk.tags_end = at;
            for (Piece& piece : pieces)
                piece.aad = std::exchange(at, at + aligned(piece.message.aad_size));
            chunk.end = at;
        }
        result_.chunks.push_back(chunk);
        first_ = result_.pieces.size();
        used_ = 0;
    }

    const Cipher cipher_;
    const std::size_t unit_, list_, capacity_, most_pieces_;
    std::size_t first_ = 0;  // piece of the open chunk
    std::size_t used_ = 0;   // bytes of the open chunk
    Chunks result_;
};

template <class Follows>
std::vector<Extent> extents(std::span<const Piece> pieces, Follows follows) {
    std::vector<Extent> result;
    for (const Piece& piece : pieces) {
        const auto size = static_cast<std::size_t>(piece.message.size);
        if (size == 0) continue;
        if (!result.empty() && size < kWorthOwnCopy &&
            result.back().place + result.back().size == piece.data &&
            follows(result.back(), piece.message))
            result.back().size += size;
        else
            result.push_back({piece.message.in, piece.message.out, size, piece.data});
    }
    return result;
}

}  // namespace

std::size_t footprint(const Cipher& cipher, const Message& message) noexcept {
    return aligned(message.size) +
           (authenticates(cipher.mode) ? kBlockSize + aligned(message.aad_size) : 0);
}

std::size_t least_chunk(const Request& request) {
    std::size_t least = kLeast;
    if (modes::can_cut(request.cipher))
        return std::max(least, aligned(modes::traits(request.cipher.mode).unit(request.cipher)));
    const std::size_t keys = request.keys.list.size();
    for (const Message& message : request.messages)
        if (modes::takes(request.cipher, message, keys))
            least = std::max(least, footprint(request.cipher, message));
    return least;
}

Chunks cut(const Request& request, const Packing& packing) {
    Packer packer(request.cipher, packing);
    const bool alone = request.messages.size() == 1 && modes::can_cut(request.cipher);
    (void)for_each_valid(request, 0, request.messages.size(),
                         [&](std::size_t first, std::size_t count) -> Result<> {
                             for (std::size_t i = first; i < first + count; ++i) {
                                 const Message& message = request.messages[i];
                                 if (message.size == 0 && !authenticates(request.cipher.mode))
                                     continue;
                                 if (alone)
                                     packer.ramp(message, i);
                                 else
                                     packer.pack(message, i);
                             }
                             return {};
                         });
    return std::move(packer).finish();
}

std::vector<Extent> extents_in(std::span<const Piece> pieces) {
    return extents(pieces, [](const Extent& before, const Message& message) {
        return before.in && before.in + before.size == message.in;  // null: a keystream
    });
}

std::vector<Extent> extents_out(std::span<const Piece> pieces) {
    return extents(pieces, [](const Extent& before, const Message& message) {
        return before.out + before.size == message.out;
    });
}

}  // namespace dael::pipeline
