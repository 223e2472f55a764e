// SPDX-License-Identifier: Apache-2.0
#include "esp/replay_window.hpp"

#include <algorithm>
#include <bit>

namespace dael::esp {

ReplayWindow::ReplayWindow(std::uint32_t size) : size_(size) {
    if (size == 0) return;
    bits_.resize(std::bit_ceil((std::uint64_t{size} + 63) / 64 + 1));
    mask_ = bits_.size() - 1;
}

// Of the numbers that end in `low` the one that lies in the window or within 2^32 - size after it
// (A2.1). The window reaches from top - size + 1 to top, and where it spans two halves, so do its
// numbers.
std::optional<std::uint64_t> ReplayWindow::whole(std::uint32_t low, bool extended) const noexcept {
    if (!extended) return low;
    const std::uint64_t high = top_ >> 32 << 32;
    const auto top_low = static_cast<std::uint32_t>(top_);
    const auto bottom_low = static_cast<std::uint32_t>(top_low - size_ + 1);  // modulo 2^32
    constexpr std::uint64_t kOne = std::uint64_t{1} << 32;
    if (top_low >= size_ - 1) {  // the window lies in one half
        if (low >= bottom_low) return high | low;
        if (high == ~std::uint64_t{0} << 32) return std::nullopt;
        return (high + kOne) | low;
    }
    if (low < bottom_low) return high | low;
    if (high == 0) return std::nullopt;
    return (high - kOne) | low;
}

Verdict ReplayWindow::check(std::uint64_t number) const noexcept {
    if (size_ == 0 || number > top_) return Verdict::ok;
    if (top_ - number >= size_) return Verdict::too_old;
    return word(number) >> number % 64 & 1 ? Verdict::replayed : Verdict::ok;
}

void ReplayWindow::mark(std::uint64_t number) noexcept {
    if (size_ != 0) {
        // The words that the window enters held numbers of long ago.
        if (number > top_) {
            const std::uint64_t fresh = std::min<std::uint64_t>(number / 64 - top_ / 64, mask_ + 1);
            for (std::uint64_t i = 1; i <= fresh; ++i) bits_[(top_ / 64 + i) & mask_] = 0;
        }
        word(number) |= std::uint64_t{1} << number % 64;
    }
    top_ = std::max(top_, number);
}

std::vector<std::uint64_t> ReplayWindow::seen() const {
    std::vector<std::uint64_t> seen((size_ + 63) / 64);
    for (std::uint64_t back = 0; back < size_ && back < top_; ++back) {
        const std::uint64_t number = top_ - back;
        if (word(number) >> number % 64 & 1) seen[back / 64] |= std::uint64_t{1} << back % 64;
    }
    return seen;
}

void ReplayWindow::restore(std::uint64_t top, std::span<const std::uint64_t> seen) noexcept {
    top_ = top;
    std::ranges::fill(bits_, 0);
    for (std::uint64_t back = 0; back < size_ && back < top_; ++back) {
        const std::uint64_t number = top_ - back;
        const bool marked = back / 64 >= seen.size() || (seen[back / 64] >> back % 64 & 1) != 0;
        if (marked) word(number) |= std::uint64_t{1} << number % 64;
    }
}

}  // namespace dael::esp
