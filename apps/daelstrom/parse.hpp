// SPDX-License-Identifier: Apache-2.0
// From a command line to an exit status, for this program and for the lab's: 0 done, 1 it failed,
// 2 the command line is wrong.
#pragma once

#include <functional>

#include "commands.hpp"

namespace dael::cli {

// What main() does: standard descriptors, signals and core dumps are seen to, then `run`. What
// the standard library throws when memory runs out ends as a message too, after everything on the
// way here has been tidied up.
int guarded(const std::function<int()>& run);

// Parses the words, has the command done that they name, and complains in one line.
int parse_and_run(CLI::App& app, Context& context, int argc, char** argv);

int complain(const Error& error);

}  // namespace dael::cli
