// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV (RFC 8452), for cpu.cpp to call. It has no pieces: the keystream depends on the whole
// message.
#pragma once

#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>

#include "backends/cpu/siv_code.hpp"

namespace dael::cpu::siv {

// Keys of 128 or 256 bits. Opening decrypts before it knows the tag, which is the plaintext's;
// where that does not match, the output is wiped, or in place encrypted again, back to what it was.
// Errors: out_of_memory.
Result<> run(const Form& form, const Cipher& cipher, std::span<const Key> keys,
             std::span<const Message> messages, std::span<Code> codes);

}  // namespace dael::cpu::siv
