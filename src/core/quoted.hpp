// SPDX-License-Identifier: Apache-2.0
// Names that came from outside, as messages show them.
#pragma once

#include <string>
#include <string_view>

namespace dael::core {

// 'name', short and on one line: control characters are spelt out, and a long name is cut.
std::string quoted(std::string_view name);

}  // namespace dael::core
