// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <set>

#include "backends/opencl/gcm_work.hpp"

namespace dael::opencl {
namespace {

// A table pays for itself where its key has this many blocks to hash, and where most
// multiplications are with it: a tile ends with one that is not.
constexpr std::uint64_t kTableBlocks = 4096;
constexpr std::uint64_t kTableMessage = 256;

// Few tiles are soon brought together, many balance: this many for each team that a compute unit
// holds of some 1000 work-items.
constexpr std::uint64_t kHashTiles = 2;
constexpr std::uint64_t kCtrTiles = 4;

bool worth_a_table(const std::vector<GcmItem>& items, std::uint64_t blocks) {
    if (blocks < kTableMessage * items.size()) return false;
    std::set<std::uint32_t> keys;
    for (const GcmItem& item : items) {
        keys.insert(item.key);
        if (blocks < kTableBlocks * keys.size()) return false;
    }
    return true;
}

// Work-items of a group wait for the longest of their tiles: like goes beside like.
void arrange(GcmPlan& plan, unsigned teams) {
    const bool table = plan.table;
    std::ranges::stable_sort(plan.hash, [table](const GcmTile& a, const GcmTile& b) {
        return table && a.key != b.key ? a.key < b.key : a.blocks > b.blocks;
    });
    if (!table) return;
    std::vector<GcmTile> even;
    even.reserve(plan.hash.size() + teams);
    for (const GcmTile& tile : plan.hash) {
        while (even.size() % teams != 0 && even.back().key != tile.key)
            even.push_back({0, 0, 0, kNoTarget, even.back().key});
        even.push_back(tile);
    }
    while (even.size() % teams != 0) even.push_back({0, 0, 0, kNoTarget, even.back().key});
    plan.hash = std::move(even);
}

}  // namespace

GcmPlan plan_gcm(std::vector<GcmItem>& items, const GcmShape& shape) {
    std::uint64_t hashed = 0, encrypted = 0;
    for (const GcmItem& item : items) {
        hashed += item.hash_blocks();
        encrypted += item.data_blocks();
    }
    GcmPlan plan;
    plan.table = shape.has_table && (shape.always || worth_a_table(items, hashed));
    // To the nearest power of two.
    const std::uint64_t mean = hashed / (shape.compute_units * shape.hash_teams * kHashTiles);
    plan.log_blocks = static_cast<std::uint32_t>(
        std::clamp(static_cast<int>(std::bit_width(mean + mean / 2)) - 1, plan.table ? 8 : 7, 30));
    const std::uint64_t whole = std::uint64_t{1} << plan.log_blocks;
    plan.sums = items.size();
    for (std::uint32_t m = 0; m < items.size(); ++m) {
        GcmItem& item = items[m];
        const std::uint64_t blocks = item.hash_blocks();
        // One at least, of no blocks: its sum is 0.
        const std::uint64_t count = std::max<std::uint64_t>(1, (blocks + whole - 1) / whole);
        item.tiles = static_cast<std::uint32_t>(count);
        item.first = count == 1 ? m : static_cast<std::uint32_t>(plan.sums);
        if (count != 1) {
            plan.sums += count;
            plan.divided.push_back(m);
        }
        // From the first, which is short, on.
        std::uint64_t begin = 0;
        for (std::uint32_t t = 0; t < count; ++t) {
            const std::uint64_t end = blocks - (count - 1 - t) * whole;
            plan.hash.push_back(
                {begin, static_cast<std::uint32_t>(end - begin), m, item.first + t, item.key});
            begin = end;
        }
    }
    arrange(plan, shape.hash_teams);

    // Longer tiles end where a group of 256 counters does, which share what counter caching keeps.
    const std::uint64_t even = encrypted / (shape.ctr_squads * kCtrTiles);
    const std::uint64_t group = even < 256 ? 32 : 256;
    const std::uint64_t most = std::max<std::uint64_t>(64, (even + group - 1) / group * group);
    for (std::uint32_t m = 0; m < items.size(); ++m) {
        const std::uint64_t blocks = items[m].data_blocks();
        for (std::uint64_t begin = 0, end = 0; begin < blocks; begin = end) {
            end = begin + most;
            if (group == 256) end -= (items[m].first_counter() + end) % group;
            if (end + group > blocks) end = blocks;  // no little one for the rest
            plan.ctr.push_back(
                {begin, static_cast<std::uint32_t>(end - begin), m, kNoTarget, items[m].key});
        }
    }
    return plan;
}

}  // namespace dael::opencl
