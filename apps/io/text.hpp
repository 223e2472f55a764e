// SPDX-License-Identifier: Apache-2.0
// Sizes, rates, times and names in the words that people use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <daelstrom/error.hpp>

namespace dael::app {

// How many bytes a character takes that begins `text`, or 0 where it is none (RFC 3629).
std::size_t utf8_size(std::string_view text);
// Whether a terminal may obey this character instead of showing it: C0, DEL and C1.
bool is_control(std::string_view character);

// What is no UTF-8, and characters that a terminal obeys or that turn lines around, spelt out byte
// for byte as \x1b, so that what came from outside cannot play tricks.
std::string on_one_line(std::string_view text);
// A file name, in which backslashes are doubled too: no two look the same.
std::string shown_name(std::string_view name);
// The same in quotes, as messages show it.
std::string in_quotes(std::string_view name);

// "4096", "64K", "1.5M", "2GiB": bytes, in powers of 1024. Errors: invalid_argument, naming
// `option`.
Result<std::uint64_t> parse_size(std::string_view text, std::string_view option);

std::string format_size(double bytes);             // "1.5 MiB"
std::string format_rate(double bytes_per_second);  // "3.21 GB/s"
std::string format_seconds(double seconds);        // "12 us", "3.4 ms", "1.2 s"
std::string format_clock(double seconds);          // "0:07", "1:02:03"

}  // namespace dael::app
