// SPDX-License-Identifier: Apache-2.0
// How many threads each kernel has and how much shared memory it takes: one table for the launches,
// for the choice of tables on a GPU, and for a test on the host that holds all of it against the
// limits of every architecture. Kernels whose own declarations must agree say so by static_assert.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <daelstrom/device/detail/ttable.hpp>
#include <daelstrom/message.hpp>

#include "kernels/gcm_fused.hpp"
#include "kernels/gcm_quads.hpp"
#include "kernels/gcm_team.hpp"
#include "kernels/ghash_tile.hpp"

namespace dael::cuda {

struct Shape {
    std::uint32_t threads = 0;  // of a thread block; one thread block to a multiprocessor
    std::uint32_t dynamic = 0;  // bytes of shared memory that the launch asks for
    std::uint32_t fixed = 0;    // and those that the kernel declares itself
    constexpr std::uint32_t shared() const { return dynamic + fixed; }
};

namespace shapes {

inline constexpr std::uint32_t kTable = 32 * 1024;  // a table with a copy for every bank
inline constexpr std::uint32_t kWarpKeys = 256;     // a warp's round keys (keys/warp_keys.cuh)

// Warps of a thread block, where the kernel has a reason for their number.
inline constexpr std::uint32_t kCtrWarps = 24, kKeyedWarps = 16;
inline constexpr std::uint32_t kGcmCtrWarps = 24, kGcmShortWarps = 24, kGcmFinishWarps = 8;
inline constexpr std::uint32_t kKeystreamWarps = 16;
// Warpgroups that take 64 short messages each, and what sorting a list takes there.
inline constexpr std::uint32_t kQuadGroups = 4;
inline constexpr std::uint32_t kQuadChunkBytes = 9 * 1024;
inline constexpr std::uint32_t kTileWorkers = 3, kMmaWorkers = 16,
                               kRowWorkers = 16;  // in a block of GHASH's
inline constexpr std::uint32_t kMmaSetUpThreads = 128;
// Warpgroups take tiles from a ring of their own, and end with the columns' states and sums.
inline constexpr std::uint32_t kTileStages = 4;
inline constexpr std::uint32_t kHashScratch = (kernels::kTileColumns + 4) * 16;

constexpr std::uint32_t tables_bytes(int tables, bool inverse) {
    return static_cast<std::uint32_t>(tables + inverse) * kTable;
}

constexpr Shape blocks(int tables, bool inverse) {
    return {1024, tables_bytes(tables, inverse)};
}
constexpr Shape serial(int tables) {
    return {1024, tables_bytes(tables, false)};
}
constexpr Shape ctr(int tables) {
    return {kCtrWarps * kernels::kLanes, tables_bytes(tables, false)};
}
constexpr Shape ctr_small() {
    return {256, tables_bytes(1, false)};
}
constexpr Shape keyed_cbc_encrypt(int tables) {
    return {kKeyedWarps * kernels::kLanes, tables_bytes(tables, false)};
}
constexpr Shape xts_encrypt(int tables) {
    return {1024, tables_bytes(tables, false)};
}
// The inverse tables, and a forward one for the tweaks; with 0 tables one inverse table alone.
constexpr Shape xts_decrypt(int tables) {
    return {1024, tables == 0 ? tables_bytes(1, true) : tables_bytes(tables, true) + kTable};
}
// Beside the table 128 squares of H, 48 products of theirs, and 2.
inline constexpr std::uint32_t kKeyShared = (128 + 48 + 2) * 16;
constexpr Shape gcm_key_setup() {
    return {kernels::kTileThreads, tables_bytes(1, false) + kKeyShared};
}
constexpr Shape gcm_key_replace() {
    return {64};
}
// Three sums of 8 bytes for each thread, and what the block shares besides.
constexpr Shape gcm_plan() {
    return {512, 0, 512 * 24 + 16};
}
constexpr Shape gcm_short(int tables) {
    return {kGcmShortWarps * kernels::kLanes,
            tables_bytes(tables, false) + kGcmShortWarps * kWarpKeys};
}
// The tables begin at a multiple of 64 KiB of shared memory. Before them lie, with one key, its
// matrices and a list that is sorted; with many, the matrices and round keys of each warpgroup.
inline constexpr std::uint32_t kQuadTables = 64 * 1024;
inline constexpr std::uint32_t kQuadOwn = kernels::kQuadWords * 4 + kWarpKeys;
static_assert(kQuadGroups * kQuadOwn <= kQuadTables - 1024 &&
              kernels::kQuadWords * 4 + kQuadChunkBytes <= kQuadTables - 1024);
constexpr Shape gcm_quads() {
    return {kQuadGroups * kernels::kTileThreads, kQuadTables + tables_bytes(4, false)};
}
constexpr Shape gcm_quad_setup() {
    return {128};
}
// As those: with one key its matrices and the warpgroups' rows lie before the tables. With many,
// each warpgroup has matrices and round keys, the last one's lie behind the tables, and all rows.
inline constexpr std::uint32_t kFusedTables = 64 * 1024, kFusedRows = 2 * kernels::kFusedRows * 16,
                               kFusedOwn = kernels::kFusedWords * 4 + kWarpKeys;
constexpr std::uint32_t fused_groups(bool many_keys) {
    return many_keys ? 4 : 5;
}
static_assert((fused_groups(true) - 1) * kFusedOwn <= kFusedTables - 1024 &&
              kernels::kFusedWords * 4 + fused_groups(false) * kFusedRows <= kFusedTables - 1024);
constexpr Shape gcm_fused(bool many_keys) {
    return {fused_groups(many_keys) * kernels::kTileThreads,
            kFusedTables + tables_bytes(4, false) +
                (many_keys ? kFusedOwn + fused_groups(many_keys) * kFusedRows : 0)};
}
constexpr Shape gcm_fused_setup() {
    return {128};
}
// Eight warps for a message's blocks and one for what its tag takes besides; one table, which is
// filled soonest. `aad`: bytes of AAD that may travel along.
constexpr Shape gcm_team(std::uint32_t aad) {
    return {(kernels::kTeamWarps + 1) * kernels::kLanes, tables_bytes(1, false),
            kWarpKeys + kernels::kTeamWarps * 16 + aad + 16};
}
constexpr Shape gcm_place() {
    return {256};
}
// AEGIS's four tables begin at this address of shared memory, behind what the system has there, and
// rows of messages behind them. One table begins where there is room.
inline constexpr std::uint32_t kAegisTables = 1024;
constexpr Shape aegis(std::uint32_t threads, int tables, std::uint32_t rows) {
    return {threads, tables_bytes(tables, false) + (tables == 4 ? kAegisTables + rows : 0)};
}
// Of a list that travels with its launch the kernel makes a copy, with its AAD.
constexpr Shape aegis_few() {
    return {256, aegis(256, 1, 0).dynamic, 32 * 96 + kMaxLaunchedAad};
}
// Bins of sizes, and a word.
constexpr Shape aegis_order() {
    return {1024, 0, 22 * 32 * 4 + 4};
}
// The most that rows take: of 16 warps with 32 messages each.
inline constexpr std::uint32_t kAegisRows = 16 * 32 * 144;
// Whether there is room for them beside four tables.
constexpr bool has_aegis_rows(std::size_t limit) {
    return aegis(512, 4, kAegisRows).shared() <= limit;
}
// XAES and GCM-SIV: each warp has the schedules of eight messages, a thread block what it shares
// over one. Four tables begin at a multiple of 64 KiB of shared memory, behind those.
inline constexpr std::uint32_t kDerivedThreads = 512, kDerivedFew = 256;
inline constexpr std::uint32_t kDerivedSchedules = 8 * 240, kDerivedScratch = 1024;
inline constexpr std::uint32_t kDerivedTables = 64 * 1024;
constexpr std::uint32_t derived_own(std::uint32_t threads) {
    return threads / kernels::kLanes * kDerivedSchedules + kDerivedScratch;
}
// With four tables matrices for the tensor cores lie there, too, and the rows of a long message.
inline constexpr std::uint32_t kDerivedRows = 52 * 1024;
static_assert(kDerivedRows <= kDerivedTables - 1024);
constexpr Shape derived(std::uint32_t threads, int tables) {
    return {threads,
            tables_bytes(tables, false) + (tables == 4 ? kDerivedTables : derived_own(threads))};
}
// A message of a list that travels with its launch, and AAD; up to where the tables may begin.
inline constexpr std::uint32_t kDerivedList = 2048;
constexpr Shape derived_few() {
    return {kDerivedFew, derived(kDerivedFew, 1).dynamic, kDerivedList};
}
constexpr int derived_tables(std::size_t limit, int most) {
    return most == 4 && derived(kDerivedThreads, 4).shared() <= limit ? 4 : 1;
}
// With one key for all it is a parameter of the kernel, else each warp keeps its message's.
constexpr Shape gcm_ctr(int tables, bool many_keys) {
    return {kGcmCtrWarps * kernels::kLanes,
            tables_bytes(tables, false) + (many_keys ? kGcmCtrWarps * kWarpKeys : 0)};
}
// One table, so that it is soon filled and thread blocks of several launches share a
// multiprocessor: what bounds it is the bus.
constexpr Shape keystream_runs() {
    return {kKeystreamWarps * kernels::kLanes,
            tables_bytes(1, false) + kKeystreamWarps * kWarpKeys};
}
constexpr Shape ghash_tiles() {
    return {kTileWorkers * kernels::kTileThreads,
            kTileWorkers * (kTileStages * kernels::kTileBytes + kHashScratch)};
}
constexpr Shape ghash_mma() {
    return {kMmaWorkers * kernels::kLanes};
}
constexpr Shape ghash_mma_setup() {
    return {kMmaSetUpThreads, 0, 128 * 16};
}
constexpr Shape ghash_rows() {
    return {kRowWorkers * kernels::kLanes};
}
constexpr Shape gcm_finish() {
    return {kGcmFinishWarps * kernels::kLanes, tables_bytes(1, false)};
}
constexpr Shape gcm_absorb() {
    return {kernels::kLanes};
}
constexpr Shape gcm_stream_tag() {
    return {kernels::kLanes, tables_bytes(1, false)};
}

}  // namespace shapes

// How many T-tables each family of kernels keeps in shared memory: 4, 2 or 1.
struct Layout {
    int forward = 4;
    int inverse = 4;         // with room for one more, the inverse S-box
    int gcm_short = 4;       // beside the round keys of every warp
    int gcm_ctr = 4;         // one key for all messages
    int gcm_ctr_keys = 4;    // beside the round keys of every warp
    int xts_inverse = 4;     // beside one for the tweaks; 0: one, and none for them
    bool aegis_rows = true;  // beside four, rows of AEGIS's messages
    int derived = 4;         // beside the derived schedules of XAES and GCM-SIV
};

// The largest tables, up to `most`, with which a thread block of `shape(tables)` fits into the
// shared memory that it may have; `least` where none does.
template <class ShapeOf>
constexpr int tables_that_fit(std::size_t limit, int most, int least, ShapeOf shape) {
    for (const int tables : {4, 2, 1})
        if (tables <= most && shape(tables).shared() <= limit) return tables;
    return least;
}

// `limit`: shared memory that a thread block may have, as cudaDevAttrMaxSharedMemoryPerBlockOptin.
constexpr Layout layout_for(std::size_t limit, int most = 4) {
    Layout layout;
    layout.forward = tables_that_fit(limit, most, 1, shapes::serial);
    layout.inverse =
        tables_that_fit(limit, most, 1, [](int tables) { return shapes::blocks(tables, true); });
    layout.gcm_short = tables_that_fit(limit, most, 1, shapes::gcm_short);
    layout.gcm_ctr =
        tables_that_fit(limit, most, 1, [](int tables) { return shapes::gcm_ctr(tables, false); });
    layout.gcm_ctr_keys =
        tables_that_fit(limit, most, 1, [](int tables) { return shapes::gcm_ctr(tables, true); });
    layout.aegis_rows = layout.forward == 4 && shapes::has_aegis_rows(limit);
    layout.derived = shapes::derived_tables(limit, most);
    layout.xts_inverse = tables_that_fit(limit, layout.inverse, 0, shapes::xts_decrypt);
    return layout;
}

// Every kernel as a GPU with this layout launches it: visit(name, shape).
template <class Visit>
constexpr void visit_shapes(const Layout& layout, bool tensor_cores, Visit visit) {
    visit("ECB and CFB of blocks", shapes::blocks(layout.forward, false));
    visit("ECB and CBC decryption", shapes::blocks(layout.inverse, true));
    visit("CTR of little", shapes::ctr_small());
    visit("CTR", shapes::ctr(layout.forward));
    visit("sequential modes", shapes::serial(layout.forward));
    visit("CBC encryption with many keys", shapes::keyed_cbc_encrypt(layout.forward));
    visit("XTS encryption", shapes::xts_encrypt(layout.forward));
    visit("XTS decryption", shapes::xts_decrypt(layout.xts_inverse));
    visit("GCM's keys", shapes::gcm_key_setup());
    visit("GCM's new key", shapes::gcm_key_replace());
    visit("GCM's plan", shapes::gcm_plan());
    visit("GCM of short messages", shapes::gcm_short(layout.gcm_short));
    visit("GCM of a few messages", shapes::gcm_team(kMaxLaunchedAad));
    visit("GCM's list of a few", shapes::gcm_place());
    visit("GCM's counter mode", shapes::gcm_ctr(layout.gcm_ctr, false));
    visit("GCM's counter mode with many keys", shapes::gcm_ctr(layout.gcm_ctr_keys, true));
    visit("keystream of runs", shapes::keystream_runs());
    if (tensor_cores) {
        visit("GHASH on tensor cores", shapes::ghash_tiles());
        visit("GCM of many short messages", shapes::gcm_quads());
        visit("GCM's matrices for them", shapes::gcm_quad_setup());
        visit("GCM of long messages", shapes::gcm_fused(false));
        visit("GCM of long messages with many keys", shapes::gcm_fused(true));
        visit("its matrices", shapes::gcm_fused_setup());
    }
    if (layout.forward == 4) visit("AEGIS of many messages", shapes::aegis(1024, 4, 0));
    if (layout.aegis_rows) visit("AEGIS by lines", shapes::aegis(512, 4, shapes::kAegisRows));
    visit("XAES and GCM-SIV", shapes::derived(shapes::kDerivedThreads, layout.derived));
    visit("XAES and GCM-SIV of a few messages", shapes::derived_few());
    visit("AEGIS with one table", shapes::aegis(256, 1, 0));
    visit("AEGIS of a few messages", shapes::aegis_few());
    visit("AEGIS's order", shapes::aegis_order());
    visit("GHASH on tensor cores, a warp each", shapes::ghash_mma());
    visit("its keys", shapes::ghash_mma_setup());
    visit("GHASH", shapes::ghash_rows());
    visit("GCM's tags", shapes::gcm_finish());
    visit("GCM's pieces", shapes::gcm_absorb());
    visit("GCM's tag of pieces", shapes::gcm_stream_tag());
}

}  // namespace dael::cuda
