// SPDX-License-Identifier: Apache-2.0
// The backends of this machine, asked for in child processes: a driver that aborts, crashes or
// hangs ends its child, and becomes a line that says so.
#pragma once

#include <vector>

#include <daelstrom/plan.hpp>

namespace dael::cli {

// As list_backends(). Call it before the process has threads or engines.
std::vector<BackendInfo> list_backends_apart();

}  // namespace dael::cli
