// SPDX-License-Identifier: Apache-2.0
// Where daelstrom keeps what it has measured and built for this user and machine.
#pragma once

#include <string>

namespace dael::core {

// $XDG_CACHE_HOME/daelstrom, else ~/.cache/daelstrom; empty where neither is set to an absolute
// path. It need not exist.
std::string cache_folder();

}  // namespace dael::core
