// SPDX-License-Identifier: Apache-2.0
// Kernels of XAES-256-GCM and AES-GCM-SIV, by mode, by the base key's rounds and by how messages
// are taken. Each is defined beside its code.
#pragma once

#include "backends/cuda/derived/work.hpp"

namespace dael::cuda {

// A warp for eight messages; a thread block for one; the same for a list that travels along.
enum class DerivedWay : std::uint8_t { eight, block, few };

// (DerivedBatch), of `few` (DerivedLaunch), which has a thread block for each message; of the
// others any grid. `tables`: 4 or 1; of `few` 1. derived/xaes.cu, derived/siv.cu
Kernel derived_kernel(Mode mode, int rounds, DerivedWay way, int tables, bool opening);

Kernel xaes_kernel(DerivedWay way, int tables, bool opening);
Kernel siv_kernel(int rounds, DerivedWay way, int tables, bool opening);

}  // namespace dael::cuda
