// SPDX-License-Identifier: Apache-2.0
// Does a running time depend on the data? Welch's t-test of times under one fixed input against
// times under random inputs, after O. Reparaz, J. Balasch, I. Verbauwhede, "Dude, is my code
// constant time?" (DATE 2017).
//
// A large |t| says that the two kinds of input take different times. A small one says only that no
// difference was seen with so many samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace dael::measure {

// The level from which on a difference is held for real. Chance alone passes 4.5 once in 10^5
// tests; the rest is for the many croppings that are tried and for the drifts of a busy machine.
inline constexpr double kThreshold = 10.0;

// Times by kind of input, in any one unit.
struct Samples {
    std::vector<double> fixed, random;
};

// Mean and variance, in one pass and without cancellation (Welford).
class Moments {
  public:
    void add(double value) noexcept {
        ++count_;
        const double delta = value - mean_;
        mean_ += delta / static_cast<double>(count_);
        squares_ += delta * (value - mean_);
    }
    std::size_t count() const noexcept { return count_; }
    double mean() const noexcept { return mean_; }
    double variance_of_mean() const noexcept {
        const auto n = static_cast<double>(count_);
        return count_ < 2 ? 0 : squares_ / (n - 1) / n;
    }

  private:
    std::size_t count_ = 0;
    double mean_ = 0, squares_ = 0;
};

// Welch's t over the times up to `limit`: positive when the fixed input takes longer. 0 when either
// kind has too few of them to judge.
inline double welch_t(const Samples& samples, double limit) noexcept {
    constexpr std::size_t kEnough = 500;
    Moments fixed, random;
    for (const double time : samples.fixed)
        if (time <= limit) fixed.add(time);
    for (const double time : samples.random)
        if (time <= limit) random.add(time);
    if (fixed.count() < kEnough || random.count() < kEnough) return 0;
    const double variance = fixed.variance_of_mean() + random.variance_of_mean();
    const double difference = fixed.mean() - random.mean();
    if (variance == 0) return difference == 0 ? 0 : std::copysign(INFINITY, difference);
    return difference / std::sqrt(variance);
}

// The t of largest size over many croppings. Interrupts and other tenants make long times, which
// hide a small difference; cutting at several percentiles of all times lets it show at one of them.
inline double largest_t(const Samples& samples) {
    std::vector<double> all = samples.fixed;
    all.insert(all.end(), samples.random.begin(), samples.random.end());
    if (all.empty()) return 0;
    std::ranges::sort(all);
    double largest = welch_t(samples, all.back());
    constexpr int kCroppings = 50;
    for (int i = 1; i <= kCroppings; ++i) {
        // Percentiles close up towards the top, where the tail is: 1 - 2^(-10 i / n).
        const double percentile = 1 - std::exp2(-10.0 * i / kCroppings);
        const auto index =
            static_cast<std::size_t>(percentile * static_cast<double>(all.size() - 1));
        const double t = welch_t(samples, all[index]);
        if (std::fabs(t) > std::fabs(largest)) largest = t;
    }
    return largest;
}

// Collects samples until one set shows no difference, or `attempts` sets are through, and returns
// the |t| that is the smallest. A leak is in the code and shows every time; a neighbour's noise
// passes.
inline double smallest_of(int attempts, const std::function<Samples()>& collect) {
    double smallest = INFINITY;
    for (int i = 0; i < attempts && smallest >= kThreshold; ++i)
        smallest = std::min(smallest, std::fabs(largest_t(collect())));
    return smallest;
}

}  // namespace dael::measure
