// SPDX-License-Identifier: Apache-2.0
// A device that runs the lab's own kernels, whichever way it is programmed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <daelstrom/device.hpp>
#include <daelstrom/engine.hpp>

#include "lab/shape.hpp"
#include "measure/device.hpp"

namespace dael::lab {

RoundKeys128 expand(const std::vector<std::uint8_t>& key);
Constants constants_of(const std::vector<std::uint8_t>& key, const Block& start);
// T0 to T3, 256 words each.
std::vector<std::uint32_t> tables();

class KernelDevice {
  public:
    virtual ~KernelDevice() = default;
    const std::string& name() const { return access().backend; }  // "opencl:0"
    virtual const DeviceAccess& access() const = 0;
    virtual Engine& engine() = 0;
    virtual int processors() const = 0;
    // Whether it is a processor that plays a device: orders of magnitude slower than a GPU.
    virtual bool is_cpu() const = 0;
    // Memory that kernels and the clock alike take.
    struct Storage {
        std::uint8_t* data = nullptr;  // as the engine's device names it
        std::shared_ptr<void> held;
    };
    virtual Result<Storage> allocate(std::size_t size) = 0;
    // Encrypts `blocks` blocks of AES from `in` to `out`, in `grid` blocks of threads (0: as many
    // as the data needs). Errors: unsupported, where the device has no room for the shape; what the
    // compiler says.
    virtual Result<measure::Launch> prepare(const Shape& shape, const Constants& constants,
                                            const Storage& in, const Storage& out,
                                            std::uint32_t blocks, std::uint32_t grid) = 0;
};

// Those that this machine has; a line in the report for each that it lacks.
std::vector<std::shared_ptr<KernelDevice>> kernel_devices(measure::Report& report);

Result<std::shared_ptr<KernelDevice>> open_opencl_kernels();
Result<std::shared_ptr<KernelDevice>> open_cuda_kernels();

}  // namespace dael::lab
