// SPDX-License-Identifier: Apache-2.0
// A device that runs the lab's own kernels, whichever way it is programmed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <daelstrom/device.hpp>
#include <daelstrom/engine.hpp>

#include "measure/device.hpp"

namespace dael::lab {

// What kernels/placement.cl is compiled for.
struct Shape {
    enum class Tables { constant, shared, banks, none };
    enum class State { registers, aos, soa };
    int bytes = 16;  // of a block, that a thread makes
    Tables tables = Tables::shared;
    bool keys_shared = false;
    State state = State::registers;
    int count = 4;      // T-tables
    int threads = 256;  // of a block

    std::uint64_t local_memory() const;                  // bytes that a block wants
    int blocks() const { return threads * bytes / 16; }  // of AES, that it works on at once
    friend bool operator==(const Shape&, const Shape&) = default;
};

// The round keys of AES-128, in words whose first byte is the lowest.
struct RoundKeys128 {
    std::uint32_t words[44];
};
RoundKeys128 expand(const std::vector<std::uint8_t>& key);
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
    struct Buffer {
        std::uint8_t* data = nullptr;  // as the engine's device names it
        std::shared_ptr<void> held;
    };
    virtual Result<Buffer> allocate(std::size_t size) = 0;
    // Encrypts `blocks` blocks of AES from `in` to `out`, in `grid` blocks of threads (0: as many
    // as the data needs). Errors: unsupported, where the device has no room for the shape; what the
    // compiler says.
    virtual Result<measure::Launch> prepare(const Shape& shape, const RoundKeys128& keys,
                                            const Buffer& in, const Buffer& out,
                                            std::uint32_t blocks, std::uint32_t grid) = 0;
};

// Those that this machine has; a line in the report for each that it lacks.
std::vector<std::shared_ptr<KernelDevice>> kernel_devices(measure::Report& report);

Result<std::shared_ptr<KernelDevice>> open_opencl_kernels();

}  // namespace dael::lab
