// SPDX-License-Identifier: Apache-2.0
// The modes of SP 800-38A, written plainly over the cipher of aes.hpp.
#pragma once

#include <daelstrom/message.hpp>

#include "backends/reference/aes.hpp"

namespace dael::reference {

// One message in ECB, CBC, CFB, OFB or CTR.
void run(const Cipher& cipher, const ExpandedKey& w, const Message& message);

}  // namespace dael::reference
