// SPDX-License-Identifier: Apache-2.0
// AEGIS on the device (RFC 10032): batches in device memory, and a few messages without one.
#pragma once

#include "backends/cuda/aegis/kernels.hpp"
#include "backends/cuda/device.hpp"
#include "backends/cuda/keys/keys.hpp"

namespace dael::cuda {

// As Device::prepare, for Mode::aegis128l, aegis256, aegis128x2 and aegis128x4.
Result<std::unique_ptr<PreparedBatch>> prepare_aegis(CudaDevice& device, const Cipher& cipher,
                                                     const core::KeyList& keys,
                                                     const Messages& messages);

// As Device::run of a list. aegis/launch.cpp
Result<> run_aegis(CudaDevice& device, const Cipher& cipher, const core::KeyList& keys,
                   std::span<const Message> messages, const LaunchOptions& options, Stream stream);

// Thread blocks for so many messages: all multiprocessors where there are enough.
unsigned aegis_grid(const CudaDevice& device, Mode mode, AegisWay way, std::uint64_t messages);

}  // namespace dael::cuda
