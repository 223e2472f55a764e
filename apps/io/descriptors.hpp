// SPDX-License-Identifier: Apache-2.0
// Descriptors 0, 1 and 2 belong to standard input, output and error, also where whoever started the
// program closed them.
#pragma once

#include <daelstrom/error.hpp>

namespace dael::app {

// First thing in main(): takes up those that are closed, so that no file gets their numbers and,
// with them, what is meant for a terminal. What reads or writes them then fails, as before.
// Errors (io): there is no /dev/null.
Result<> keep_standard_descriptors();

// Lets the program have as many descriptors open as its user may: each folder that is named holds
// one, and 1,024 is the usual limit of those who did not ask.
void raise_descriptor_limit() noexcept;

}  // namespace dael::app
