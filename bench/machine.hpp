// SPDX-License-Identifier: Apache-2.0
// Which machine and which build a report is about.
#pragma once

#include "bench/row.hpp"

namespace dael::core {
struct DeviceInfo;
}

namespace dael::bench {

std::uint64_t available_memory();  // bytes that can be had without swapping
Machine describe_host();
void describe_device(Machine& machine, const core::DeviceInfo& info);
void describe_build(Report& report);  // date, version, commit, compiler

}  // namespace dael::bench
