// SPDX-License-Identifier: Apache-2.0
// One message in pieces, of the modes that authenticate. Keys must outlive it.
#pragma once

#include <memory>

#include "backends/reference/aes.hpp"
#include "core/backend.hpp"

namespace dael::reference {

std::unique_ptr<core::Pieces> begin(const Cipher& cipher, const ExpandedKey& w, const Block& start);
std::unique_ptr<core::Pieces> begin_xaes(const Cipher& cipher, const ExpandedKey& w,
                                         const Start& start);
std::unique_ptr<core::Pieces> begin_aegis(const Cipher& cipher, std::span<const std::uint8_t> key,
                                          const Start& start);

}  // namespace dael::reference
