// SPDX-License-Identifier: Apache-2.0
// The five modes on libipsec-mb. It brings CTR with a 32-bit counter, ECB, CBC decryption, and CBC
// encryption of many messages side by side; the rest is made of these.
#pragma once

#include <span>

#include <daelstrom/error.hpp>

#include "backends/cpu/ipsec_mb.hpp"
#include "core/backend.hpp"

namespace dael::cpu {

// Runs the segments of one operation on the calling thread.
Result<> run(Workspace& workspace, const core::Operation& operation,
             std::span<const core::Segment> segments);

}  // namespace dael::cpu
