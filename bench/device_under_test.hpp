// SPDX-License-Identifier: Apache-2.0
// One device and the two ways to its data: kernels on device memory, and host memory through it.
#pragma once

#include <string>

#include <daelstrom/engine.hpp>

#include "bench/session.hpp"
#include "core/device.hpp"

namespace dael::bench {

struct DeviceUnderTest {
    std::string name;  // "cuda:0"
    core::Device& device;
    Engine& engine;  // of the same device, for data in host memory
};

// Data in device memory: single messages by size and placement, batches, the cost of a launch.
Result<> measure_resident(Session& session, DeviceUnderTest& subject);

// Data in host memory that goes through the device: kernel, total (one after the other), async.
Result<> measure_through(Session& session, DeviceUnderTest& subject);

}  // namespace dael::bench
