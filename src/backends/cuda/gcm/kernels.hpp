// SPDX-License-Identifier: Apache-2.0
// Kernels of messages with keys of their own. Each is defined beside its code.
#pragma once

#include <daelstrom/error.hpp>

#include "backends/cuda/context.hpp"
#include "backends/cuda/gcm/launch_work.hpp"

namespace dael::cuda {

// How GHASH of long messages is done: on tensor cores, a tile by 128 threads at once
// (kernels/ghash_tile.hpp) or rows by a warp (kernels/ghash_mma.hpp); or by multiplications.
enum class Hashing { tiles, mma, rows };

// (GcmKey*, GcmMatrices* or null, std::uint32_t count): fills in all but the round keys. Any grid.
Kernel gcm_key_setup_kernel();

// (GcmKey*, KeyHead): puts another key in the place of one, to be set up after it. One block.
Kernel gcm_key_replace_kernel();

// (GcmBatch): the starts of its messages, from its nonces, which it counts on; and where the units
// of each long message begin. Up to kPlanBlocks blocks. Before the short messages, or if there are
// no nonces after them (GcmBatch::plan_later).
Kernel gcm_plan_kernel();

// (GcmBatch): short messages as a whole, and the results of invalid ones. Any grid.
Kernel gcm_short_kernel(int rounds, int tables);

// (GcmBatch, RoundKeys, std::uint32_t key): short messages 64 to a warpgroup, for which the keys
// have GcmQuads: of one key, that one given; or of many, whose order has been planned. Any grid.
Kernel gcm_quads_kernel(int rounds, bool many_keys);
// (const GcmKey*, GcmQuads*, std::uint32_t count): those of keys that are set up. Any grid.
Kernel gcm_quad_setup_kernel();

// (GcmBatch, RoundKeys, std::uint32_t key): encrypts the data of long messages and hashes its
// tiles, for which the keys have GcmFused; `key` as above. The grid is batch.data.workers /
// shapes::fused_groups(many_keys).
Kernel gcm_fused_kernel(int rounds, bool many_keys);
// (const GcmKey*, GcmFused*, std::uint32_t count): those of keys that are set up. Any grid.
Kernel gcm_fused_setup_kernel();

// (GcmTeamWork<1> or of kMaxLaunched): messages of at most kTeamMessage bytes, a block of threads
// to each. (GcmPlaceWork): the list into device memory, one block. gcm/team.cu
Kernel gcm_team_kernel(int rounds, bool one);
Kernel gcm_place_kernel();

// (GcmBatch, Part): hashes the tiles of long messages. The grid is workers / workers_per_block, and
// twice that for both parts.
// As `Hashing` says: for the first two the code must have been built (sm_90a; sm_80 to sm_90) and
// the keys have matrices, which are made for one of them; the third takes any GPU.
Kernel ghash_tiles_kernel();
Kernel ghash_mma_kernel();
Kernel ghash_rows_kernel();
// Whether the code for this GPU has the kernel.
Result<bool> has_ghash_tiles(const SetUp& set_up);
Result<bool> has_ghash_mma(const SetUp& set_up);
// (GcmKey*, GcmMatrices*, std::uint32_t count): the matrices for ghash_mma, of keys that are set
// up. Any grid.
Kernel ghash_mma_setup_kernel();

// (GcmBatch): the tags of long messages: written or checked. Any grid.
Kernel gcm_finish_kernel(int rounds);

// (KeyedWork): encrypts messages in CBC whose key has `rounds`, and writes their results and those
// of invalid ones. Any grid. modes/serial.cu
Kernel keyed_cbc_encrypt_kernel(int rounds, int tables);

// A message in pieces. (GcmBatch, Words4* hash): adds the batch's only message to the hash;
// (GcmBatch, Message with the start, key and sizes of all, Words4* hash): turns the hash into the
// tag. One block.
Kernel gcm_absorb_kernel();
Kernel gcm_stream_tag_kernel(int rounds);

// (GcmBatch, RoundKeys): encrypts or decrypts the data of long messages; when opening, those whose
// result is ok. `many_keys`: each message's own, else the one given. Any grid.
Kernel gcm_ctr_kernel(int rounds, int tables, bool many_keys);

}  // namespace dael::cuda
