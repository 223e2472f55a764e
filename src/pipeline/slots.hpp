// SPDX-License-Identifier: Apache-2.0
// Staging buffers (double buffering): the slots that chunks pass through on their way across a
// device, each with a buffer there, a page-locked one on the host, a stream and an event.
//
// Promises: a set of slots belongs to one call at a time. Sets are kept for reuse, since allocating
// costs more than most jobs; whatever passed through them is wiped before their memory is given
// back. When memory runs out a set comes back smaller than asked for. All sets together are
// bounded: who asks for more waits until other calls give back, and who comes later waits behind
// it. What the device cannot be made to finish with is neither wiped nor given back. Thread-safe;
// a child of fork() has no use of it, and locks nothing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device.hpp"
#include "core/process.hpp"

namespace dael::pipeline {

struct Slot {
    Stream work;                  // kernels; null where the first slot's stream serves them all
    Event arrived;                // the chunk is in `in`
    Event transformed;            // the result is in `out`
    Event done;                   // the result is on the host
    std::uint8_t* in = nullptr;   // device memory, a chunk
    std::uint8_t* out = nullptr;  // device memory, a chunk; null until needed
    std::uint8_t* in_staging = nullptr;  // page-locked host memory, a chunk; null until needed
    std::uint8_t* out_staging = nullptr;
};

struct SlotNeeds {
    std::size_t capacity = 0;  // bytes of a chunk
    std::size_t least = 0;     // bytes below which a chunk is of no use
    int slots = 4;
    bool in_staging = false;
    bool out_staging = false;
    bool out = true;  // whether results need device memory of the slot's own
    // A stream for each slot's kernels, so that they run at once. Streams are not for free: beyond
    // eight (CUDA_DEVICE_MAX_CONNECTIONS) they share queues, and copies wait for kernels that are
    // none of theirs.
    bool kernels_at_once = false;
};

class SlotSet {
  public:
    SlotSet(core::Device& device, std::size_t capacity) : device_(device), capacity_(capacity) {}
    ~SlotSet();  // waits for the device, wipes, releases; in a child of fork() it leaves all of it
    SlotSet(const SlotSet&) = delete;
    SlotSet& operator=(const SlotSet&) = delete;

    // Allocates what is missing. After an error the set can only be destroyed.
    Result<> provide(const SlotNeeds& needs);
    // Waits until the device has done all that was asked of it. Returns the first error.
    Result<> wait() noexcept;
    // Work on a stream that is none of its own could not be waited for: it stays as it is, for as
    // long as the process lives.
    void lose() noexcept { lost_ = true; }

    std::size_t capacity() const noexcept { return capacity_; }
    // An upper bound, for the pool's books: it does not change while the set is out.
    std::size_t bytes() const noexcept { return booked_; }
    void book(std::size_t bytes) noexcept { booked_ = bytes; }
    std::vector<Slot>& slots() noexcept { return slots_; }
    // All copies of a direction share one stream. On a stream for each slot, copies of one
    // direction would run at once and finish together, and the other direction would lie idle
    // meanwhile.
    Stream inward() const noexcept { return inward_; }
    Stream outward() const noexcept { return outward_; }

  private:
    bool wipe() noexcept;  // whether the device has done with all of it

    core::Device& device_;
    std::size_t capacity_;
    const std::uint32_t process_ = core::this_process();
    std::size_t booked_ = 0;
    Stream inward_, outward_;
    bool lost_ = false;
    std::vector<Slot> slots_;
};

class SlotPool {
  public:
    // `memory`: bytes of the device's that all sets may take, also those that are kept, and as many
    // page-locked; 0: as many as suit most programs.
    explicit SlotPool(core::Device& device, std::size_t memory = 0);

    // A set on loan to one call, which gives it back when it goes: kept for others if its work is
    // done and went well, which who has it says, and destroyed else.
    class Loan {
      public:
        Loan(SlotPool& pool, std::unique_ptr<SlotSet> set) : pool_(&pool), set_(std::move(set)) {}
        Loan(Loan&&) noexcept = default;
        Loan& operator=(Loan&&) = delete;
        ~Loan() {
            if (set_) pool_->give_back(std::move(set_), good_);
        }
        SlotSet& operator*() const noexcept { return *set_; }
        SlotSet* operator->() const noexcept { return set_.get(); }
        void went_well() noexcept { good_ = true; }

      private:
        SlotPool* pool_;
        std::unique_ptr<SlotSet> set_;
        bool good_ = false;
    };

    // A set of one block takes no turn and counts for nothing, so that whoever has one may wait for
    // another. Of other sets a thread has one at a time.
    // Halves the chunk, then the number of slots, for as long as memory runs out, or the budget
    // does. Errors: out_of_memory, device.
    Result<Loan> acquire(SlotNeeds needs);
    // Wipes and releases the sets that nobody uses.
    void trim() noexcept;
    // The device does not answer: no set is wiped or released any more, also those that are out.
    void lose() noexcept;

    // For tests: calls that wait for their turn, and bytes of sets that are out.
    std::size_t waiting();
    std::size_t used();

  private:
    using Sets = std::vector<std::unique_ptr<SlotSet>>;
    void give_back(std::unique_ptr<SlotSet> set, bool good) noexcept;
    // Waits for its turn, in the order of coming, so that neither many small calls keep a large one
    // waiting nor the other way round for longer than those before it take. A set that is larger
    // than all may be comes when no other is in use.
    std::unique_ptr<SlotSet> take(const SlotNeeds& needs);
    void destroyed(std::size_t bytes) noexcept;
    Result<> fit(SlotNeeds& needs) const;

    core::Device& device_;
    const bool strict_;                   // whether there is a budget
    const std::size_t most_, kept_most_;  // bytes of all sets, and of those that are kept
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t next_ticket_ = 0, served_ = 0;  // whose turn it is
    std::size_t used_ = 0;                        // bytes of sets that are out
    std::size_t kept_bytes_ = 0;
    bool lost_ = false;
    Sets kept_;
};

}  // namespace dael::pipeline
