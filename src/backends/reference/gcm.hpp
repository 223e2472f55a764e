// SPDX-License-Identifier: Apache-2.0
// GCM as SP 800-38D writes it, over the cipher of aes.hpp: the yardstick for the other backends,
// with which it shares no arithmetic. Constant time: the product in the field is computed bit by
// bit under masks.
#pragma once

#include <memory>

#include "backends/reference/aes.hpp"
#include "core/backend.hpp"

namespace dael::reference {

Result<std::unique_ptr<core::PreparedKeys>> prepare_gcm_keys(std::span<const Key> keys);
Result<> gcm(Direction direction, const core::PreparedKeys& keys,
             std::span<const core::GcmSegment> segments, std::span<Code> results);
Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                    const core::PreparedKeys& keys,
                                                    std::uint32_t key,
                                                    std::span<const std::uint8_t> iv);

// The tag of a message without data.
Block gmac(const ExpandedKey& w, std::span<const std::uint8_t> iv,
           std::span<const std::uint8_t> aad);

}  // namespace dael::reference
