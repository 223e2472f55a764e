// SPDX-License-Identifier: Apache-2.0
// GCM of one message in pieces.
#pragma once

#include <memory>

#include "backends/openssl/gcm.hpp"

namespace dael::openssl {

Result<std::unique_ptr<core::Pieces>> begin(Direction direction, const Tables& tables,
                                            std::uint32_t key, const Key& raw, const Block& start);

}  // namespace dael::openssl
