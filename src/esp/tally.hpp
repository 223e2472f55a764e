// SPDX-License-Identifier: Apache-2.0
// Verdicts, counted by several threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include <daelstrom/esp.hpp>

namespace dael::esp {

inline void count(Counters& counters, const Packet& packet) noexcept {
    ++counters.packets[static_cast<std::size_t>(packet.verdict)];
    if (packet.verdict == Verdict::ok) counters.bytes += packet.size;
}

class Tally {
  public:
    void add(const Counters& more) noexcept {
        for (std::size_t i = 0; i < kVerdicts; ++i)
            if (more.packets[i] != 0) packets_[i].fetch_add(more.packets[i], kRelaxed);
        if (more.bytes != 0) bytes_.fetch_add(more.bytes, kRelaxed);
    }
    Counters read() const noexcept {
        Counters counters;
        for (std::size_t i = 0; i < kVerdicts; ++i)
            counters.packets[i] = packets_[i].load(kRelaxed);
        counters.bytes = bytes_.load(kRelaxed);
        return counters;
    }

  private:
    static constexpr auto kRelaxed = std::memory_order_relaxed;
    std::array<std::atomic<std::uint64_t>, kVerdicts> packets_{};
    std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace dael::esp
