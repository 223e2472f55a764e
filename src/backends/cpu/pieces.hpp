// SPDX-License-Identifier: Apache-2.0
// GCM of one message in pieces.
#pragma once

#include <memory>

#include "backends/cpu/gcm.hpp"

namespace dael::cpu {

std::unique_ptr<core::Pieces> begin(Direction direction, const GcmKey& key, const Key& raw,
                                    const Block& start);

}  // namespace dael::cpu
