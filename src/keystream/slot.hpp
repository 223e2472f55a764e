// SPDX-License-Identifier: Apache-2.0
// The place of an SA in a table. Places are never freed while the table lives, and are used again
// for other SAs: so a packet call finds its SA without a lock on the table.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <daelstrom/cipher.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/sa.hpp>

#include "core/packet_cipher.hpp"
#include "keystream/track.hpp"

namespace dael::keystream {

inline constexpr std::size_t kClasses = 4;  // of sizes; the upper two bits of an IV that goes by size
inline constexpr int kClassShift = 62;
inline constexpr std::uint64_t kClassNumbers = std::uint64_t{1} << kClassShift;

// Of a packet that needs so many blocks of keystream: up to 112, 624 and 1136 bytes, and more.
constexpr std::size_t class_of(std::uint64_t blocks) noexcept {
    return static_cast<std::size_t>(blocks > 8) + (blocks > 40) + (blocks > 72);
}

using Wide = unsigned __int128;

struct alignas(64) Slot {
    // Packet calls and control calls; the scheduler takes it by try_lock alone.
    std::mutex mutex;
    std::uint64_t id = 0;  // of the SA that is here; 0: none
    std::unique_ptr<core::PacketCipher> cipher;
    Wide base = 0;             // stream: the counter of block 0 (salt and first IV)
    std::uint64_t number = 1;  // sending: of the next packet
    bool by_size = false;
    SaOptions options;
    SaCounters counters;
    int key_bits = 0;
    std::array<Track, kClasses> tracks;

    // The scheduler's mutex guards these.
    std::shared_ptr<const Key> key;
    std::uint64_t key_serial = 0;  // of this key in this filler, never used again
    std::uint64_t epoch = 0;       // changes with the key
    std::uint64_t deficit = 0;     // bytes that it may still have in this round
    bool queued = false, active = false;
    std::uint64_t packets_then = 0, hits_then = 0, windows_then = 0;
    std::uint64_t penalty = 0;      // packets to stay direct for, when its IVs were not foreseen
    std::uint32_t idle_ticks = 0;
    std::string why;                // it is direct; empty: it is not
    std::atomic<std::uint64_t> seen{0}, seen_hits{0}, windows{0};  // packets and hits, for it to read

    const std::uint32_t index;  // in the table
    class TableSide* const table;
    Slot(std::uint32_t its_index, TableSide* its_table) : index(its_index), table(its_table) {
        for (Track& track : tracks) track.slot = this;
    }
};

}  // namespace dael::keystream
