// SPDX-License-Identifier: Apache-2.0
// Nothing throws across the library's boundary; see pipeline/guard.hpp.
#pragma once

#include "pipeline/guard.hpp"

namespace dael::formats {

using pipeline::guarded;

}  // namespace dael::formats
