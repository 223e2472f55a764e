// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chunks.hpp"

#include <algorithm>

#include "modes/segment.hpp"
#include "modes/xts.hpp"

namespace dael::pipeline {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLeast = std::size_t{64} << 10;    // bytes worth a chunk
constexpr std::size_t kSmallest = std::size_t{1} << 20;  // of the small chunks at start and end
constexpr std::size_t kWorthOwnCopy = std::size_t{128} << 10;
constexpr std::size_t kRamp = 8;  // the first chunk is this part of a full one

std::size_t aligned(std::size_t size) {
    return (size + kBlockSize - 1) / kBlockSize * kBlockSize;
}

// `slice(segment, begin, size)` is the mode's way to take a part of a segment.
template <class Slice>
class Packer {
  public:
    Packer(Slice slice, std::size_t capacity) : slice_(slice), capacity_(capacity) {}

    // One message in chunks of its own: sizes double up to the full chunk, and halve towards the
    // end. They are multiples of `unit`, and `least` where that is too much.
    void ramp(const core::Segment& segment, std::size_t unit, std::size_t least) {
        std::size_t next = std::max(kSmallest, capacity_ / kRamp);
        for (std::size_t begin = 0; begin < segment.size;) {
            const std::size_t left = segment.size - begin;
            std::size_t size = std::min({next, capacity_, std::max(kSmallest, left / 2)});
            size = std::max(size / unit * unit, least);
            begin += add(segment, begin, size);
            close();
            next = std::min(next * 2, capacity_);
        }
    }

    // Messages one after another into shared chunks.
    void pack(const core::Segment& segment) {
        for (std::size_t begin = 0; begin < segment.size;) {
            if (used_ != 0 && aligned(segment.size - begin) > capacity_ - used_) close();
            begin += add(segment, begin, capacity_);
        }
    }

    Chunks finish() && {
        close();
        return std::move(result_);
    }

  private:
    // Adds up to `size` bytes, where the mode may cut; returns how many.
    std::size_t add(const core::Segment& segment, std::size_t begin, std::size_t size) {
        const std::size_t whole = begin == 0 && segment.size > size ? size - segment.skip : size;
        const std::size_t part = std::min(whole, segment.size - begin);
        result_.pieces.push_back({slice_(segment, begin, part), used_});
        used_ += aligned(part);
        return part;
    }

    void close() {
        if (used_ == 0) return;
        const std::size_t first =
            result_.chunks.empty() ? 0 : result_.chunks.back().first + result_.chunks.back().count;
        const Piece& last = result_.pieces.back();
        result_.chunks.push_back(
            {first, result_.pieces.size() - first, last.place + last.segment.size});
        used_ = 0;
    }

    const Slice slice_;
    const std::size_t capacity_;
    std::size_t used_ = 0;  // bytes of the open chunk
    Chunks result_;
};

template <class Follows>
std::vector<Extent> extents(std::span<const Piece> pieces, Follows follows) {
    std::vector<Extent> result;
    for (const auto& [segment, place] : pieces) {
        if (!result.empty() && segment.size < kWorthOwnCopy &&
            result.back().place + result.back().size == place && follows(result.back(), segment))
            result.back().size += segment.size;
        else
            result.push_back({segment.in, segment.out, segment.size, place});
    }
    return result;
}

}  // namespace

std::size_t least_chunk(Mode mode, Direction direction, std::span<const core::Segment> segments) {
    std::size_t least = kLeast;
    if (parallel_within_message(mode, direction)) return least;
    for (const auto& segment : segments) least = std::max(least, aligned(segment.size));
    return least;
}

Chunks cut(Mode mode, Direction direction, std::span<const core::Segment> segments,
           std::size_t capacity) {
    const auto slice = [mode](const core::Segment& segment, std::size_t begin, std::size_t size) {
        return modes::slice(mode, segment, begin, size);
    };
    Packer packer(slice, capacity);
    if (segments.size() == 1 && parallel_within_message(mode, direction))
        packer.ramp(segments[0], kPage, kBlockSize);
    else
        for (const auto& segment : segments) packer.pack(segment);
    return std::move(packer).finish();
}

std::size_t least_chunk(std::size_t sector_size) {
    return std::max(kLeast, aligned(sector_size));
}

Chunks cut_sectors(const core::Segment& segment, std::size_t sector_size, std::size_t capacity) {
    const auto slice = [sector_size](const core::Segment& whole, std::size_t begin,
                                     std::size_t size) {
        return modes::slice_sectors(whole, sector_size, begin, size);
    };
    Packer packer(slice, capacity);
    packer.ramp(segment, sector_size, sector_size);
    return std::move(packer).finish();
}

std::vector<Extent> extents_in(std::span<const Piece> pieces) {
    return extents(pieces, [](const Extent& before, const core::Segment& segment) {
        return before.in + before.size == segment.in;
    });
}

std::vector<Extent> extents_out(std::span<const Piece> pieces) {
    return extents(pieces, [](const Extent& before, const core::Segment& segment) {
        return before.out + before.size == segment.out;
    });
}

}  // namespace dael::pipeline
