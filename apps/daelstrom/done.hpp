// SPDX-License-Identifier: Apache-2.0
// What was done with a file, for people and for programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/engine.hpp>

#include "commands.hpp"

namespace dael::cli {

// Who did how much of a file, or of all of them, as the engine's calls told.
class Doers {
  public:
    void add(const Ran& ran, std::uint64_t bytes);
    void add(const Doers& others);

    struct Part {
        std::string name;  // "cuda:0"
        double bytes = 0;
        int percent = 0;
    };
    // Devices first; whoever did less than half a per cent is left out, where others did more.
    std::vector<Part> parts() const;
    int threads() const { return threads_; }  // of the host, at most

  private:
    void count(std::string_view name, double bytes);
    std::vector<Part> parts_;  // in the order that they came in, without their percentages
    int threads_ = 1;
};

// "cpu, 8 threads"; "cuda:0 62% and cpu 38%, 8 threads".
std::string by(const Doers& doers);

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
    Doers doers;
    double seconds = 0;  // from the first byte to the last
};
// --json: a line of JSON on standard output for each file.
void print_done(const Done& done);
// Whether that has standard output for itself. Errors: invalid_argument.
Result<> check_json(bool json, const std::optional<std::string>& output);

}  // namespace dael::cli
