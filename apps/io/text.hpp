// SPDX-License-Identifier: Apache-2.0
// Sizes, rates, times and names in the words that people use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <daelstrom/error.hpp>

namespace dael::app {

// Control characters spelt out, so that what came from outside cannot play tricks on the terminal.
std::string on_one_line(std::string_view text);

// A file name as messages show it: in quotes, on one line.
std::string in_quotes(std::string_view name);

// "4096", "64K", "1.5M", "2GiB": bytes, in powers of 1024. Errors: invalid_argument, naming
// `option`.
Result<std::uint64_t> parse_size(std::string_view text, std::string_view option);

std::string format_size(double bytes);             // "1.5 MiB"
std::string format_rate(double bytes_per_second);  // "3.21 GB/s"
std::string format_seconds(double seconds);        // "12 us", "3.4 ms", "1.2 s"
std::string format_clock(double seconds);          // "0:07", "1:02:03"

}  // namespace dael::app
