// SPDX-License-Identifier: Apache-2.0
// Which machine and which build a report is about.
#pragma once

#include "bench/row.hpp"

namespace dael::core {
struct DeviceInfo;
}

namespace dael::bench {

Machine describe_host();
void describe_device(Machine& machine, const core::DeviceInfo& info);
void describe_build(Report& report);  // date, version, commit, compiler

}  // namespace dael::bench
