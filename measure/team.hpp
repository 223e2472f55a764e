// SPDX-License-Identifier: Apache-2.0
// Threads that stand ready, so that a ceiling measured with several of them does not pay for
// starting them: what they run starts and ends at a barrier.
#pragma once

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace dael::measure {

class Team {
  public:
    explicit Team(int threads);  // the calling thread is one of them
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int threads() const noexcept { return static_cast<int>(helpers_.size()) + 1; }

    // Runs work(begin, end) on every thread with its share of `size` bytes; shares are whole cache
    // lines.
    void run(std::size_t size, const std::function<void(std::size_t begin, std::size_t end)>& work);

  private:
    void share(std::size_t thread) const;

    const std::function<void(std::size_t, std::size_t)>* work_ = nullptr;  // null: time to go home
    std::size_t size_ = 0;
    std::barrier<> barrier_;
    std::vector<std::thread> helpers_;
};

// How many threads `threads` stands for: 0 is every core that this process may use.
int thread_count(int threads);

}  // namespace dael::measure
