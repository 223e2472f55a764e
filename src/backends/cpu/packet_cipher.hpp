// SPDX-License-Identifier: Apache-2.0
// Packets with keystream that was made ahead of time go through xor_ghash.hpp, those with little or
// none through the library's GCM.
#pragma once

#include <memory>

#include <daelstrom/key.hpp>

#include "backends/cpu/ipsec_mb.hpp"
#include "core/packet_cipher.hpp"

namespace dael::cpu {

// On any thread's manager of this level: its functions are the same.
Result<std::unique_ptr<core::PacketCipher>> packets(Level level, const IMB_MGR& manager,
                                                    const Key& key);

}  // namespace dael::cpu
