// SPDX-License-Identifier: Apache-2.0
// Times a function on fixed and on random inputs, for Welch's t-test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <daelstrom/cipher.hpp>

#include "timing/welch.hpp"

namespace dael::timing {

using Input = std::array<std::uint8_t, 32>;

inline constexpr int kAttempts = 5;
inline constexpr std::size_t kSamples = 20000;

inline double now() noexcept {
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

// Times function(input) on inputs that are either `fixed` or random(), by the toss of a coin. All
// inputs are laid out beforehand, so that the timed loop does the same for both kinds.
template <class Function, class Random>
Samples time(const Input& fixed, Random random, Function function) {
    static std::mt19937_64 coin(20011126);
    std::vector<Input> inputs(kSamples, fixed);
    std::vector<char> is_fixed(kSamples);
    for (std::size_t i = 0; i < kSamples; ++i) {
        is_fixed[i] = static_cast<char>(coin() & 1);
        const Input other = random();
        if (!is_fixed[i]) inputs[i] = other;
    }
    std::vector<double> times(kSamples);
    for (std::size_t i = 0; i < kSamples; ++i) {
        const double before = now();
        function(inputs[i]);
        times[i] = now() - before;
    }
    Samples samples;
    for (std::size_t i = kSamples / 20; i < kSamples; ++i)  // the first are cold
        (is_fixed[i] ? samples.fixed : samples.random).push_back(times[i]);
    return samples;
}

inline Input random_input() {
    static std::mt19937_64 random(1);
    Input input;
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random());
    return input;
}

inline Block first_block(const Input& input) {
    Block block;
    std::copy_n(input.begin(), block.size(), block.begin());
    return block;
}

// Which inputs are fixed: all zeros and all ones are where an S-box or a field multiplication with
// a short cut would show, the third is like any other.
inline std::vector<Input> fixed_inputs() {
    Input zeros{}, ones{}, any{};
    ones.fill(0xff);
    for (std::size_t i = 0; i < any.size(); ++i) any[i] = static_cast<std::uint8_t>(73 * i + 11);
    return {zeros, ones, any};
}

template <class Function>
void expect_constant_time(const char* what, Function function) {
    for (const Input& fixed : fixed_inputs()) {
        const double t =
            smallest_of(kAttempts, [&] { return time(fixed, random_input, function); });
        EXPECT_LT(t, kThreshold) << what << " depends on its input (first byte " << int{fixed[0]}
                                 << ")";
    }
}

}  // namespace dael::timing
