// SPDX-License-Identifier: Apache-2.0
// Which sequence numbers have come (RFC 4303 3.4.3), as a ring of bits whose words are cleared when
// the window moves over them (RFC 6479), and what the upper halves of numbers are that packets do
// not carry (RFC 4303, appendix A). For one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <daelstrom/esp.hpp>

namespace dael::esp {

class ReplayWindow {
  public:
    // `size`: how many numbers back; 0: everything is taken.
    explicit ReplayWindow(std::uint32_t size);

    // The whole number of a packet that carries `low`. None: it would lie before the first number
    // or after the last.
    std::optional<std::uint64_t> whole(std::uint32_t low, bool extended) const noexcept;

    // ok, too_old or replayed; changes nothing.
    Verdict check(std::uint64_t number) const noexcept;
    // Of a number that check() takes, whose packet is authentic.
    void mark(std::uint64_t number) noexcept;

    std::uint64_t top() const noexcept { return top_; }  // the highest marked; 0: none
    // Bit i of word j: whether top - (64 j + i) is marked.
    std::vector<std::uint64_t> seen() const;
    // As if it had come to there: what the words say, and all else up to `top`, was marked.
    void restore(std::uint64_t top, std::span<const std::uint64_t> seen) noexcept;

  private:
    std::uint64_t& word(std::uint64_t number) noexcept { return bits_[number / 64 & mask_]; }
    std::uint64_t word(std::uint64_t number) const noexcept { return bits_[number / 64 & mask_]; }

    std::uint64_t size_, top_ = 0, mask_ = 0;
    std::vector<std::uint64_t>
        bits_;  // a power of two of words, which hold the window and one more
};

}  // namespace dael::esp
