// SPDX-License-Identifier: Apache-2.0
// Random walks: calls of a face in any order, held against a model. The same seeds in every run,
// few enough for
// ./check; DAELSTROM_WALK_SECONDS=600 walks on from there for so long, DAELSTROM_WALK_SEED=N begins
// at another seed, and with DAELSTROM_WALK_SECONDS=0 walks that one alone: what a failure's text
// asks for.
//
//     for (Walks walks("esp", 200); walks.next();) {
//         SCOPED_TRACE(walks.text());
//         Random random(walks.seed());
//         ... walks.step() for each call ...
//     }
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace dael::test {

class Walks {
  public:
    // `usual`: how many are walked without the variables. `name`: what the line at the end is
    // about.
    Walks(const char* name, std::uint64_t usual) : name_(name), usual_(usual) {
        if (const char* seed = std::getenv("DAELSTROM_WALK_SEED"))
            first_ = std::strtoull(seed, nullptr, 10);
        if (const char* seconds = std::getenv("DAELSTROM_WALK_SECONDS")) {
            usual_ = 1;
            until_ = begun_ + std::chrono::seconds(std::strtoll(seconds, nullptr, 10));
        }
    }
    ~Walks() {
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
        std::printf("walks of %s: %llu, %llu steps, %.0f a second\n", name_,
                    static_cast<unsigned long long>(done_), static_cast<unsigned long long>(steps_),
                    static_cast<double>(steps_) / (seconds > 0 ? seconds : 1));
    }
    Walks(const Walks&) = delete;
    Walks& operator=(const Walks&) = delete;

    // Whether there is another to walk; true `usual` times, and until the seconds are over.
    bool next() {
        if (done_ >= usual_ && std::chrono::steady_clock::now() >= until_) return false;
        ++done_;
        return true;
    }
    std::uint64_t seed() const { return first_ + done_ - 1; }
    void step() { ++steps_; }
    // How to walk this one again.
    std::string text() const {
        return "DAELSTROM_WALK_SECONDS=0 DAELSTROM_WALK_SEED=" + std::to_string(seed());
    }

  private:
    using Time = std::chrono::steady_clock::time_point;
    const char* name_;
    std::uint64_t usual_, first_ = 1, done_ = 0, steps_ = 0;
    Time begun_ = std::chrono::steady_clock::now(), until_ = begun_;
};

}  // namespace dael::test
