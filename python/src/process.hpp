// SPDX-License-Identifier: Apache-2.0
// Which process this is: a child of fork() is another one, also where it has its parent's number,
// in a namespace of its own.
#pragma once

#include <cstdint>

namespace daelpy {

// Of objects that stand for something which only the process that made it may go on with.
std::uint64_t this_process() noexcept;

}  // namespace daelpy
