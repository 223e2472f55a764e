// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV as RFC 8452 writes it, over the cipher of aes.hpp. Constant time: the product in the
// field is computed bit by bit under masks.
#pragma once

#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

#include "backends/reference/aes.hpp"

namespace dael::reference {

// One message, under a key of 16 or 32 bytes: ok, or authentication, and then nothing was written.
Code gcm_siv(const Cipher& cipher, const ExpandedKey& w, const Message& message);

}  // namespace dael::reference
