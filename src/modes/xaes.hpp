// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM (C2SP) on top of a backend's AES-256-GCM: what a message's key is derived of, and
// messages in pieces.
#pragma once

#include <array>
#include <memory>

#include "core/backend.hpp"
#include "core/key_schedule.hpp"

namespace dael::modes {

using XaesKey = std::array<std::uint8_t, 32>;

// J0 of N[12:], which GCM has for a nonce.
Block xaes_gcm_start(const Start& nonce) noexcept;

// CMAC's first subkey K1 (SP 800-38B 6.1) of L, the cipher of a block of zeros.
Block cmac_subkey(const Block& l) noexcept;

// The two blocks whose cipher is the message's key: their number, "X" and N[:12], with K1 over
// them, as CMAC has it of messages of one block.
XaesKey xaes_blocks(const Block& k1, const Start& nonce) noexcept;

// How a key is derived for pieces: by a backend's own AES, or by slow and constant-time steps.
using DeriveXaes = void (*)(const core::KeySchedule& key, const Start& nonce,
                            XaesKey& derived) noexcept;
void derive_xaes(const core::KeySchedule& key, const Start& nonce, XaesKey& derived) noexcept;

// By the pieces that the backend has of GCM. The key must outlive them. Unlike GCM's, they allocate
// when they begin anew: another nonce is another key.
Result<std::unique_ptr<core::Pieces>> begin_xaes(core::Backend& backend, const Cipher& cipher,
                                                 const Key& key, const Start& nonce,
                                                 DeriveXaes derive = derive_xaes);

}  // namespace dael::modes
