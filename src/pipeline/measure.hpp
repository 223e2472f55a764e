// SPDX-License-Identifier: Apache-2.0
// Measures what crossing a device costs: for the benchmark and for calibration.
//
// Three times, as Potesil's thesis reports them: the kernel alone; in all, one step after another
// (allocate, copy in, kernel, copy out); and overlapped, as the engine does it. Beside them the
// ceiling: the same chunks through the same slots without the kernel. All are of one run, in
// seconds; the caller repeats and takes medians. Input and output must not be the same buffer.
#pragma once

#include <cstddef>

#include <daelstrom/engine.hpp>

#include "core/device.hpp"
#include "pipeline/transfer.hpp"

namespace dael::pipeline {

struct ThreeTimes {
    double kernel = 0;  // launch to end, data in device memory
    double total = 0;   // allocate, copy in, kernel, copy out, release; nothing overlaps
    double async = 0;   // overlapped
    double duplex = 0;  // overlapped copies in and out, no kernel: the ceiling of `async`
};

// Host memory in[0..size) to out[0..size), page-locked or not, on the engine's first device. Data
// that is larger than the device's memory goes in parts where nothing overlaps. Errors: unsupported
// (no device), device, out_of_memory.
Result<ThreeTimes> measure_three_times(Engine& engine, const Key& key, const Cipher& cipher,
                                       HostIn in, HostOut out);

struct BusRates {
    double copy_in = 0;  // GB/s, page-locked, one direction at a time
    double copy_out = 0;
    double duplex = 0;  // each way, both at once
};
// `memory` is page-locked, at least 2 chunks.
Result<BusRates> measure_bus(core::Device& device, Transfer& transfer, HostIn in, HostOut out,
                             std::size_t chunk);

// Seconds that one run of the kernel takes on `size` bytes of device memory, by events: the mean of
// `repeats` runs after one to warm up.
Result<double> measure_kernel(core::Device& device, const core::Operation& operation,
                              std::size_t size, int repeats);

}  // namespace dael::pipeline
