// SPDX-License-Identifier: Apache-2.0
// Work beside the caller's thread.
#pragma once

#include <future>

namespace daelpy {

// On a thread of its own; where none can be had (a limit of processes, a sandbox), by whoever waits
// for it. Both C++ libraries take the second only then.
inline constexpr std::launch kBeside = std::launch::async | std::launch::deferred;

}  // namespace daelpy
