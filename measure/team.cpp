// SPDX-License-Identifier: Apache-2.0
#include "measure/team.hpp"

#include <algorithm>

namespace dael::measure {
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

}  // namespace dael::measure
