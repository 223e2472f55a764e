// SPDX-License-Identifier: Apache-2.0
// What every part of the benchmark shares: what was asked for, and where the rows go.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "bench/row.hpp"
#include "bench/workload.hpp"

namespace dael::bench {

struct Session {
    const Options& options;
    const Workload& workload;
    Report& report;
    std::function<void(const std::string&)> progress;  // told what is being measured

    // Says once what is left out.
    void skip(std::string line) {
        if (std::ranges::find(report.skipped, line) == report.skipped.end())
            report.skipped.push_back(std::move(line));
    }
};

// The largest message up to `wanted` bytes of which `buffers` fit into three quarters of the memory
// that is available; says so in a line when it is less than wanted.
std::uint64_t fitting(Session& session, std::uint64_t wanted, int buffers);

// The ways to use XTS: both ways, each sector size; without sizes, backend and place. None for keys
// that XTS has not got, or where it was not asked for.
std::vector<Work> xts_works(const Session& session, int bits);

// A way to use GCM or GMAC, less the backend and the place: `shape` under `keys` keys.
Work gcm_work(int bits, Direction direction, const BatchShape& shape, std::uint64_t keys);

// Whether GCM has rows for keys of this size: AES-192, which hardly anybody uses with it, has them
// only when it was asked for.
bool wants_gcm(const Session& session, int bits);

// Contestants that take turns, and the rows that come of them.
class Heat {
  public:
    // Returns the contestant's number, for row().
    std::size_t enter(std::string name, Sampler sample);
    // A row for this contestant, held against others of this heat, the ceiling first.
    void row(Work work, std::size_t contestant, std::vector<std::size_t> yardsticks);
    Result<> run(Session& session) const;

  private:
    struct Planned {
        Work work;
        std::size_t contestant;
        std::vector<std::size_t> yardsticks;
    };
    std::vector<Contestant> contestants_;
    std::vector<Planned> rows_;
};

// The parts. Each adds its rows to session.report; what the machine lacks is skipped with a line.
Result<> measure_one_core(Session& session);
Result<> measure_all_cores(Session& session);
Result<> measure_devices(Session& session);
Result<> measure_generations(Session& session);  // a suite of its own

// All of them.
Result<Report> measure(const Options& options, std::function<void(const std::string&)> progress);

}  // namespace dael::bench
