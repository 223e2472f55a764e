// SPDX-License-Identifier: Apache-2.0
// Asks on the terminal itself (/dev/tty), whatever standard input and output are, without echo.
#pragma once

#include <string>

#include <daelstrom/error.hpp>

#include "io/secrets.hpp"

namespace dael::app {

// Stopped by Ctrl-Z, it asks again when it goes on, without echo as before; begun in the
// background, it waits for the foreground. For one thread of the process at a time.
//
// One line, without its end; asked twice if `confirm`. `instead` says what to do where there is no
// terminal ("give --key-file FILE").
Result<Secret> prompt(const std::string& what, bool confirm, const std::string& instead);

}  // namespace dael::app
