// SPDX-License-Identifier: Apache-2.0
// JSON of which strings may be secret, by a reader that the rooms below use too.
#pragma once

#include "core/json.hpp"

namespace dael::formats {

using core::json_quoted;
using core::json_text;
using core::JsonCharacters;
using core::JsonReader;

}  // namespace dael::formats
