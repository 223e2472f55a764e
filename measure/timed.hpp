// SPDX-License-Identifier: Apache-2.0
// Times what is done with fixed and with random inputs, for Welch's t-test.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "measure/welch.hpp"

namespace dael::measure {

using Input = std::array<std::uint8_t, 32>;

inline constexpr int kAttempts = 5;
inline constexpr std::size_t kSamples = 20000;

inline double ticks() noexcept {
#if defined(__x86_64__)
    _mm_lfence();  // neither earlier nor later work may slip across
    const auto ticks = __rdtsc();
    _mm_lfence();
    return static_cast<double>(ticks);
#else
    return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Keeps the compiler from dropping work whose result nobody reads.
template <class T>
void keep(const T& value) noexcept {
    asm volatile("" : : "g"(&value) : "memory");
}

inline bool toss_coin() {
    static std::mt19937_64 coin(20011126);
    return coin() & 1;
}

// Times by kind of input, the kind by the toss of a coin: `measure(is_fixed)` does it once and
// returns how long it took.
template <class Measure>
Samples collect(std::size_t count, Measure measure) {
    Samples samples;
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_fixed = toss_coin();
        const double time = measure(is_fixed);
        if (i < count / 20) continue;  // the first are cold
        (is_fixed ? samples.fixed : samples.random).push_back(time);
    }
    return samples;
}

// Times function(input) on inputs that are either `fixed` or random(), by the toss of a coin. All
// inputs are laid out beforehand, so that the timed loop does the same for both kinds.
template <class Function, class Random>
Samples time(const Input& fixed, Random random, Function function, std::size_t count = kSamples) {
    std::vector<Input> inputs(count, fixed);
    std::vector<char> is_fixed(count);
    for (std::size_t i = 0; i < count; ++i) {
        is_fixed[i] = toss_coin();
        const Input other = random();
        if (!is_fixed[i]) inputs[i] = other;
    }
    std::vector<double> times(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double before = ticks();
        function(inputs[i]);
        times[i] = ticks() - before;
    }
    Samples samples;
    for (std::size_t i = count / 20; i < count; ++i)  // the first are cold
        (is_fixed[i] ? samples.fixed : samples.random).push_back(times[i]);
    return samples;
}

inline Input random_input() {
    static std::mt19937_64 random(1);
    Input input;
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
    return input;
}

// Which inputs are fixed: all zeros and all ones are where an S-box or a field multiplication with
// a short cut would show, the third is like any other.
inline std::vector<Input> fixed_inputs() {
    Input zeros{}, ones{}, any{};
    ones.fill(0xff);
    for (std::size_t i = 0; i < any.size(); ++i) any[i] = static_cast<std::uint8_t>(73 * i + 11);
    return {zeros, ones, any};
}

// A leak that must be found: how long it takes tells where two inputs differ.
__attribute__((noinline)) inline bool leaky_equal(const Input& a, const Input& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != b[i]) return false;
        asm volatile("");  // stays a loop over bytes
    }
    return true;
}

}  // namespace dael::measure
