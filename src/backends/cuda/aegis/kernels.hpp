// SPDX-License-Identifier: Apache-2.0
// Kernels of AEGIS, by mode and by how a warp takes messages. Each is defined beside its code.
#pragma once

#include "backends/cuda/aegis/work.hpp"

namespace dael::cuda {

// How many lanes have a state, and where its messages come from: lines by way of shared memory, or
// blocks straight from memory; with four tables. `plain` and `few` have one, for GPUs with less
// shared memory and for little to do.
enum class AegisWay : std::uint8_t { lines, lines2, blocks2, blocks4, blocks8, plain, few };
inline constexpr AegisWay kAegisWays[] = {AegisWay::lines,   AegisWay::lines2,  AegisWay::blocks2,
                                          AegisWay::blocks4, AegisWay::blocks8, AegisWay::plain,
                                          AegisWay::few};

// (AegisBatch), of `few` (AegisLaunch): the messages, their tags and results. Any grid. The way
// must be one that the mode has. aegis/aegis128l.cu, aegis128x.cu, aegis256.cu
Kernel aegis_kernel(Mode mode, AegisWay way, bool opening);
bool has_way(Mode mode, AegisWay way);
// (AegisOrdering), with the grid of the batch that it is for. aegis/order.cu
Kernel aegis_order_kernel();
// Messages that a warp takes at once.
std::uint32_t aegis_messages_of(Mode mode, AegisWay way);

Kernel aegis128l_kernel(AegisWay way, bool opening);
Kernel aegis128x2_kernel(AegisWay way, bool opening);
Kernel aegis128x4_kernel(AegisWay way, bool opening);
Kernel aegis256_kernel(AegisWay way, bool opening);

}  // namespace dael::cuda
