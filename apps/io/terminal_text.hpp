// SPDX-License-Identifier: Apache-2.0
// Plaintext on its way to a terminal, which obeys some of what it shows: whoever made the data
// could set its title, clear it, or have it type.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <daelstrom/error.hpp>

#include "io/secrets.hpp"

namespace dael::app {

// Lets text through: UTF-8 without control characters but tabs and the ends of lines. Keeps it
// until the end, so that what is refused shows nothing, as does what fails to be verified; text
// beyond 16 MiB goes out as it comes. For one thread at a time; what it holds is wiped.
class TerminalText {
  public:
    using Show = std::function<Result<>(std::span<const std::uint8_t>)>;

    // What may be shown by now goes to `show`. Errors: its own; io for what is no text, and then
    // nothing more may be shown.
    Result<> take(std::span<const std::uint8_t> bytes, const Show& show);
    Result<> end(const Show& show);

  private:
    bool takes(std::uint8_t byte) noexcept;
    Result<> let_go(const Show& show);

    Secret held_;
    bool after_return_ = false;      // a line's end must follow
    unsigned least_ = 0, most_ = 0;  // what the next byte of a character may be; 0: a new one
    unsigned more_ = 0;              // bytes that the character still has
};

}  // namespace dael::app
