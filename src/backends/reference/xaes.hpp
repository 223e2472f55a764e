// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM as C2SP writes it, over gcm.hpp.
#pragma once

#include <memory>

#include "backends/reference/gcm.hpp"
#include "core/backend.hpp"

namespace dael::reference {

// One message: ok, or authentication, and then nothing was written.
Code xaes(const Cipher& cipher, const ExpandedKey& w, const Message& message);

// The key must outlive it.
std::unique_ptr<core::Pieces> begin_xaes(const Cipher& cipher, const ExpandedKey& w,
                                         const Start& start);

}  // namespace dael::reference
