// SPDX-License-Identifier: Apache-2.0
// A calibration as text, JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <daelstrom/plan.hpp>

namespace dael::pipeline {

// Errors: internal, for names that are no UTF-8.
Result<std::string> to_json(const Calibration& calibration);
// None where anything is not as to_json() writes it, and where it is another version's.
std::optional<Calibration> calibration_of(std::string_view json);

}  // namespace dael::pipeline
