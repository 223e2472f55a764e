// SPDX-License-Identifier: Apache-2.0
// kernels/*.cl as strings, which CMake makes of the files.
#pragma once

#include <string_view>

namespace dael::lab::sources {

extern const std::string_view placement;

}  // namespace dael::lab::sources
