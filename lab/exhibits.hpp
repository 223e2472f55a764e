// SPDX-License-Identifier: Apache-2.0
// Commands that work on files as those of `daelstrom` do, and are shown here and nowhere else. They
// stand on that program's own.
#pragma once

#include "apps/daelstrom/commands.hpp"

namespace dael::cli {

// A command line whose first word is one (is_exhibit). Gives the exit status.
int run_exhibit(int argc, char** argv);

// Takes the value of the password option of `aes` out of the arguments and overwrites it there,
// before anything copies it. Empty when there is none.
Result<Secret> take_password_argument(int argc, char** argv);
void add_aes(CLI::App& app, Context& context, Secret password);

}  // namespace dael::cli
