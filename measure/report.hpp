// SPDX-License-Identifier: Apache-2.0
// Measured figures, a run's worth of them, and how they are printed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "measure/point.hpp"
#include "measure/turns.hpp"

namespace dael::measure {

// What a figure is held against: measured in the same turns, on the same payload.
struct Ceiling {
    std::string name;  // "copy within device memory"
    double gbps = 0;   // its median
    double ratio = 0;  // the row's rate over this one's, the median over the turns
};

// Numbers beside the rate, by name: {"p99_ns", 812}.
using Figures = std::vector<std::pair<std::string, double>>;

struct Row {
    Point point;
    Spread gbps;         // payload counted once, whatever the number of copies
    double seconds = 0;  // of one call, the median
    int samples = 0;
    std::vector<Ceiling> ceilings;  // the first is the one that the table shows; may be empty
    Figures figures;                // what else was found out, in JSON fields of the row's own
    std::vector<double> series;     // seconds of one call, every sample; printed if asked for
};

struct Machine {
    std::string cpu;
    int cores = 0;  // that this process may use
    std::uint64_t memory = 0;
    std::string gpu;  // empty: none; so are the fields below
    int multiprocessors = 0;
    std::uint64_t gpu_memory = 0;
    std::string driver;        // "580.65.06"
    std::string cuda_runtime;  // "13.0"
};

struct Report {
    Machine machine;
    std::string date;     // UTC, ISO 8601
    std::string version;  // "0.1.0"
    std::string commit;   // of the source tree when it was built
    std::string compiler;
    std::string suite;
    std::vector<Row> rows;
    std::vector<std::string> skipped;  // one line each: what was left out and why
    Point about;                       // what else is said of the run, in fields of its own
    bool every_sample = false;         // whether rows are printed with their series

    void skip(std::string line);  // once
};

// How the fields of a point stand in a table: the columns in front of the figures, and the heading
// under which a row comes. Rows without a heading are left out.
struct Columns {
    struct Column {
        std::string title;
        bool right = false;  // aligned
        std::function<std::string(const Point&)> text;
    };
    std::vector<Column> columns;
    std::vector<std::string> groups;  // values of the field `where`, in their order
    std::function<std::string(const Machine&, const std::string& group)> heading;
    std::function<std::string(const Figures&)> figures = {};  // null: they are not shown
};

std::string to_table(const Report& report, const Columns& columns);
// A field that is empty or 0 is left out.
std::string to_json(const Report& report);

}  // namespace dael::measure
