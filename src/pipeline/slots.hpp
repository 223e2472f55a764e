// SPDX-License-Identifier: Apache-2.0
// The places that chunks pass through on their way across a device: buffers on the device,
// page-locked staging on the host, a stream and an event each.
//
// Promises: a set of slots belongs to one call at a time. Sets are kept for reuse, since allocating
// costs more than most jobs; whatever passed through them is wiped before their memory is given
// back. When memory runs out a set comes back smaller than asked for. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device.hpp"

namespace dael::pipeline {

struct Slot {
    Stream work;                  // kernels; null where the first slot's stream serves them all
    core::Event arrived;          // the chunk is in `in`
    core::Event transformed;      // the result is in `out`
    core::Event done;             // the result is on the host
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
    ~SlotSet();  // waits for the device, wipes, releases
    SlotSet(const SlotSet&) = delete;
    SlotSet& operator=(const SlotSet&) = delete;

    // Allocates what is missing. After an error the set can only be destroyed.
    Result<> provide(const SlotNeeds& needs);
    // Waits until the device has done all that was asked of it. Returns the first error.
    Result<> wait() noexcept;

    std::size_t capacity() const noexcept { return capacity_; }
    std::size_t bytes() const noexcept { return slots_.size() * capacity_ * 4; }
    std::vector<Slot>& slots() noexcept { return slots_; }
    // All copies of a direction share one stream. On a stream for each slot, copies of one
    // direction would run at once and finish together, and the other direction would lie idle
    // meanwhile.
    Stream inward() const noexcept { return inward_; }
    Stream outward() const noexcept { return outward_; }

  private:
    void wipe() noexcept;

    core::Device& device_;
    std::size_t capacity_;
    Stream inward_, outward_;
    std::vector<Slot> slots_;
};

class SlotPool {
  public:
    explicit SlotPool(core::Device& device) : device_(device) {}

    // A set for one call. Halves the chunk, then the number of slots, for as long as memory runs
    // out. Errors: out_of_memory, device.
    Result<std::unique_ptr<SlotSet>> acquire(SlotNeeds needs);
    // Takes back a set whose work is done and went well; others are destroyed instead.
    void give_back(std::unique_ptr<SlotSet> set);

  private:
    std::unique_ptr<SlotSet> take_kept(const SlotNeeds& needs);

    core::Device& device_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<SlotSet>> kept_;
};

}  // namespace dael::pipeline
