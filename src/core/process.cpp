// SPDX-License-Identifier: Apache-2.0
#include "core/process.hpp"

#include <pthread.h>

#include <atomic>

namespace dael::core {

std::uint32_t this_process() noexcept {
    static std::atomic<std::uint32_t> forks{0};
    [[maybe_unused]] static const int watched =
        pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
    return forks.load(std::memory_order_relaxed);
}

}  // namespace dael::core
