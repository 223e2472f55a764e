// SPDX-License-Identifier: Apache-2.0
// Which machine and which build a report is about.
#pragma once

#include <daelstrom/device.hpp>

#include "measure/report.hpp"

namespace dael::measure {

Machine describe_host();
void describe_device(Machine& machine, const DeviceInfo& info);
void describe_build(Report& report);  // date, version, commit, compiler

}  // namespace dael::measure
