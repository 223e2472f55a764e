// SPDX-License-Identifier: Apache-2.0
// AEGIS (RFC 10032) by the AES instructions of the processor, for cpu.cpp to call. It takes keys as
// they are, so that there is nothing to make ready.
//
// AEGIS decrypts in one pass, and its tag is known at the end: a message's output is written before
// that. Where the tag does not match it is wiped, or in place encrypted again, which gives back the
// ciphertext: by then nothing is left of the plaintext, as core/backend.hpp promises.
#pragma once

#include <memory>
#include <span>

#include "backends/cpu/aegis_code.hpp"
#include "backends/cpu/ipsec_mb.hpp"
#include "core/backend.hpp"

namespace dael::cpu::aegis {

// The best code there is for this level on this processor.
const Form& form(Level level) noexcept;

void run(const Form& form, const Cipher& cipher, std::span<const Key> keys,
         std::span<const Message> messages, std::span<dael::Code> codes) noexcept;

std::unique_ptr<core::Pieces> begin(const Form& form, const Cipher& cipher, const Key& key,
                                    const Start& start);

}  // namespace dael::cpu::aegis
