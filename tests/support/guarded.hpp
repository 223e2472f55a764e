// SPDX-License-Identifier: Apache-2.0
// Memory between two pages that may not be touched: the first byte read or written before or after
// it ends the process with SIGSEGV, and with a line that says which case was running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dael::test {

class Guarded {
  public:
    // Room for up to `capacity` bytes. Throws std::bad_alloc.
    explicit Guarded(std::size_t capacity);
    ~Guarded();
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    // `size` bytes right after the page before, or right before the page after.
    std::span<std::uint8_t> at_begin(std::size_t size) { return {begin_, size}; }
    std::span<std::uint8_t> at_end(std::size_t size) { return {begin_ + room_ - size, size}; }

    // Everything that may be touched, for poison.
    std::span<std::uint8_t> all() { return {begin_, room_}; }

  private:
    std::uint8_t* begin_;
    std::size_t room_, page_;
};

// Catches SIGSEGV and SIGBUS for this process; `now_running` names what would be to blame.
void report_faults();
void now_running(std::string_view what);

}  // namespace dael::test
