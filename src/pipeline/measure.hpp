// SPDX-License-Identifier: Apache-2.0
// Measures what a device's bus and kernels do, for calibration. (`daelstrom bench` measures on its
// own, from outside, what the engine makes of them.) Results are those of one run; the caller
// repeats.
#pragma once

#include <cstddef>

#include <daelstrom/memory.hpp>

#include "core/device.hpp"
#include "pipeline/transfer.hpp"

namespace dael::pipeline {

struct BusRates {
    double copy_in = 0;  // GB/s, page-locked, one direction at a time
    double copy_out = 0;
    double duplex = 0;     // each way, both at once, in the steady state
    double whole_job = 0;  // the same with the first chunk's way in and the last one's way out
};
// `in` and `out` are page-locked, apart, and at least two chunks long. The duplex rate is that of
// the same chunks through the same slots as a job's, without the kernel.
Result<BusRates> measure_bus(core::Device& device, Transfer& transfer, HostIn in, HostOut out,
                             std::size_t chunk);

// Seconds that one run takes on `size` bytes of device memory, by events: the mean of `repeats`
// runs after one to warm up. Sequential modes: of messages of 4 KiB; others: of one message.
Result<double> measure_kernel(core::Backend& backend, const Cipher& cipher, const Key& key,
                              std::size_t size, int repeats);

}  // namespace dael::pipeline
