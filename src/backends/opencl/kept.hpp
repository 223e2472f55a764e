// SPDX-License-Identifier: Apache-2.0
// Deferred freeing: what a kernel may still read or write is neither wiped nor given back. Where
// the wait for it failed, it is kept and asked again whenever memory is allocated, until it is
// over; a device that fails for good keeps it to the end of the process. Thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "backends/opencl/ends.hpp"
#include "backends/opencl/keys.hpp"

namespace dael::opencl {

// Until all of these kernels have ended.
void keep(std::vector<Ends> until, std::vector<SecretBuffer> what) noexcept;
// Asks again, and wipes and gives back what is over. How many are left.
std::size_t retry_kept() noexcept;

}  // namespace dael::opencl
