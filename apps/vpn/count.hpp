// SPDX-License-Identifier: Apache-2.0
// Counters that one thread counts, and any may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace dael::vpn {

class Count {
  public:
    // By its one writer: so no locked instruction.
    void add(std::uint64_t more) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    // By any of several.
    void add_shared(std::uint64_t more) noexcept {
        value_.fetch_add(more, std::memory_order_relaxed);
    }
    std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

}  // namespace dael::vpn
