// SPDX-License-Identifier: Apache-2.0
// Lines on standard error: above all warnings, of what went another way than somebody may think and
// is no failure.
#pragma once

#include <string_view>

namespace dael::app {

// "PROGRAM: warning: TEXT", on one line.
void warn(std::string_view text);
void silence_warnings();               // --quiet
void tell(std::string_view text);      // the same without "warning: "
void complain(std::string_view text);  // and whatever --quiet says

}  // namespace dael::app
