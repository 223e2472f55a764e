// SPDX-License-Identifier: Apache-2.0
// Benchmarks: axes, and a function that prepares one point of them. See measure/README.md for what
// is promised.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "measure/point.hpp"
#include "measure/report.hpp"
#include "measure/turns.hpp"

namespace dael::measure {

// Does the work once, before the clock, and looks at what it made. Errors: unsupported leaves the
// row out; any other ends the run.
using Check = std::function<Result<>()>;

// Those who take turns at one point.
class Heat {
  public:
    // One without a row, for others to be held against. Returns its number.
    std::size_t enter(std::string name, Sampler sample);
    // One with a row, held against others of this heat, the ceiling first. `bytes`: the payload of
    // what a sample times.
    std::size_t enter(std::string name, Sampler sample, Check check, Point point, double bytes,
                      std::vector<std::size_t> against);
    // What else the row of that number says, asked for when all samples were taken; `seconds`: of
    // one call, the median.
    void describe(std::size_t entry, std::function<Figures(double seconds)> figures) {
        entries_[entry].figures = std::move(figures);
    }
    // For what must live, or be done, until the heat is over.
    void keep(std::shared_ptr<void> what) { kept_.push_back(std::move(what)); }

    // Checks, takes the times, and adds the rows to the report. What is left out gets a line that
    // begins with `what`.
    Result<> run(const Sampling& sampling, const std::string& what, Report& report);

  private:
    struct Entrant {
        Contestant contestant;
        Check check;
        Point point;
        double bytes = 0;
        std::vector<std::size_t> against;
        bool has_row = false;
        std::function<Figures(double seconds)> figures = {};
    };
    std::vector<Entrant> entries_;
    std::vector<std::shared_ptr<void>> kept_;
};

struct Benchmark {
    std::string name;  // "device memory"
    std::vector<Axis> axes;
    std::function<bool(const Point&)> has = {};  // which of the product; null: all
    // Errors: unsupported, out_of_memory and backend_absent leave the point out with a line; any
    // other ends the run.
    std::function<Result<Heat>(const Point&)> prepare;
};

std::vector<Point> points_of(const Benchmark& benchmark);

struct Session {
    Report& report;
    Sampling sampling;
    std::function<std::string(const Point&)> describe;  // "ctr-128, 64 MiB", for people
    std::function<void(const std::string&)> progress;   // told what is being measured

    Result<> run(const Benchmark& benchmark);
};

}  // namespace dael::measure
