// SPDX-License-Identifier: Apache-2.0
// A device backend as a test subject: messages travel to device memory, keep their alignment there,
// and lie in poison, which is checked to the last byte after each call.
#pragma once

#include <memory>

#include "core/device.hpp"
#include "support/subject.hpp"

namespace dael::test {

std::unique_ptr<Subject> device_subject(std::unique_ptr<core::Backend> backend);

}  // namespace dael::test
