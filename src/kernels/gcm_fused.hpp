// SPDX-License-Identifier: Apache-2.0
// GHASH of a long message on its way through the registers that encrypt it: what a tensor core is
// given and how its output is read, as in kernels/gcm_quads.hpp, but a message is 64 rows.
//
// A warpgroup takes 512 neighbouring blocks at once, a unit; each of its four warps 128 of them,
// and a lane every 32nd of these, so that memory is read and written in whole lines. A row of
// wgmma's first operand is a quad of lanes, which has four neighbouring blocks; a lane's four
// blocks are two rows' in each of two slots. Row r of a warp (lane 4 g + t has words of rows g and
// g + 8) has of slot s the blocks  128 warp + 64 s + 32 (r / 8) + 4 (r % 8) + 0 to 3  of the unit.
// One step multiplies slot 1 by H^4 to H, slot 0 by 64 powers more, the state by H^512, and adds:
// Horner over units. At the end each row's state is worth a power of H by its place, so that a
// unit's last block counts H.
#pragma once

#include "kernels/gcm_quads.hpp"

namespace dael::kernels {

inline constexpr std::uint32_t kFusedOwn = 4;                 // blocks of a lane at once
inline constexpr std::uint32_t kFusedUnit = 128 * kFusedOwn;  // blocks of a warpgroup
inline constexpr std::uint32_t kFusedWarp = kLanes * kFusedOwn;
inline constexpr std::uint32_t kFusedSlots = kFusedOwn / 2;
inline constexpr std::uint32_t kFusedRows = 64;
// The matrices in memory: operands as in gcm_quads.hpp, the state's and two a slot.
inline constexpr std::uint32_t kFusedWords = (1 + 2 * kFusedSlots) * 2 * kQuadColumns * 4;

// The power of H by which a block in `slot` is multiplied, that lane `t` of its quad has; and the
// state.
DAEL_HD constexpr std::uint32_t fused_power(std::uint32_t slot, std::uint32_t t) {
    return 2 * kLanes * (kFusedSlots - 1 - slot) + kQuadBlocks - t;
}
inline constexpr std::uint32_t kFusedStatePower = kFusedUnit;
// The power that row `row` of the warpgroup is worth at the end.
DAEL_HD constexpr std::uint32_t fused_row_power(std::uint32_t row) {
    const std::uint32_t warp = row / kQuadWarpRows, r = row % kQuadWarpRows,
                        first = kFusedWarp * warp + kLanes * (r / 8) + kQuadBlocks * (r % 8);
    return kFusedUnit - first - fused_power(0, 0);
}
static_assert(fused_row_power(kFusedRows - 1) == 0);

// Where 32 bits of a matrix are: those of a product's bit `output` for word `word` of the factor.
// Slots' of fused_power(slot, t); the state's; and what fills the state's operand up.
DAEL_HD constexpr std::uint32_t fused_block_index(std::uint32_t slot, std::uint32_t t,
                                                  std::uint32_t output, std::uint32_t word) {
    return quad_index(1 + 2 * slot + word / 2, word % 2, quad_column(output), t);
}
DAEL_HD constexpr std::uint32_t fused_state_index(std::uint32_t output, std::uint32_t word) {
    return quad_state_index(output, word);
}
DAEL_HD constexpr std::uint32_t fused_zero_index(std::uint32_t output, std::uint32_t word) {
    return quad_zero_index(output, word);
}

}  // namespace dael::kernels
