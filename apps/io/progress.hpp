// SPDX-License-Identifier: Apache-2.0
// How far along: done, percent, rate and time left, on standard error.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace dael::app {

// automatic: on a terminal, once it takes a while; json: lines for another program
enum class Show { automatic, always, json, never };

// Any number of threads may report.
class Progress {
  public:
    Progress(Show show, std::string what, std::optional<std::uint64_t> total);

    void advance(std::uint64_t bytes);
    void finish(std::string_view by);  // all is well; `by` says who did the work
    void clear();                      // before a message; it is drawn again if more is done

  private:
    using Clock = std::chrono::steady_clock;
    void draw(const std::string& line, bool last);
    std::string line(double seconds) const;
    std::string json_line(double seconds) const;

    std::mutex mutex_;
    bool enabled_, json_;
    bool terminal_;  // is redrawn in place
    bool drawn_ = false;
    std::string what_;
    std::optional<std::uint64_t> total_;
    std::uint64_t done_ = 0;
    Clock::time_point start_ = Clock::now();
    Clock::time_point next_;
};

}  // namespace dael::app
