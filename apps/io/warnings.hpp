// SPDX-License-Identifier: Apache-2.0
// Warnings on standard error: what went another way than somebody may think, and is no failure.
#pragma once

#include <string_view>

namespace dael::app {

// "PROGRAM: warning: TEXT", on one line.
void warn(std::string_view text);
void silence_warnings();  // --quiet

}  // namespace dael::app
