// SPDX-License-Identifier: Apache-2.0
// A sequence number space of an SA, and the precomputed keystream that waits for its numbers. In
// layout rfc4106 an SA whose IVs go by size has four, one for each class; others have one.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "keystream/window.hpp"

namespace dael::keystream {

struct SaSlot;

// Adds to what one thread at a time writes and others may read.
inline void add(std::atomic<std::uint64_t>& value, std::uint64_t more) noexcept {
    value.store(value.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// Sizes of recent packets, in blocks of keystream: written by the packet side, read by the
// scheduler, which asks no more than that each is one that was there.
class RecentNeeds {
  public:
    static constexpr std::size_t kCount = 64;
    void add(std::uint32_t blocks) noexcept {
        needs_[at_++ % kCount].store(static_cast<std::uint16_t>(std::min(blocks, 0xffffu)),
                                     std::memory_order_relaxed);
    }
    // Sorted, those that are there. Returns how many.
    std::size_t sorted(std::array<std::uint16_t, kCount>& to) const noexcept;
    void clear() noexcept {
        for (auto& need : needs_) need.store(0, std::memory_order_relaxed);
        at_ = 0;
    }

  private:
    std::uint32_t at_ = 0;  // the packet side's
    std::array<std::atomic<std::uint16_t>, kCount> needs_{};
};

struct alignas(64) Track {
    static constexpr std::size_t kWindows = 24;
    static constexpr std::size_t kHot = 128;  // bytes that every packet call touches

    // The window that the next packet is expected in, as the packet side wants it: all zeros, none.
    std::uint64_t first = 0, count = 0;
    const std::uint8_t* data = nullptr;
    std::uint32_t blocks = 0;
    std::uint32_t held = 0;  // of windows[]
    std::uint32_t over = 0;  // the first of them: done with as soon as the packets at hand are
    std::atomic<std::uint32_t> keep{0};  // receiving: numbers behind `next` to be kept

    // Sending: the next number. Receiving: one above the highest that was verified.
    std::atomic<std::uint64_t> next{1};
    std::atomic<std::uint64_t> needed{0};  // blocks of keystream for all packets so far

    std::atomic<std::uint64_t> refill_at{0};  // ask the filler once `next` is there
    std::atomic<bool> asked{false};
    std::atomic<Window*> inbox{nullptr};

    // Windows that were ordered and are not retired: at most kWindows, and so it can hold them all.
    std::atomic<std::uint32_t> waiting{0};
    // How many numbers are used up between the order of a window and its coming, of late: the
    // scheduler's.
    std::atomic<std::uint64_t> lead{0};
    SaSlot* slot = nullptr;
    Track* next_asking = nullptr;  // in the scheduler's inbox
    RecentNeeds recent;
    std::array<Window*, kWindows> windows{};  // in order of their numbers

    // Whether any keystream may be found: windows that are there, or have come.
    bool may_have() const noexcept {
        return held != 0 || inbox.load(std::memory_order_relaxed) != nullptr;
    }
    void aim_at_none() noexcept {
        first = count = 0;
        data = nullptr;
        blocks = 0;
    }

    // The scheduler's, under its mutex.
    bool wanting = false;
    std::uint64_t ordered = 0;      // end of the last window that was ordered; 0: none
    std::uint64_t run = 0;          // where the run of windows begins that ends there
    std::uint64_t needed_then = 0;  // `needed` at the last look
    double rate = 0;                // blocks a second, of late
};

}  // namespace dael::keystream
