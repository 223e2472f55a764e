// SPDX-License-Identifier: Apache-2.0
// Memory that runs out at a chosen allocation: operator new, libcrypto's own, and mmap(), of which
// secrets come. A program that links short_memory.cpp has these replaced from its start; under
// sanitizers, which have their own, there is nothing to count and kShortMemory is false.
#pragma once

#include <cstddef>

namespace dael::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DAEL_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DAEL_SANITIZED
#endif
#if defined(DAEL_SANITIZED)
inline constexpr bool kShortMemory = false;
#else
inline constexpr bool kShortMemory = true;
#endif

// From here on the nth allocation of the process fails, once; with 0 none does. Returns whether the
// last one that was asked for has failed by now.
bool fail_allocation(long nth) noexcept;
// From here on only those of the calling thread count; with false, those of all threads again.
void fail_here_alone(bool alone) noexcept;
// As long as one is there none fails, nor counts: for what tests do themselves in between.
class MemoryEnough {
  public:
    MemoryEnough() noexcept;
    ~MemoryEnough();
};
// Allocations that have not been given back.
long live_allocations() noexcept;

}  // namespace dael::test
