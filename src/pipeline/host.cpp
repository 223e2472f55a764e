// SPDX-License-Identifier: Apache-2.0
#include "pipeline/host.hpp"

#include <algorithm>
#include <numeric>

#include "modes/segment.hpp"
#include "modes/xts.hpp"

namespace dael::pipeline {
namespace {

// What one more thread must get to be worth waking. Waking takes 5 to 20 microseconds; in that time
// a core does 128 KiB in the parallel modes and 16 KiB in the sequential ones.
constexpr std::size_t kWorthParallel = std::size_t{128} << 10;
constexpr std::size_t kWorthSequential = std::size_t{16} << 10;

// Pieces are small enough that threads which the system slows down do not hold up the call, and
// large enough that taking one costs nothing beside it. 64 KiB also keeps whole pages together.
constexpr std::size_t kSmallestPiece = std::size_t{64} << 10;
constexpr std::size_t kLargestPiece = std::size_t{1} << 20;
constexpr std::size_t kPiecesPerThread = 4;

std::size_t total_size(std::span<const core::Segment> segments) {
    return std::accumulate(segments.begin(), segments.end(), std::size_t{0},
                           [](std::size_t sum, const core::Segment& s) { return sum + s.size; });
}

// Cuts long messages, and collects short ones, to shares of about one piece.
Shares share_out_parallel(Mode mode, std::span<const core::Segment> segments, int threads) {
    const std::size_t piece = piece_size(total_size(segments), threads);
    Shares shares;
    std::size_t collected = 0;
    for (const core::Segment& segment : segments) {
        for (const core::Segment& part : modes::split(mode, segment, piece)) {
            if (collected != 0 && collected + part.size > piece) {
                shares.ends.push_back(shares.segments.size());
                collected = 0;
            }
            shares.segments.push_back(part);
            collected += part.size;
        }
    }
    shares.ends.push_back(shares.segments.size());
    return shares;
}

// Whole messages: kLanes or more to a share where there are enough for every thread, so that each
// call fills a multi-buffer implementation's lanes; else as evenly as they go, since a lane by
// itself takes no less time than all lanes together. Longest first: the lanes of a share then end
// together, and the last shares to start are the short ones.
Shares share_out_sequential(std::span<const core::Segment> segments, std::size_t threads) {
    Shares shares{{segments.begin(), segments.end()}, {}};
    std::ranges::stable_sort(shares.segments, std::ranges::greater{}, &core::Segment::size);
    const std::size_t group = group_size(segments.size(), threads);
    for (std::size_t end = group; end < shares.segments.size(); end += group)
        shares.ends.push_back(end);
    shares.ends.push_back(shares.segments.size());
    return shares;
}

}  // namespace

int threads_worth(Mode mode, Direction direction, std::uint64_t bytes, std::uint64_t messages,
                  int most) {
    const bool parallel = parallel_within_message(mode, direction);
    std::uint64_t worth = bytes / (parallel ? kWorthParallel : kWorthSequential);
    if (!parallel) worth = std::min(worth, messages);
    return static_cast<int>(std::clamp<std::uint64_t>(worth, 1, static_cast<std::uint64_t>(most)));
}

std::size_t piece_size(std::size_t bytes, int threads) {
    const std::size_t even = bytes / (static_cast<std::size_t>(threads) * kPiecesPerThread);
    return std::clamp(even, kSmallestPiece, kLargestPiece) / kSmallestPiece * kSmallestPiece;
}

std::size_t group_size(std::size_t messages, std::size_t threads) {
    const std::size_t even = (messages + threads - 1) / threads;
    const std::size_t finer = messages / (threads * kPiecesPerThread);
    return even <= kLanes ? even : std::max(kLanes, finer / kLanes * kLanes);
}

Shares share_out(Mode mode, Direction direction, std::span<const core::Segment> segments,
                 int threads) {
    return parallel_within_message(mode, direction)
               ? share_out_parallel(mode, segments, threads)
               : share_out_sequential(segments, static_cast<std::size_t>(threads));
}

Result<int> run_on_host(core::Backend& backend, ThreadPool& pool, const core::Operation& operation,
                        std::span<const core::Segment> segments, int most) {
    if (!backend.shared_by_threads()) most = 1;
    const int threads = threads_worth(operation.mode, operation.direction, total_size(segments),
                                      segments.size(), most);
    if (threads == 1) {  // nothing to cut, nothing to allocate
        DAEL_TRY(backend.run(operation, segments));
        return 1;
    }
    const Shares shares = share_out(operation.mode, operation.direction, segments, threads);
    return pool.run(shares.count(), threads,
                    [&](std::size_t share) { return backend.run(operation, shares[share]); });
}

Result<int> run_on_host(core::Backend& backend, ThreadPool& pool,
                        const core::XtsOperation& operation, const core::Segment& segment,
                        int most) {
    // Sectors stand by themselves, as the blocks of ECB do.
    const int threads = threads_worth(Mode::ecb, operation.direction, segment.size, 1, most);
    if (threads == 1) {
        DAEL_TRY(backend.xts(operation, segment));
        return 1;
    }
    const auto pieces =
        modes::split_sectors(segment, operation.sector_size, piece_size(segment.size, threads));
    return pool.run(pieces.size(), threads,
                    [&](std::size_t piece) { return backend.xts(operation, pieces[piece]); });
}

}  // namespace dael::pipeline
