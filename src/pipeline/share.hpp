// SPDX-License-Identifier: Apache-2.0
// Partitions work in host memory among threads: cuts it into shares that are processed at once.
//
// Promises: a short message costs no allocation and no lock. Every start is taken before anything
// is written, so that work in place is safe. Where a share fails, the call fails as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/request.hpp"
#include "pipeline/thread_pool.hpp"
#include "pipeline/work_queue.hpp"

namespace dael::pipeline {

// As many messages as the fastest implementations process side by side on one core.
inline constexpr std::size_t kLanes = 16;

// How many of `most` threads a job deserves, of this weight in all.
int threads_worth(const Cipher& cipher, std::uint64_t weight, std::uint64_t messages, int most);

// What a thread takes at a time: messages `begin` to `end` of a list, the caller's or `parts`.
struct Share {
    std::size_t begin, end;
    std::uint64_t weight;
    bool of_parts;
};
struct Shares {
    // Messages that were cut, or put in another order. They are valid, and have their codes.
    std::vector<Message> parts;
    // In the order that they are to be begun in.
    std::vector<Share> shares;
};

// For `threads` of them, 2 or more. Sets the codes of messages that are refused where it has to
// look at them: those that have no share.
//
// Messages are taken together as they stand in the list, the heaviest shares first, without a look
// at each where the survey tells that none is long. Modes that can be cut: long messages in pieces
// of 64 KiB to 1 MiB. Sequential modes: whole messages, kLanes or more to a share where there are
// enough for every thread, longest first: the lanes of a share then end together.
Shares share_out(const Request& request, const Survey& survey, int threads);

// On up to `most` threads; returns how many took part. The codes are those of all messages only if
// it succeeds.
Result<int> run_on_host(core::Backend& backend, ThreadPool& pool, const Request& request,
                        const Survey& survey, int most);

// What there is in a queue that others may take from, too. What a thread has taken and not done it
// gives back; of what the backend has failed at nobody knows what it has written.
Result<int> run_on_host(core::Backend& backend, ThreadPool& pool, const Request& request,
                        WorkQueue& queue, WorkQueue::Member& member, int most);

}  // namespace dael::pipeline
