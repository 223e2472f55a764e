// SPDX-License-Identifier: Apache-2.0
// An engine as a test subject: through host memory, and where it is on a device, through device
// memory.
#pragma once

#include "support/subject.hpp"

namespace dael::test {

// `expected`: the backend that must have run; empty for "auto".
std::unique_ptr<Subject> engine_subject(Engine engine, std::string expected);
std::unique_ptr<Subject> engine_memory_subject(Engine engine, std::string expected);

}  // namespace dael::test
