// SPDX-License-Identifier: Apache-2.0
// XTS-AES as IEEE 1619 writes it, over the cipher of aes.hpp.
#pragma once

#include <daelstrom/message.hpp>

#include "backends/reference/aes.hpp"

namespace dael::reference {

// The sectors of one message: `key1` is for the data, `key2` for the tweak.
void xts(const Cipher& cipher, const ExpandedKey& key1, const ExpandedKey& key2,
         const Message& message);

}  // namespace dael::reference
