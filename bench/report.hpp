// SPDX-License-Identifier: Apache-2.0
// A report for people and for programs.
#pragma once

#include <string>

#include "bench/row.hpp"

namespace dael::bench {

std::string to_table(const Report& report);
std::string to_json(const Report& report);  // bench/README.md has the schema

}  // namespace dael::bench
