// SPDX-License-Identifier: Apache-2.0
// What GCM's kernels are told, the twins of kernels/gcm.cl's structures; and how a batch is divided
// into what teams do.
#pragma once

#include <vector>

#include "backends/opencl/work.hpp"
#include "modes/ghash.hpp"

namespace dael::opencl {

// An element of GHASH's field as kernels have it: a block with the bytes of each word swapped.
inline modes::Element to_element(const Uint4& words) {
    return {kernels::byte_swap(words.w[0]), kernels::byte_swap(words.w[1]),
            kernels::byte_swap(words.w[2]), kernels::byte_swap(words.w[3])};
}

// A message: places are bytes from the beginning of their buffers.
struct GcmItem {
    std::uint64_t in, out, aad, tag;
    std::uint64_t size, aad_size;
    Uint4 counter;  // J0
    std::uint32_t key, result;
    std::uint32_t first, tiles;  // partial sums
    std::uint32_t skip;          // counter mode alone: of the first keystream block, to leave out
    std::array<std::uint32_t, 3> unused;

    // Of what is hashed, AAD and data filled up to blocks.
    std::uint64_t hash_blocks() const {
        return (aad_size + kBlockSize - 1) / kBlockSize + data_blocks();
    }
    std::uint64_t data_blocks() const { return (skip + size + kBlockSize - 1) / kBlockSize; }
    // The low 32 bits of the data's first counter, which comes after J0.
    std::uint32_t first_counter() const { return kernels::byte_swap(counter.w[3]) + 1; }
};
static_assert(sizeof(GcmItem) == 96);

inline constexpr std::uint32_t kNoTarget = 0xffffffff;
struct GcmTile {
    std::uint64_t begin;
    std::uint32_t blocks, message, target, key;
};
static_assert(sizeof(GcmTile) == 24);

struct GcmSchedule {
    RoundKeys keys;
    std::uint32_t rounds;
    std::array<std::uint32_t, 3> unused;
};
static_assert(sizeof(GcmSchedule) == 256);

inline constexpr std::size_t kGcmPowers = 33 + 40;  // elements that a key has in device memory

// A device, as far as the division depends on it.
struct GcmShape {
    unsigned compute_units = 1;
    unsigned hash_teams = 2;  // teams of a work-group that hashes
    unsigned ctr_squads = 2;  // of teams that encrypt together, in all
    bool has_table = false;   // GHASH by tables is possible
    bool always = false;      // and done, where it would not pay, too
};

// Tiles of a batch. Those to hash go into sums: the first ones are the messages', then come the
// partial ones of messages that have several tiles.
struct GcmPlan {
    std::vector<GcmTile> hash, ctr;
    std::vector<std::uint32_t> divided;  // messages of several tiles
    std::uint32_t log_blocks = 0;        // of a tile to hash: all but a message's first are whole
    bool table = false;                  // each hash_teams tiles are of one key
    std::uint64_t sums = 0;
};
// Also writes the items' `first` and `tiles`.
GcmPlan plan_gcm(std::vector<GcmItem>& items, const GcmShape& shape);

}  // namespace dael::opencl
