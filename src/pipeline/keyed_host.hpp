// SPDX-License-Identifier: Apache-2.0
// Batches outside GCM whose messages have a key each, in host memory: messages under one key go to
// the backend together, so that a multi-buffer implementation's lanes are filled.
//
// Promises: each message is checked by itself; one that is not valid is not touched. Long messages
// of counter mode are cut for the threads, those of CBC stay whole.
#pragma once

#include <span>
#include <vector>

#include "core/backend.hpp"
#include "modes/gcm.hpp"
#include "modes/segment.hpp"
#include "pipeline/thread_pool.hpp"

namespace dael::pipeline {

// Messages for counter mode alone, or for CBC encryption, as segments made when asked for.
class KeyedWork {
  public:
    explicit KeyedWork(std::span<const GcmMessage> messages) noexcept
        : mode(Mode::ctr), ctr_(messages) {}
    explicit KeyedWork(std::span<const KeyedMessage> messages) noexcept
        : mode(Mode::cbc), cbc_(messages) {}

    std::size_t size() const noexcept { return mode == Mode::ctr ? ctr_.size() : cbc_.size(); }
    std::uint32_t key(std::size_t i) const noexcept {
        return mode == Mode::ctr ? ctr_[i].key : cbc_[i].key;
    }
    std::uint64_t bytes(std::size_t i) const noexcept {
        return mode == Mode::ctr ? ctr_[i].size : cbc_[i].size;
    }
    // ok, or why there is no way to do it.
    Code check(std::size_t i, std::size_t keys) const {
        return (mode == Mode::ctr ? modes::check_ctr(modes::to_segment(ctr_[i], 0), keys)
                                  : modes::check(mode, cbc_[i], keys))
            .code();
    }
    core::Segment operator[](std::size_t i) const noexcept {
        if (mode == Mode::cbc) return modes::to_segment(cbc_[i]);
        const GcmMessage& m = ctr_[i];
        return {m.in, m.out, m.size, modes::first_counter(m), 0};
    }

    const Mode mode;  // which encrypts

  private:
    std::span<const GcmMessage> ctr_;
    std::span<const KeyedMessage> cbc_;
};

// Backend calls, and shares of about the same weight of them, heaviest first.
struct KeyedRuns {
    struct Run {
        std::size_t begin, end;  // of the segments
        std::uint32_t key;       // of all of them
    };
    struct Share {
        std::size_t begin, end;  // of the runs
        std::uint64_t weight;
    };
    std::vector<core::Segment> segments;
    std::vector<Run> runs;
    std::vector<Share> shares;

    std::span<const core::Segment> operator[](const Run& run) const noexcept {
        return std::span(segments).subspan(run.begin, run.end - run.begin);
    }
};

// Sets the result of each message that is not valid to the reason, of the others to internal until
// they are done, and lists those by key, within CBC the longest of a key first. `keys`: how many
// there are.
std::vector<std::size_t> sort_valid(const KeyedWork& work, std::size_t keys,
                                    std::span<Code> results);

// Cuts what is in `order` for `threads` threads; 0: into one run for each key, and no shares.
KeyedRuns share_out(const KeyedWork& work, std::span<const std::size_t> order, int threads);

// Returns the number of threads that took part.
Result<int> keyed_on_host(core::Backend& backend, ThreadPool& pool, std::span<const Key> keys,
                          const KeyedWork& work, std::span<const std::size_t> order);

}  // namespace dael::pipeline
