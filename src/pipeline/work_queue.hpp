// SPDX-License-Identifier: Apache-2.0
// Dynamic scheduling of a call's messages in host memory (guided self-scheduling): workers, each
// the threads of the host or a device, take chunks from one queue as they come free, in the order
// of the list, the smaller the less there is left, by how fast each of them is: so they end
// together. One worker alone is the simplest case.
//
// Promises: every start is taken before anything is written behind it, so that chunks may be worked
// in place, by anybody, in any order. Messages that the mode cannot cut stay whole. What nobody has
// to do anything for is left out: a message without a byte, in modes that do not authenticate. What
// a worker has failed at is given back and taken by another. Once all workers have left, tell()
// says of each message what became of it. Giving back and telling take no memory. For any number of
// threads; it lives for one call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "pipeline/chunks.hpp"
#include "pipeline/request.hpp"

namespace dael::pipeline {

// A chunk that a worker has, or none: a list of one is given back without a need of memory.
using Taken = std::list<Chunk>;

class WorkQueue {
  public:
    // Sets the codes: ok for the messages that the mode takes, for the others why not. `by_key`:
    // messages come key by key, for workers that take but one key at once.
    WorkQueue(const Request& request, bool by_key);

    // Bytes of all, with what tags and AAD take of a chunk; and what the largest message that
    // cannot be cut takes, or the unit of those that can.
    std::uint64_t size() const noexcept { return size_; }
    std::size_t largest() const noexcept { return largest_; }
    std::uint64_t longest() const noexcept { return longest_; }  // data and AAD of one, bytes

    // How a worker takes part: what it is expected to do, in bytes a second, until it is known.
    class Member {
      public:
        Member(WorkQueue& queue, double rate) noexcept;
        ~Member();
        Member(const Member&) = delete;
        Member& operator=(const Member&) = delete;
        std::uint64_t bytes() const noexcept { return bytes_; }  // that it has done, as size()
        std::uint64_t chunks() const noexcept { return chunks_; }

      private:
        friend class WorkQueue;
        WorkQueue& queue_;
        const double rate_;
        Member* next_ = nullptr;
        std::uint64_t bytes_ = 0, chunks_ = 0;
        const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    };

    struct Wish {
        // At most, but for a message that cannot be cut.
        std::size_t size = 0;
        std::size_t most_pieces = ~std::size_t{0};
        // Of what is left, the part that the worker will do by its rate is taken by so many
        // chunks like this: 2 halves them. 0: no bound.
        double in_parts = 0;
        // Whatever `in_parts` says, there are so many bytes, or messages.
        std::size_t least = kSmallChunk;
        std::size_t least_pieces = 1;
        bool one_key = false;
    };
    // Empty when nothing is left, but what others have taken may come back.
    Taken take(const Member& member, const Wish& wish);

    // How a worker parts with a chunk: each piece is done, untouched or lost. What is lost, and was
    // not in place, is done again.
    void finish(Member& member, Taken chunk) noexcept;

    bool empty() noexcept;     // nothing to take
    bool all_done() noexcept;  // and nothing is with anybody, or lost
    // Whether anything at all may have been written.
    bool touched() const noexcept { return touched_; }
    bool lost() const noexcept { return lost_bytes_ != 0; }  // whether a message is: in place
    // After an error that nobody has mended, which is `code`: of what is done ok or as ever, of
    // what is as it was `code`, else internal.
    void tell(Code code) noexcept;

  private:
    // Where the list is at.
    struct Cursor {
        std::size_t next = 0;  // of order_, or of the list
        std::uint64_t at = 0;  // bytes of that message that are taken
        Message rest = {};     // where `at` is not 0
    };
    std::size_t index_at(std::size_t position) const noexcept {
        return order_.empty() ? position : order_[position];
    }
    std::uint64_t bytes_of(const Message& message) const noexcept;
    std::size_t bound(const Member& member, const Wish& wish) const noexcept;
    void take_returned(const Wish& wish, std::size_t size, Chunk& chunk);
    void take_next(const Wish& wish, std::size_t size, Chunk& chunk);
    std::uint64_t part_of(const Message& rest, std::size_t size) const noexcept;

    const Request& request_;
    const Cipher cipher_;
    const bool cuts_;
    const std::size_t unit_;
    std::uint64_t size_ = 0, longest_ = 1;
    std::size_t largest_ = 0;
    std::vector<std::size_t> order_;  // empty: as they stand

    std::mutex mutex_;
    Member* members_ = nullptr;
    Cursor cursor_;
    std::list<Chunk> returned_;
    std::uint64_t left_ = 0;    // bytes that nobody has
    std::uint64_t undone_ = 0;  // these, what is lost and what somebody has
    std::uint64_t lost_bytes_ = 0;
    bool touched_ = false;
};

}  // namespace dael::pipeline
