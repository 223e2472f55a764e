// SPDX-License-Identifier: Apache-2.0
// Whether fork() came in between.
#pragma once

#include <cstdint>

namespace dael::core {

// A number that a child of fork() has to itself, from the first call on. Every launch asks, and
// getpid() is a call to the system, which takes a tenth as long as a launch.
std::uint32_t this_process() noexcept;

}  // namespace dael::core
