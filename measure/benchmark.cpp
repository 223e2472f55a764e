// SPDX-License-Identifier: Apache-2.0
#include "measure/benchmark.hpp"

#include <algorithm>

namespace dael::measure {

std::size_t Heat::enter(std::string name, Sampler sample) {
    entries_.push_back({{std::move(name), std::move(sample)}, {}, {}, 0, {}, false, {}});
    return entries_.size() - 1;
}

std::size_t Heat::enter(std::string name, Sampler sample, Check check, Point point, double bytes,
                        std::vector<std::size_t> against) {
    entries_.push_back({{std::move(name), std::move(sample)},
                        std::move(check),
                        std::move(point),
                        bytes,
                        std::move(against),
                        true,
                        {}});
    return entries_.size() - 1;
}

Result<> Heat::run(const Sampling& sampling, const std::string& what, Report& report) {
    for (Entrant& entry : entries_) {
        if (!entry.has_row || !entry.check) continue;
        auto checked = entry.check();
        if (checked.code() == Code::unsupported) {
            report.skip(what + ": " + checked.error().message);
            entry.has_row = false;
        } else if (!checked) {
            return checked;
        }
    }
    // Who has no row, and is nobody's yardstick, need not run.
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < entries_.size(); ++i)
        if (entries_[i].has_row || std::ranges::any_of(entries_, [i](const Entrant& entry) {
                return entry.has_row && std::ranges::count(entry.against, i) != 0;
            }))
            running.push_back(i);
    std::vector<Contestant> contestants;
    for (const std::size_t i : running) contestants.push_back(entries_[i].contestant);
    if (contestants.empty()) return {};
    DAEL_LET(series, compare(contestants, sampling));
    const auto series_of = [&](std::size_t entry) -> const Series& {
        return series[static_cast<std::size_t>(std::ranges::find(running, entry) -
                                               running.begin())];
    };
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        const Entrant& entry = entries_[i];
        if (!entry.has_row) continue;
        const Series& own = series_of(i);
        Row row{entry.point,
                gigabytes_per_second(own, entry.bytes),
                spread(own).median,
                static_cast<int>(own.size()),
                {},
                {},
                own};
        if (entry.figures) row.figures = entry.figures(row.seconds);
        for (const std::size_t other : entry.against)
            row.ceilings.push_back({entries_[other].contestant.name,
                                    gigabytes_per_second(series_of(other), entry.bytes).median,
                                    speed_ratio(own, series_of(other))});
        report.rows.push_back(std::move(row));
    }
    return {};
}

std::vector<Point> points_of(const Benchmark& benchmark) {
    auto points = product(benchmark.axes);
    if (benchmark.has) std::erase_if(points, [&](const Point& p) { return !benchmark.has(p); });
    // A size that two axes name is measured once.
    std::vector<Point> once;
    for (Point& point : points)
        if (std::ranges::find(once, point) == once.end()) once.push_back(std::move(point));
    return once;
}

Result<> Session::run(const Benchmark& benchmark) {
    for (const Point& point : points_of(benchmark)) {
        const std::string what = benchmark.name + ", " + describe(point);
        progress(what);
        auto heat = benchmark.prepare(point);
        auto done = heat ? heat->run(sampling, what, report) : std::move(heat).error();
        const bool absent = done.code() == Code::unsupported ||
                            done.code() == Code::out_of_memory ||
                            done.code() == Code::backend_absent;
        if (!done && !absent) return done;
        if (!done) report.skip(what + ": " + done.error().message);
    }
    return {};
}

}  // namespace dael::measure
