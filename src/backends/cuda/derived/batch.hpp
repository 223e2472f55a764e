// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM and AES-GCM-SIV on the device: batches in device memory, and a few messages without
// one.
#pragma once

#include "backends/cuda/derived/kernels.hpp"
#include "backends/cuda/device.hpp"
#include "backends/cuda/keys/keys.hpp"

namespace dael::cuda {

// Modes whose keys are derived of each message's nonce.
constexpr bool derives_keys(Mode mode) {
    return mode == Mode::xaes256gcm || mode == Mode::gcm_siv;
}
Kind kind_of(Mode mode, DerivedWay way);

// As Device::prepare, for modes that derive keys.
Result<std::unique_ptr<PreparedBatch>> prepare_derived(CudaDevice& device, const Cipher& cipher,
                                                       const core::KeyList& keys,
                                                       const Messages& messages);

// As Device::run of a list. derived/launch.cpp
Result<> run_derived(CudaDevice& device, const Cipher& cipher, const core::KeyList& keys,
                     std::span<const Message> messages, const LaunchOptions& options,
                     Stream stream);

}  // namespace dael::cuda
