// SPDX-License-Identifier: Apache-2.0
// The shape of the kernels on a device: what lies in local memory, and how many work-items share
// it. Written as "tables=1,teams=16,held=4,groups=4".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

struct Tuning {
    int tables = -1;      // as DAEL_TABLES in kernels/aes.cl
    unsigned teams = 2;   // of 32 work-items, in a work-group
    unsigned held = 4;    // as DAEL_HELD in kernels/ctr_stream.cl: 1, 2, 4 or 8
    unsigned groups = 1;  // work-groups to a compute unit
    bool operator==(const Tuning&) const = default;
};

std::string to_string(const Tuning& tuning);

// What a device can do, as far as kernels' shapes depend on it.
struct Limits {
    std::size_t local_memory = 0;  // bytes of a work-group
    bool dedicated = false;        // local memory is memory of its own, with banks
    std::size_t work_group = 0;    // work-items
};

// Whether a GPU is known to have local memory of its own, by what platform and device are called:
// where a driver does not say so though it has.
bool known_local_memory(std::string_view platform, std::string_view device);

// Bytes of local memory that `tables` take.
std::size_t table_bytes(int tables);
// The most tables up to `tables` that fit.
int tables_that_fit(int tables, const Limits& limits);

// Safe and good on most; the first candidate.
Tuning default_tuning(const Limits& limits);
// What calibration tries.
std::vector<Tuning> candidates(const Limits& limits);
// Fields that are not named are as in default_tuning(). Errors: invalid_argument for a name or a
// value that there is not, unsupported for tables that the device has no room for.
Result<Tuning> parse_tuning(std::string_view text, const Limits& limits);

}  // namespace dael::opencl
