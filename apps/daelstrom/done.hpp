// SPDX-License-Identifier: Apache-2.0
// What was done with a file, for people and for programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <daelstrom/engine.hpp>

#include "commands.hpp"

namespace dael::cli {

// "cpu, 8 threads".
std::string by(const Ran& ran);

class Stopwatch {
  public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Done {
    std::string command;  // "seal"
    std::string input;    // as it was named
    std::string output;
    std::uint64_t read = 0, written = 0;  // bytes
    Ran ran;
    double seconds = 0;  // from the first byte to the last
};
// --json: a line of JSON on standard output for each file.
void print_done(const Done& done);
// Whether that has standard output for itself. Errors: invalid_argument.
Result<> check_json(bool json, const std::optional<std::string>& output);

}  // namespace dael::cli
