// SPDX-License-Identifier: Apache-2.0
// What GCM's kernels share: keys and batches in device memory.
//
// A message of at most kShortMessage bytes of data and AAD is a warp's, from its counter to its
// tag. Longer ones are cut into tiles of 16 KiB (kernels/ghash_tile.hpp), which all
// multiprocessors share out evenly; what each hashed of a message is a partial, and a warp for each
// message makes the tag of its partials.
#pragma once

#include <daelstrom/gcm.hpp>

#include "backends/cuda/work.hpp"
#include "kernels/ghash_tile.hpp"

namespace dael::cuda {

// Most bytes, data and AAD together, of a message that one warp processes.
inline constexpr std::uint64_t kShortMessage = 8192;
// AAD of long messages up to this size is hashed by the warp that makes the tag.
inline constexpr std::uint64_t kShortAad = 8192;
// Powers H^(2^j) of a key; exponents count blocks, of which there are fewer than 2^58.
inline constexpr std::uint32_t kSquares = 64;
inline constexpr std::uint32_t kInverseSquares = 32;

// What a key is in device memory.
struct GcmKey {
    RoundKeys encrypt;
    std::uint32_t rounds;
    std::uint32_t unused[3];
    Words4 powers[kernels::kLanes + 2];       // H^0 to H^33
    Words4 squares[kSquares];                 // H^(2^j)
    Words4 inverse_squares[kInverseSquares];  // H^-(2^j)
};
static_assert(sizeof(GcmKey) % 16 == 0);

// What the tensor cores need of a key besides.
struct GcmMatrices {
    std::uint32_t fragments[kernels::kFragmentWords];
    Words4 column_weights[kernels::kTileColumns];  // H^-n
};

// The tiles of all long messages' AAD, or of all their data: tile_starts[m] to tile_starts[m + 1]
// are message m's. Workers divide them evenly. What worker w hashed of message m, times the power
// of H for the tiles after it, is partials[w + m]: along the tiles either w or m steps on, so that
// no two partials share a place.
struct TileList {
    std::uint64_t* starts;  // count + 1
    Words4* partials;       // workers + count
    std::uint32_t workers;
};

enum class Part : std::uint32_t { aad, data };

// A batch. All pointers are to device memory.
struct GcmBatch {
    const GcmMessage* messages;
    const Words4* counters;  // J0 of each message; null: its nonce, then 1 (SP 800-38D 7.1)
    const GcmKey* keys;
    const GcmMatrices* matrices;  // null: without tensor cores
    std::uint32_t* results;       // a Code each
    TileList aad, data;
    std::uint32_t count;
    std::uint32_t key_count;
    std::uint32_t tag_size;
    std::uint32_t opening;  // 1: tags are compared, and data decrypted; 0: written, encrypted

    DAEL_HD const TileList& tiles(Part part) const { return part == Part::aad ? aad : data; }
};

// AAD or data of a message, as blocks to hash: `lead` blocks of zeros, then these bytes, and zeros
// to whole tiles.
struct HashItem {
    const unsigned char* data;
    std::uint64_t size;  // bytes
    std::uint32_t lead;  // blocks, 0 to 255
    DAEL_HD std::uint64_t blocks() const { return lead + (size + 15) / 16; }
    DAEL_HD std::uint64_t tiles() const {
        return (blocks() + kernels::kTileBlocks - 1) / kernels::kTileBlocks;
    }
    // Blocks of zeros after the data.
    DAEL_HD std::uint32_t tail() const {
        return static_cast<std::uint32_t>(tiles() * kernels::kTileBlocks - blocks());
    }
};

// Whether the message can be processed at all. Lists made by kernels have been checked by nobody.
DAEL_HD Code validity(const GcmBatch& batch, const GcmMessage& m) {
    if (m.key >= batch.key_count) return Code::invalid_argument;
    if (m.size > kGcmMostData || m.aad_size > kGcmMostAad) return Code::limit;
    return Code::ok;
}

DAEL_HD bool is_long(const GcmMessage& m) {
    return m.size > kShortMessage || m.aad_size > kShortMessage ||
           m.size + m.aad_size > kShortMessage;
}

// J0 (SP 800-38D 7.1).
DAEL_HD Words4 first_counter(const GcmBatch& batch, std::uint64_t message) {
    if (batch.counters) return batch.counters[message];
    const auto* n = reinterpret_cast<const std::uint32_t*>(&batch.messages[message].nonce);
    return {n[0], n[1], n[2], 0x01000000};
}

// inc32: only the low 32 bits count, and wrap (SP 800-38D 6.2).
DAEL_HD Words4 add32(const Words4& counter, std::uint32_t n) {
    return {counter.x, counter.y, counter.z, kernels::byte_swap(kernels::byte_swap(counter.w) + n)};
}

// The ciphertext lies in `in` when opening, in `out` when sealing. Tiles of data follow groups of
// 256 counters: the data begins as many blocks in as its first counter is past a multiple of 256.
DAEL_HD HashItem hash_item(const GcmBatch& batch, Part part, std::uint64_t message) {
    const GcmMessage& m = batch.messages[message];
    if (part == Part::aad) return {m.aad, m.aad_size, 0};
    const std::uint32_t first = kernels::byte_swap(first_counter(batch, message).w) + 1;
    return {batch.opening ? m.in : m.out, m.size, first & 255};
}

DAEL_HD std::uint64_t tiles_of(const GcmBatch& batch, Part part, std::uint64_t message) {
    const GcmMessage& m = batch.messages[message];
    if (validity(batch, m) != Code::ok || !is_long(m)) return 0;
    if (part == Part::aad ? m.aad_size <= kShortAad : m.size == 0) return 0;
    return hash_item(batch, part, message).tiles();
}

// Of the workers, those that get any tiles.
DAEL_HD std::uint32_t busy_workers(std::uint32_t workers, std::uint64_t tiles) {
    return tiles < workers ? static_cast<std::uint32_t>(tiles) : workers;
}
// Worker w takes tiles share_start(w) to share_start(w + 1).
DAEL_HD std::uint64_t share_start(std::uint64_t tiles, std::uint32_t workers, std::uint32_t w) {
    return tiles / workers * w + tiles % workers * w / workers;
}
// The worker that takes a tile.
DAEL_HD std::uint32_t worker_of(std::uint64_t tiles, std::uint32_t workers, std::uint64_t tile) {
    std::uint32_t low = 0, high = workers;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        (share_start(tiles, workers, middle) <= tile ? low : high) = middle;
    }
    return low;
}

// The message that a tile belongs to: the last one that starts at or before it is not empty.
DAEL_HD std::uint64_t message_of(const TileList& list, std::uint32_t count, std::uint64_t tile) {
    std::uint64_t low = 0, high = count;
    while (high - low > 1) {
        const std::uint64_t middle = low + (high - low) / 2;
        (list.starts[middle] <= tile ? low : high) = middle;
    }
    return low;
}

// A walk along tiles: the message, and which of its tiles.
struct TileWalk {
    DAEL_HD TileWalk(const TileList& list, std::uint32_t count, std::uint64_t tile)
        : message(message_of(list, count, tile)),
          start(list.starts[message]),
          end(list.starts[message + 1]) {}
    // Goes on to `tile`, which must exist; returns whether that is another message.
    DAEL_HD bool advance(const TileList& list, std::uint64_t tile) {
        if (tile < end) return false;
        do end = list.starts[++message + 1];
        while (tile >= end);
        start = list.starts[message];
        return true;
    }
    std::uint64_t message, start, end;
};

}  // namespace dael::cuda
