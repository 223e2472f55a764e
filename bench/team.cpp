// SPDX-License-Identifier: Apache-2.0
#include "bench/team.hpp"

#include <algorithm>
#include <cstring>

namespace dael::bench {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014) at a given position, so that every thread can start
// anywhere.
std::uint64_t splitmix(std::uint64_t seed, std::uint64_t position) noexcept {
    std::uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

}  // namespace

Team::Team(int threads) : barrier_(std::max(1, threads)) {
    for (int i = 1; i < threads; ++i)
        helpers_.emplace_back([this, i] {
            for (;;) {
                barrier_.arrive_and_wait();
                if (!work_) return;
                share(static_cast<std::size_t>(i));
                barrier_.arrive_and_wait();
            }
        });
}

Team::~Team() {
    work_ = nullptr;
    barrier_.arrive_and_wait();
    for (auto& helper : helpers_) helper.join();
}

void Team::run(std::size_t size, const std::function<void(std::size_t, std::size_t)>& work) {
    work_ = &work;
    size_ = size;
    barrier_.arrive_and_wait();
    share(0);
    barrier_.arrive_and_wait();
}

void Team::share(std::size_t thread) const {
    const std::size_t lines = size_ / 64, all = helpers_.size() + 1;
    const std::size_t begin = lines * thread / all * 64;
    const std::size_t end = thread + 1 == all ? size_ : lines * (thread + 1) / all * 64;
    if (begin < end) (*work_)(begin, end);
}

int thread_count(int threads) {
    return threads > 0 ? threads
                       : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void fill_random(Team& team, std::uint8_t* data, std::size_t size, std::uint64_t seed) {
    team.run(size, [=](std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; at += 8) {
            const std::uint64_t word = splitmix(seed, at / 8);
            std::memcpy(data + at, &word, std::min<std::size_t>(8, end - at));
        }
    });
}

}  // namespace dael::bench
