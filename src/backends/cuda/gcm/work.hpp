// SPDX-License-Identifier: Apache-2.0
// What kernels of messages with keys of their own share: keys and batches in device memory. Mostly
// GCM's.
//
// A message of at most kShortMessage bytes of data and AAD is a warp's, from its counter to its
// tag. Longer ones are cut into groups of 256 counters to encrypt and tiles of 16 KiB to hash
// (kernels/ghash_tile.hpp), which all multiprocessors share out evenly; what each hashed of a
// message is a partial, and a lane for each message makes the tag of its partials.
#pragma once

#include <daelstrom/gcm.hpp>

#include "backends/cuda/work.hpp"
#include "kernels/gcm_fused.hpp"
#include "kernels/gcm_quads.hpp"
#include "kernels/gcm_team.hpp"
#include "kernels/ghash_tile.hpp"

namespace dael::cuda {

// Most bytes, data and AAD together, of a message that one warp processes.
inline constexpr std::uint64_t kShortMessage = 8192;
// AAD of long messages up to this size is hashed by the warp that makes the tag.
inline constexpr std::uint64_t kShortAad = 8192;
// Powers H^(2^j) of a key; exponents count blocks, of which there are fewer than 2^58.
inline constexpr std::uint32_t kSquares = 64;
// Counters that share what counter caching keeps (kernels/counter_cache.hpp).
inline constexpr std::uint32_t kGroupBlocks = 256;

// What a key is in device memory: what comes from the host, and what is made of it there.
struct KeyHead {
    RoundKeys encrypt;
    std::uint32_t rounds;
    std::uint32_t generation;  // another one with each key that comes to this place; never 0
    std::uint32_t unused[2];
};
struct GcmKey : KeyHead {
    Words4 powers[2 * kernels::kLanes + 2];  // H^0 to H^65
    Words4 leaps[kernels::kTeamWarps];       // H^(32 j)
    Words4 squares[kSquares];                // H^(2^j)
};
static_assert(sizeof(KeyHead) == 256 && sizeof(GcmKey) % 16 == 0);

// What the tensor cores need of a key besides: for ghash_tiles, or for ghash_mma, which takes the
// first kMmaWords alone.
struct GcmMatrices {
    std::uint32_t fragments[kernels::kFragmentWords];
    Words4 column_weights[kernels::kTileColumns];  // H^-n
};

// What the tensor cores need of a key for short messages (kernels/gcm_quads.hpp).
struct alignas(16) GcmQuads {
    std::uint32_t words[kernels::kQuadWords];
};
// And for long ones that are hashed as they are encrypted (kernels/gcm_fused.hpp).
struct alignas(16) GcmFused {
    std::uint32_t words[kernels::kFusedWords];
    Words4 row_weights[kernels::kFusedRows];  // H^fused_row_power
};
// A place of a group that no message has; and how many messages are sorted at once where a list has
// not been planned.
inline constexpr std::uint32_t kNoMessage = ~0u, kQuadChunk = 2048;
// Longer messages on average are sooner encrypted first and hashed then.
inline constexpr std::uint64_t kMaxFused = std::uint64_t{768} << 10;
// Of messages whose lengths are not known, fewer than this are sooner done a warp each.
inline constexpr std::uint32_t kFewestForQuads = 8192;

// Units of all long messages' work: units starts[m] to starts[m + 1] are message m's. Workers
// divide them evenly.
struct UnitList {
    std::uint64_t* starts;  // count + 1
    std::uint32_t workers;
};

// Tiles of AAD or data. What worker w hashed of message m, times the power of H for what comes
// after it, is partials[w + m]: along the tiles either w or m steps on, so that no two partials
// share a place.
struct TileList : UnitList {
    Words4* partials;  // workers + count
};

// `both`: by twice as many thread blocks, of which the first half takes the AAD.
enum class Part : std::uint32_t { aad, data, both };

// What the blocks of gcm_plan tell each other, in words that carry the round that they are of: as
// many blocks as a launch has make one, in the order in which they begin. All launches of a batch
// have as many, so that every round comes to its end, whatever runs beside it. Begins as zeros.
inline constexpr std::uint32_t kPlanBlocks = 512, kPlanRounds = 4;
struct PlanState {
    std::uint64_t begun, ended;  // blocks, of all rounds
    // Of the last rounds: the first of the nonces that are theirs alone, and for how many messages.
    std::uint64_t first[kPlanRounds], granted[kPlanRounds];
    std::uint32_t number;    // of messages that have a nonce, for the kernels that follow
    std::uint32_t any_long;  // told by the short messages' kernel where the plan comes after it
    std::uint64_t sums[kPlanBlocks * 3];
};

// A batch of GCM, or of its counter mode alone. All pointers are to device memory.
struct GcmBatch {
    const Message* messages;
    const std::uint32_t* number;  // how many there are, at most `count`; null: `count`
    DeviceNonces* nonces;         // the starts are made of these; null: they stand in the list
    const GcmKey* keys;
    const GcmMatrices* matrices;  // null: without tensor cores
    std::uint32_t* results;       // a Code each
    TileList aad, data;           // tiles to hash
    UnitList groups;              // of counters
    const GcmFused* fused;       // null: long messages are encrypted and hashed one after the other
    const GcmQuads* quads;       // null: short messages go a warp each
    const std::uint32_t* order;  // of short messages, 64 places a group; null: not planned
    std::uint32_t quad_groups;
    std::uint32_t count;
    std::uint32_t key_count;
    std::uint32_t tag_size;    // 0: counter mode alone, from `start` on
    std::uint32_t opening;     // 1: tags are compared, and data decrypted; 0: written, encrypted
    std::uint64_t longest;     // bytes of data and AAD that a message may have; 0: any
    std::uint32_t plan_later;  // 1: gcm_plan comes after the short messages (PlanState::any_long)
    // 1: the first of the launches that there are for sizes of keys. It gives every message that it
    // sees and does not do the result of one that nobody has come to, so that no result of an
    // earlier launch is left.
    std::uint32_t reset;
    // Where all messages have one key: its generation, so that nothing is done with a key from the
    // host and hashes of another. 0: many keys, or nobody asks.
    std::uint32_t generation;
    PlanState* plan;  // for lists in device memory
    // 1: gcm_plan numbers the messages and tells `plan` how many, and there are no units. The
    // nonces are AEGIS's: what counts, and zeros behind it.
    std::uint32_t only_numbers;

    DAEL_HD const TileList& tiles(Part part) const { return part == Part::aad ? aad : data; }
};

// CBC encryption with a key for each message. All pointers are to device memory.
struct KeyedWork {
    const Message* messages;
    const std::uint32_t* number;  // how many there are, at most `count`; null: `count`
    const std::uint32_t* order;   // which message comes when; null: as they are listed
    const GcmKey* keys;
    std::uint32_t* results;  // a Code each; null: nobody asks
    std::uint32_t count;
    std::uint32_t key_count;
    std::uint32_t reset;  // as GcmBatch
};

// AAD or data of a message, as blocks to hash: `lead` blocks of zeros, which do not count, then
// these bytes, so that the last block ends a tile.
struct HashItem {
    const unsigned char* data;
    std::uint64_t size;  // bytes
    std::uint32_t lead;  // blocks
};
DAEL_HD std::uint64_t blocks_of(std::uint64_t size) {
    return size / 16 + (size % 16 != 0);
}
DAEL_HD std::uint64_t tiles_of(std::uint64_t size) {
    return (blocks_of(size) + kernels::kTileBlocks - 1) / kernels::kTileBlocks;
}

// A message's start in words; lists of others' may be aligned to no more than 8 bytes.
DAEL_HD Words4 start_of(const Message& m) {
    const auto* w = reinterpret_cast<const std::uint32_t*>(&m.start);
    return {w[0], w[1], w[2], w[3]};
}

// How many messages there are.
DAEL_HD std::uint32_t number_of(const std::uint32_t* number, std::uint32_t most) {
    return number && *number < most ? *number : most;
}

// Whether `size` bytes can lie at an address at all: it is not null, and they end where addresses
// end. In one comparison, as null less one is the largest of numbers.
DAEL_HD bool can_lie_at(const void* at, std::uint64_t size) {
    return size == 0 || reinterpret_cast<std::uintptr_t>(at) - 1 < ~size;
}

// Whether the message can be processed at all. Lists made by kernels have been checked by nobody:
// an entry that is all zeros, say, must get a result and not fault.
DAEL_HD Code validity(const GcmBatch& batch, const Message& m) {
    if (m.key >= batch.key_count) return Code::invalid_argument;
    if (batch.longest != 0 && (m.size > batch.longest || m.aad_size > batch.longest - m.size))
        return Code::limit;
    if (batch.tag_size == 0) {
        if (m.aad_size != 0 || m.skip >= 16 || !can_lie_at(m.out, m.size) ||
            (m.in && !can_lie_at(m.in, m.size)))
            return Code::invalid_argument;
        // The counter's low 32 bits must not wrap.
        const std::uint64_t blocks = (std::uint64_t{1} << 32) - kernels::byte_swap(start_of(m).w);
        return m.size > blocks * 16 - m.skip ? Code::limit : Code::ok;
    }
    if (m.size > gcm::kMaxData || m.aad_size > gcm::kMaxAad) return Code::limit;
    if (m.skip != 0 || !can_lie_at(m.in, m.size) || !can_lie_at(m.out, m.size) ||
        !can_lie_at(m.aad, m.aad_size) || !can_lie_at(m.tag, batch.tag_size))
        return Code::invalid_argument;
    return Code::ok;
}

DAEL_HD Code validity(const KeyedWork& work, const Message& m) {
    if (m.key >= work.key_count) return Code::invalid_argument;
    if (m.size % 16 != 0) return Code::ragged_length;
    return can_lie_at(m.in, m.size) && can_lie_at(m.out, m.size) ? Code::ok
                                                                 : Code::invalid_argument;
}

// Whether the key is one of those that a launch for keys of so many rounds is for, and the one that
// the host has, where it has one.
DAEL_HD bool is_for(const GcmBatch& batch, const KeyHead& key, int rounds) {
    return key.rounds == static_cast<std::uint32_t>(rounds) &&
           (batch.generation == 0 || key.generation == batch.generation);
}

// The result of a message that nobody has come to.
inline constexpr auto kNotRun = static_cast<std::uint32_t>(Code::internal);

DAEL_HD bool is_long(const Message& m) {
    return m.size > kShortMessage || m.aad_size > kShortMessage ||
           m.size + m.aad_size > kShortMessage;
}

// inc32: only the low 32 bits count, and wrap (SP 800-38D 6.2).
DAEL_HD Words4 add32(const Words4& counter, std::uint32_t n) {
    return {counter.x, counter.y, counter.z, kernels::byte_swap(kernels::byte_swap(counter.w) + n)};
}

// The ciphertext lies in `in` when opening, in `out` when sealing.
DAEL_HD HashItem hash_item(const GcmBatch& batch, Part part, std::uint64_t message) {
    const Message& m = batch.messages[message];
    const std::uint64_t size = part == Part::aad ? m.aad_size : m.size;
    const auto lead =
        static_cast<std::uint32_t>(tiles_of(size) * kernels::kTileBlocks - blocks_of(size));
    return {part == Part::aad ? m.aad : batch.opening ? m.in : m.out, size, lead};
}

// The data's first counter, which with GCM is the one after J0; groups are aligned in the counter,
// so that the data begins as many blocks into its first group as this is past a multiple of 256.
DAEL_HD Words4 data_counter(const GcmBatch& batch, const Message& m) {
    return add32(start_of(m), batch.tag_size != 0);
}
DAEL_HD std::uint64_t groups_of(const GcmBatch& batch, const Message& m) {
    if (m.size == 0) return 0;
    const std::uint32_t lead = kernels::byte_swap(data_counter(batch, m).w) % kGroupBlocks;
    return (lead + blocks_of(m.skip + m.size) + kGroupBlocks - 1) / kGroupBlocks;
}

// What a message has of each kind of units.
struct Units {
    std::uint64_t aad, data, groups;
    DAEL_HD Units& operator+=(const Units& other) {
        aad += other.aad;
        data += other.data;
        groups += other.groups;
        return *this;
    }
    DAEL_HD friend Units operator+(Units a, const Units& b) { return a += b; }
    DAEL_HD bool any() const { return (aad | data | groups) != 0; }
};
DAEL_HD Units units_of(const GcmBatch& batch, std::uint64_t message) {
    const Message& m = batch.messages[message];
    if (validity(batch, m) != Code::ok || !is_long(m)) return {};
    return {m.aad_size <= kShortAad ? 0 : tiles_of(m.aad_size), tiles_of(m.size),
            groups_of(batch, m)};
}

// Of the workers, those that get any units.
DAEL_HD std::uint32_t busy_workers(std::uint32_t workers, std::uint64_t units) {
    return units < workers ? static_cast<std::uint32_t>(units) : workers;
}
// Worker w takes units share_start(w) to share_start(w + 1).
DAEL_HD std::uint64_t share_start(std::uint64_t units, std::uint32_t workers, std::uint32_t w) {
    return units / workers * w + units % workers * w / workers;
}
// The worker that takes a unit: the last whose share, units * w / workers, starts at or before it.
DAEL_HD std::uint32_t worker_of(std::uint64_t units, std::uint32_t workers, std::uint64_t unit) {
    return static_cast<std::uint32_t>(((unit + 1) * workers - 1) / units);
}

// The message that a unit belongs to: the last one that starts at or before it is not empty. A warp
// looks at 32 places at once, as each look is a wait for memory. votes(asked): of how many lanes
// asked(lane) is true.
template <class Votes>
DAEL_HD std::uint64_t message_of(const UnitList& list, std::uint32_t count, std::uint64_t unit,
                                 Votes votes) {
    std::uint64_t low = 0, high = count;
    while (high - low > 1) {
        const std::uint64_t step = (high - low + kernels::kLanes) / (kernels::kLanes + 1);
        const std::uint32_t before = votes([&](std::uint32_t lane) {
            const std::uint64_t at = low + step * (lane + 1);
            return at < high && list.starts[at] <= unit;
        });
        const std::uint64_t after = low + step * (before + 1);
        low += step * before;
        if (after < high) high = after;
    }
    return low;
}

// A walk along units: the message, and where its units begin and end. A whole warp begins one.
struct Walk {
    template <class Votes>
    DAEL_HD Walk(const UnitList& list, std::uint32_t count, std::uint64_t unit, Votes votes)
        : message(message_of(list, count, unit, votes)),
          start(list.starts[message]),
          end(list.starts[message + 1]) {}
    // Goes on to `unit`, which must exist; returns whether that is another message.
    DAEL_HD bool advance(const UnitList& list, std::uint64_t unit) {
        if (unit < end) return false;
        do end = list.starts[++message + 1];
        while (unit >= end);
        start = list.starts[message];
        return true;
    }
    std::uint64_t message, start, end;
};

}  // namespace dael::cuda
