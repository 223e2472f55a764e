// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace daelpy {
namespace {

std::atomic<std::uint64_t> forks{0};  // between the first process with this module and this one
[[maybe_unused]] const int counted = pthread_atfork(nullptr, nullptr, [] { ++forks; });

}  // namespace

std::uint64_t this_process() noexcept {
    return forks.load(std::memory_order_relaxed) << 32 | static_cast<std::uint32_t>(getpid());
}

}  // namespace daelpy
