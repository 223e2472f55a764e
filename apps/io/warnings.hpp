// SPDX-License-Identifier: Apache-2.0
// Lines on standard error: above all warnings, of what went another way than somebody may think and
// is no failure.
#pragma once

#include <string>
#include <string_view>

namespace dael::app {

// "PROGRAM: warning: TEXT", on one line.
void warn(std::string_view text);
void silence_warnings();               // --quiet
void tell(std::string_view text);      // the same without "warning: "
void complain(std::string_view text);  // and whatever --quiet says

// A secret in a file (`name` is what the warning calls it) that others may read or change is none.
// Nothing is said of what is no regular file.
void warn_if_shared(int fd, const std::string& name);

}  // namespace dael::app
