// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM (C2SP), for cpu.cpp to call: AES-256-GCM of this backend under a key that is derived
// of each message's nonce. With AVX-512 and VAES by xaes_avx512.hpp, else by libipsec-mb's calls
// under a key that is expanded in the workspace. It needs no tables.
#pragma once

#include <memory>
#include <span>

#include "backends/cpu/ipsec_mb.hpp"
#include "core/backend.hpp"

namespace dael::cpu::xaes {

Result<> run_avx512(const Cipher& cipher, std::span<const Key> keys,
                    std::span<const Message> messages, std::span<Code> codes);
void run(Workspace& workspace, const Cipher& cipher, std::span<const Key> keys,
         std::span<const Message> messages, std::span<Code> codes) noexcept;

// By the pieces of GCM that the backend itself has.
Result<std::unique_ptr<core::Pieces>> begin(core::Backend& backend, const Cipher& cipher,
                                            const Key& key, const Start& start);

}  // namespace dael::cpu::xaes
