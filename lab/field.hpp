// SPDX-License-Identifier: Apache-2.0
// Data on one device, and kernels over it: what placement, granularity and timing share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/work.hpp"
#include "lab/kernel_device.hpp"
#include "lab/study.hpp"

namespace dael::lab {

const char* word(Shape::Tables tables);
const char* word(Shape::State state);

// How much data a kernel of the lab gets on this device.
std::uint64_t data_size(const Bench& bench, const KernelDevice& device);

struct Field {
    std::shared_ptr<KernelDevice> device;
    measure::DeviceClock clock;
    std::uint64_t size = 0;
    measure::HostBuffer host;
    KernelDevice::Storage in, out;

    static Result<std::shared_ptr<Field>> make(std::shared_ptr<KernelDevice> device,
                                               std::uint64_t size);

    std::uint32_t blocks() const { return static_cast<std::uint32_t>(size / kBlockSize); }
    // Blocks of threads, for so many blocks of AES to a thread; 0: as many as fit on the device.
    std::uint32_t grid_of(const Shape& shape, int blocks_per_thread) const;
    // What a kernel of this form does.
    bench::Work work_of(const Shape& shape) const;
    Result<measure::Launch> prepare(const Shape& shape, std::uint32_t grid) const;
    // Poison, one launch, and what came of it beside OpenSSL's.
    Result<> check(const Shape& shape, const measure::Launch& launch) const;
    std::size_t enter_copy(measure::Heat& heat) const;
};

// Takes a kernel into a heat, with the fields of its row.
Result<std::size_t> enter(measure::Heat& heat, const std::shared_ptr<Field>& field,
                          const char* name, const Shape& shape, int blocks_per_thread,
                          std::vector<std::size_t> against);

}  // namespace dael::lab
