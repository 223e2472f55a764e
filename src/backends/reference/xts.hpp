// SPDX-License-Identifier: Apache-2.0
// XTS-AES as IEEE 1619 writes it, over the cipher of aes.hpp.
#pragma once

#include "core/backend.hpp"

namespace dael::reference {

void xts(const core::XtsOperation& operation, const core::Segment& segment);

}  // namespace dael::reference
