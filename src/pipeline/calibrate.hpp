// SPDX-License-Identifier: Apache-2.0
// Calibration of given backends with a given effort; dael::calibrate() is this with those that are
// here.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include <daelstrom/plan.hpp>

#include "pipeline/engine_state.hpp"

namespace dael::pipeline {

// How much is measured. Sizes are in bytes; smaller ones would measure set-up instead of rates.
// Host backends are measured within the caches, Planner::kCached bytes to a core at most, and
// memory by itself.
struct Effort {
    std::chrono::milliseconds figure{15};            // for one figure on the host
    std::size_t one_core = std::size_t{1} << 20;     // what one core is given; stays in its cache
    std::size_t every_core = std::size_t{4} << 20;   // for each core when all work
    std::size_t memory = std::size_t{128} << 20;     // from and to memory that no cache holds
    std::size_t bus = std::size_t{256} << 20;        // what crosses the bus, at least 64 MiB
    std::size_t kernel = std::size_t{256} << 20;     // in device memory, parallel modes
    std::size_t sequential = std::size_t{32} << 20;  // in device memory, messages of 4 KiB
};

// `find_devices` is called once, timed as part of what starting a device costs.
Result<Calibration> calibrate_backends(const Backends& hosts,
                                       const std::function<Backends()>& find_devices,
                                       const CalibrationProgress& progress, const Effort& effort);

}  // namespace dael::pipeline
