// SPDX-License-Identifier: Apache-2.0
// What a piece of work, or another program, costs in time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::lab {

double now();  // seconds of a steady clock

struct Spent {
    double seconds = 0;      // wall time
    double cpu_seconds = 0;  // of user and system, all threads
};

// Runs a program, looked for where the shell would, to its end; `log` gets what it says on standard
// error. Errors: backend_absent, if there is no such program; io, if it fails, with the first line
// that it said.
Result<Spent> run_program(const std::vector<std::string>& words, const std::filesystem::path& log);

// The same figures of work in this process.
Result<Spent> spend(const std::function<Result<>()>& work);

}  // namespace dael::lab
