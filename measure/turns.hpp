// SPDX-License-Identifier: Apache-2.0
// How times are taken: interleaved sampling. Contestants take turns, one sample each, so that a
// machine that slows down or speeds up does so for all of them, and a ratio is the median of the
// ratios within each turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::measure {

// Takes one sample: the seconds of one call.
using Sampler = std::function<Result<double>()>;

struct Contestant {
    std::string name;
    Sampler sample;
};

struct Sampling {
    int repeats = 15;               // samples of each contestant
    double sample_seconds = 0.002;  // a host call is repeated until a sample takes this long
    double budget_seconds = 3;      // no further turn begins after this, once there are three
    bool warm_up = true;            // whether a turn that does not count comes first
};

// One contestant's samples, seconds of one call, in the order of the turns.
using Series = std::vector<double>;

// A call on the host as a sampler, by the wall clock. The first sample, which compare() throws
// away, finds how many calls make up `Sampling::sample_seconds`.
Sampler wall_clock(std::function<Result<>()> call, const Sampling& sampling);

// One warm-up turn, unless there is to be none, then `repeats` turns. Errors: the first error of a
// contestant, with its name.
Result<std::vector<Series>> compare(const std::vector<Contestant>& contestants,
                                    const Sampling& sampling);

struct Spread {
    double median = 0, min = 0, max = 0;
};
Spread spread(std::vector<double> values);

// Gigabytes (10^9) per second for calls that process `bytes` each.
Spread gigabytes_per_second(const Series& series, double bytes);

// How many times as fast as `other` this one is: the median over the turns.
double speed_ratio(const Series& series, const Series& other);

// Keeps the calling thread on the core that it runs on, until destroyed.
class PinnedThread {
  public:
    PinnedThread();
    ~PinnedThread();
    PinnedThread(const PinnedThread&) = delete;
    PinnedThread& operator=(const PinnedThread&) = delete;

  private:
    std::vector<unsigned char> before_;  // the affinity mask; empty if it could not be read
};

}  // namespace dael::measure
