// SPDX-License-Identifier: Apache-2.0
// The studies, and how one is run. lab/README.md says what is promised.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/benchmark.hpp"

namespace dael::lab {

using measure::Axis;
using measure::Benchmark;
using measure::Point;

inline constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20;

struct Settings {
    bool quick = false;
    std::uint64_t scale = 1;  // divides the largest data of sizes, files, devices and generations
    int repeats = 0;          // samples of each figure; 0: 15, or 3 in a quick run
    std::filesystem::path folder;   // for documents and pictures; empty: none are written
    std::filesystem::path program;  // `daelstrom`, for the study that runs it; empty: not known
};

// What a study is given.
struct Bench {
    const Settings& settings;
    measure::Report& report;
    measure::Session& session;
};

struct Study {
    std::string_view name;    // "placement"
    std::string_view origin;  // "Kazan 2017"
    std::string_view question;
    // Runs it. What the machine lacks becomes a line of the report. Errors: a check that failed,
    // and what ends a benchmark otherwise.
    Result<> (*run)(const Bench& bench);
    std::string (*describe)(const Point& point);  // a point, for people
    const measure::Columns& (*columns)();
};

std::span<const Study> studies();
// Errors: invalid_argument, naming those that there are.
Result<const Study*> study_by_name(std::string_view name);

// Runs one and gives its report, with every sample. Errors: as Study::run.
Result<measure::Report> run(const Study& study, const Settings& settings,
                            std::function<void(const std::string&)> progress);

// Writes all of a document in one step: whoever reads sees the old one or the new one.
// Errors: io, naming the file.
Result<> write_document(const std::filesystem::path& path, const std::string& text);

// Two documents, or two folders of them, as a table for people. Errors: io, and invalid_argument
// for what is no document of the lab's.
Result<std::string> compare(const std::filesystem::path& before,
                            const std::filesystem::path& after);

// Columns that name every field of a point that is not `where` or one of the cipher's usual ones.
std::string describe_fields(const Point& point);

extern const Study kPlacement, kSizes, kPicture, kGranularity, kTiming, kOverlap, kFiles, kEnergy,
    kPackets, kGenerations, kDevices;

}  // namespace dael::lab
