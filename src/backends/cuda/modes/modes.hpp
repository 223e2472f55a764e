// SPDX-License-Identifier: Apache-2.0
// Batches of the modes that do not authenticate, in device memory. As Device::prepare.
#pragma once

#include "backends/cuda/keys/keys.hpp"

namespace dael::cuda {

// Under one key, from a list of the host's; any of these modes. modes.cpp
Result<std::unique_ptr<PreparedBatch>> prepare_plain(CudaDevice& device, const Cipher& cipher,
                                                     const core::KeyList& keys,
                                                     const Messages& messages);

// CBC encryption with a key for each message, from any list. modes/keyed.cpp
Result<std::unique_ptr<PreparedBatch>> prepare_keyed(CudaDevice& device, const Cipher& cipher,
                                                     const core::KeyList& keys,
                                                     const Messages& messages);

}  // namespace dael::cuda
