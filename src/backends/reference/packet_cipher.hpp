// SPDX-License-Identifier: Apache-2.0
// Packets as SP 800-38D writes GCM. Keystream that is offered is not looked at: what comes out is
// what should come out, so that wrong keystream shows in whoever used it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/packet_cipher.hpp"

namespace dael::reference {

// Copies the key: 16, 24 or 32 bytes.
std::unique_ptr<core::PacketCipher> packets(std::span<const std::uint8_t> key);

}  // namespace dael::reference
