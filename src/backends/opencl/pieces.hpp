// SPDX-License-Identifier: Apache-2.0
// A GCM message of host memory in pieces.
#pragma once

#include <memory>

#include "backends/opencl/device.hpp"

namespace dael::opencl {

// `key`: an index into `keys`, which must outlive what comes back.
Result<std::unique_ptr<core::Pieces>> begin_pieces(OpenClDevice& device, Direction direction,
                                                   const OpenClKeys& keys, std::uint32_t index,
                                                   const Key& key, const Block& start);

}  // namespace dael::opencl
