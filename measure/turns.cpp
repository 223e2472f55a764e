// SPDX-License-Identifier: Apache-2.0
#include "measure/turns.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

namespace dael::measure {
namespace {

double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Sampler wall_clock(std::function<Result<>()> call, const Sampling& sampling) {
    const auto calls = std::make_shared<int>(0);  // of one sample; 0: not known yet
    return [call = std::move(call), calls, target = sampling.sample_seconds]() -> Result<double> {
        int count = std::max(1, *calls);
        for (;;) {
            const double start = now();
            for (int i = 0; i < count; ++i) DAEL_TRY(call());
            const double seconds = now() - start;
            if (*calls != 0) return seconds / count;
            if (seconds >= target || count >= 1 << 24) {
                *calls = count;
                return seconds / count;
            }
            // Aims a little past the target, in steps that a first slow call cannot mislead.
            const double factor = seconds > 0 ? 1.2 * target / seconds : 16;
            count = static_cast<int>(std::ceil(count * std::clamp(factor, 1.5, 16.0)));
        }
    };
}

Result<std::vector<Series>> compare(const std::vector<Contestant>& contestants,
                                    const Sampling& sampling) {
    std::vector<Series> all(contestants.size());
    const double start = now();
    for (int turn = sampling.warm_up ? -1 : 0; turn < sampling.repeats; ++turn) {
        if (turn >= 3 && now() - start > sampling.budget_seconds) break;
        for (std::size_t i = 0; i < contestants.size(); ++i) {
            // Each turn begins with another contestant, so that none always follows the same one.
            const std::size_t who = (i + static_cast<std::size_t>(turn + 1)) % contestants.size();
            const auto seconds = contestants[who].sample();
            if (!seconds)
                return Error{seconds.code(),
                             contestants[who].name + ": " + seconds.error().message};
            if (turn >= 0) all[who].push_back(*seconds);
        }
    }
    return all;
}

Spread spread(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    const double median =
        values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return {median, values.front(), values.back()};
}

Spread gigabytes_per_second(const Series& series, double bytes) {
    std::vector<double> rates;
    for (const double seconds : series) rates.push_back(bytes / seconds / 1e9);
    return spread(std::move(rates));
}

double speed_ratio(const Series& series, const Series& other) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(series.size(), other.size()); ++i)
        ratios.push_back(other[i] / series[i]);
    return spread(std::move(ratios)).median;
}

PinnedThread::PinnedThread() {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return;
    const int core = sched_getcpu();
    if (core < 0) return;
    before_.resize(sizeof mask);
    std::memcpy(before_.data(), &mask, sizeof mask);
    CPU_ZERO(&mask);
    CPU_SET(core, &mask);
    sched_setaffinity(0, sizeof mask, &mask);  // on failure the figures are noisier, not wrong
}

PinnedThread::~PinnedThread() {
    if (before_.empty()) return;
    cpu_set_t mask;
    std::memcpy(&mask, before_.data(), sizeof mask);
    sched_setaffinity(0, sizeof mask, &mask);
}

}  // namespace dael::measure
