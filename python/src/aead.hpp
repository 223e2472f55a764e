// SPDX-License-Identifier: Apache-2.0
// What AESGCM, the other modes that authenticate, and batches of them share.
#pragma once

#include "engine.hpp"

namespace daelpy {

// Bytes of a nonce; of GCM, which takes any size, the usual one.
std::uint64_t nonce_size(int mode);
// A message's start, of a nonce of as many bytes. Not of GCM: gcm_start().
void set_start(int mode, const std::uint8_t* nonce, dael_message& message);
void set_start(int mode, const Memory& nonce, dael_message& message);

// One message in device memory, by a batch of one, and waited for; `aad` lies there, too, or in the
// host's memory. Raises InvalidTag.
void run_on_device(const KeySet& keys, const dael_cipher& cipher, const dael_message& message,
                   const Memory& data, const Memory& aad, const Memory* out, nb::handle stream);

}  // namespace daelpy
