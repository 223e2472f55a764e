// SPDX-License-Identifier: Apache-2.0
// GCM by libipsec-mb's direct calls, which need no manager's state: only its functions, which are
// chosen once when keys are prepared.
#pragma once

#include <memory>

#include "backends/cpu/ipsec_mb.hpp"
#include "core/backend.hpp"

namespace dael::cpu {

// Round keys and powers of the hash subkey for each key, in locked memory that wipes itself.
Result<std::unique_ptr<core::PreparedKeys>> prepare_gcm_keys(IMB_MGR* manager,
                                                             std::span<const Key> keys);
void gcm(Direction direction, const core::PreparedKeys& keys,
         std::span<const core::GcmSegment> segments, std::span<Code> results);
std::unique_ptr<core::GcmStream> gcm_stream(Direction direction, const core::PreparedKeys& keys,
                                            std::uint32_t key, std::span<const std::uint8_t> iv);

}  // namespace dael::cpu
