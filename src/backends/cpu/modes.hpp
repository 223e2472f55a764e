// SPDX-License-Identifier: Apache-2.0
// The five modes on libipsec-mb. It brings CTR with a 32-bit counter, ECB, CBC decryption, and CBC
// encryption of many messages side by side; the rest is made of these.
#pragma once

#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>

#include "backends/cpu/ipsec_mb.hpp"

namespace dael::cpu {

// On the calling thread. Every mode but GCM and XTS.
Result<> run(Workspace& workspace, const Cipher& cipher, std::span<const Key> keys,
             std::span<const Message> messages);

}  // namespace dael::cpu
