// SPDX-License-Identifier: Apache-2.0
// Data in host memory on a host backend: cuts the work into shares, one backend call each, and runs
// the shares on the pool's threads.
//
// Promises: messages that the mode can cut are cut, with every IV taken before anything is written,
// so that work may be in place. Messages that it cannot cut stay whole. Jobs too small to be worth
// waking a thread stay on the caller's.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/backend.hpp"
#include "pipeline/thread_pool.hpp"

namespace dael::pipeline {

// A multi-buffer implementation has up to 16 lanes; fewer messages at once leave lanes idle.
inline constexpr std::size_t kLanes = 16;

// The work of one call, in backend calls. Share i is segments[i == 0 ? 0 : ends[i - 1]] to
// segments[ends[i]].
struct Shares {
    std::vector<core::Segment> segments;
    std::vector<std::size_t> ends;

    std::size_t count() const noexcept { return ends.size(); }
    std::span<const core::Segment> operator[](std::size_t share) const noexcept {
        const std::size_t begin = share == 0 ? 0 : ends[share - 1];
        return std::span(segments).subspan(begin, ends[share] - begin);
    }
};

// How many of `most` threads a job of this size deserves.
int threads_worth(Mode mode, Direction direction, std::uint64_t bytes, std::uint64_t messages,
                  int most);

// Bytes of a piece when `bytes` are cut for `threads` threads: a multiple of 64 KiB.
std::size_t piece_size(std::size_t bytes, int threads);

// Messages of a sequential mode that one backend call gets where `messages` go to `threads`
// threads: enough to fill a multi-buffer implementation's lanes, else as evenly as they go.
std::size_t group_size(std::size_t messages, std::size_t threads);

// Cuts for `threads` threads.
Shares share_out(Mode mode, Direction direction, std::span<const core::Segment> segments,
                 int threads);

// Returns the number of threads that took part. `most` as in threads_worth.
Result<int> run_on_host(core::Backend& backend, ThreadPool& pool, const core::Operation& operation,
                        std::span<const core::Segment> segments, int most);

// The same for XTS, cut at sectors' edges.
Result<int> run_on_host(core::Backend& backend, ThreadPool& pool,
                        const core::XtsOperation& operation, const core::Segment& segment,
                        int most);

}  // namespace dael::pipeline
