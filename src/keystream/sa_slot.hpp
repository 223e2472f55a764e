// SPDX-License-Identifier: Apache-2.0
// A security association: its place in a table, with its state. Places are never freed while the
// table lives, and are used again for other SAs: so a packet call finds its SA without a lock on
// the table.
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <daelstrom/key.hpp>
#include <daelstrom/keystream.hpp>
#include <daelstrom/message.hpp>

#include "core/packet_cipher.hpp"
#include "keystream/track.hpp"

namespace dael::keystream {

inline constexpr std::size_t kMaxGroup = 32;  // packets that the cipher gets at once
inline constexpr std::size_t kMaxPacket = std::size_t{1} << 30;        // bytes, and of AAD
inline constexpr std::uint64_t kMaxPosition = std::uint64_t{1} << 62;  // stream: blocks of an SA
inline constexpr std::size_t kClasses =
    4;  // of sizes; the upper two bits of an IV that goes by size
inline constexpr int kClassShift = 62;
inline constexpr std::uint64_t kClassNumbers = std::uint64_t{1} << kClassShift;

// Of a packet that needs so many blocks of keystream: up to 112, 624 and 1136 bytes, and more.
constexpr std::size_t class_of(std::uint64_t blocks) noexcept {
    return static_cast<std::size_t>(blocks > 8) + (blocks > 40) + (blocks > 72);
}

using Uint128 = unsigned __int128;

// What every packet call touches comes first, in as few cache lines as it takes: with a thousand
// SAs none of them is near, and fetch() has them all come at once.
struct alignas(64) SaSlot {
    // Packet calls and control calls; the scheduler takes it by try_lock alone.
    std::mutex mutex;
    std::uint64_t id = 0;  // of the SA that is here; 0: none
    std::unique_ptr<core::PacketCipher> cipher;
    std::atomic<const std::uint8_t*> near{nullptr};  // the cipher's
    std::uint64_t number = 1;                        // sending: of the next packet
    std::uint64_t lease = ~std::uint64_t{0};         // sending: the last number, as it exported
    std::uint64_t key_bytes = 0, key_failed = 0;     // of this key
    SaOptions options;
    SaCounters counters;
    bool by_size = false;
    int key_bits = 0;
    std::uint64_t epoch_number = 0;           // which of its keys this is, from 1 on
    std::uint64_t print = 0;                  // of its key, sending: key_memory.hpp
    std::uint64_t owner = 0;                  // of the key, here: as no other SA of the process
    bool exported = false;                    // its state is known elsewhere
    bool imported = false;                    // it went on from another's
    std::int64_t born_ms = 0, packet_ms = 0;  // of the key, and of the last packets
    Uint128 base = 0;                         // stream: the counter of block 0 (salt and first IV)
    alignas(64) std::array<Track, kClasses> tracks;

    // The scheduler's mutex guards these.
    std::shared_ptr<const Key> key;
    std::uint64_t key_serial = 0;  // of this key in this filler, never used again
    std::uint64_t epoch = 0;       // changes with the key
    std::uint64_t deficit = 0;     // bytes that it may still have in this round
    bool queued = false, active = false;
    double idle_seconds = 0;
    std::uint64_t seen_then = 0, strays_then = 0;
    std::uint64_t penalty = 0, resume_at = 0;  // packets to stay direct for; up to which one
    std::uint64_t made_then = 0, dropped_then = 0;
    std::chrono::steady_clock::duration rest{};            // time to stay direct for, because it
    std::chrono::steady_clock::time_point direct_until{};  // wastes, and until when; 0: it does not
    std::string why;                                       // it stays direct; empty: it does not

    // Receiving, for the scheduler to read: packets, and those that were nowhere near the last.
    std::atomic<std::uint64_t> seen{0}, seen_strays{0};
    // For the scheduler, too: bytes of keystream.
    std::atomic<std::uint64_t> made{0}, dropped{0};

    const std::uint32_t index;  // in the table
    SaTable::State* const table;
    SaSlot(std::uint32_t its_index, SaTable::State* its_table)
        : index(its_index), table(its_table) {
        for (Track& track : tracks) track.slot = this;
    }

    // Has what a call will touch brought near, before the lock, which nothing passes. `blocks` of
    // keystream are what its first packet needs.
    void fetch(std::uint64_t blocks) const noexcept;
};

inline void fetch_bytes(const std::uint8_t* from, std::size_t size) noexcept {
    for (std::size_t at = 0; at < size; at += 64) __builtin_prefetch(from + at);
}

inline void SaSlot::fetch(std::uint64_t blocks) const noexcept {
    constexpr std::uint64_t kMax = 68;  // blocks; later ones come by the processor's own devices
    const auto* const own = reinterpret_cast<const std::uint8_t*>(this);
    const auto* const first = reinterpret_cast<const std::uint8_t*>(&tracks[0]);
    fetch_bytes(own, static_cast<std::size_t>(first - own));
    fetch_bytes(first, Track::kHot);
    if (const std::size_t which = class_of(blocks); which != 0)
        fetch_bytes(reinterpret_cast<const std::uint8_t*>(&tracks[which]), Track::kHot);
    if (const std::uint8_t* const there = near.load(std::memory_order_relaxed)) {
        const std::size_t before = 16 * (std::min(blocks, kMax) + 6);
        fetch_bytes(there - before, before + core::PacketCipher::kNearBehind);
    }
}

// Of a track's numbers: packets count from 1, as sequence numbers do; blocks from 0.
constexpr std::uint64_t first_number(SaLayout layout) noexcept {
    return layout == SaLayout::stream ? 0 : 1;
}
// What a sending SA may still send, in packets and, in layout stream, in blocks.
inline std::uint64_t left(const SaSlot& slot) noexcept {
    return std::min(slot.options.limit, slot.lease) - (slot.number - 1);
}
// The time by which keys live: of a clock that nobody sets, some milliseconds apart.
inline std::int64_t now_ms() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}
// Whether so many bytes, or the time, pass a limit that is not 0.
inline bool passed(std::uint64_t bytes, std::uint64_t most, std::int64_t age_ms,
                   std::chrono::milliseconds lifetime) noexcept {
    return (most != 0 && bytes >= most) || (lifetime.count() != 0 && age_ms >= lifetime.count());
}
inline bool soft_passed(const SaSlot& slot, std::int64_t now) noexcept {
    const SaOptions& o = slot.options;
    return (o.direction == SaDirection::sending && slot.number > o.soft_limit) ||
           passed(slot.key_bytes, o.soft_limit_bytes, now - slot.born_ms, o.soft_lifetime);
}
inline bool hard_passed(const SaSlot& slot, std::int64_t now) noexcept {
    const SaOptions& o = slot.options;
    if (passed(slot.key_bytes, o.limit_bytes, now - slot.born_ms, o.lifetime)) return true;
    return o.direction == SaDirection::sending
               ? left(slot) == 0
               : o.most_failed != 0 && slot.key_failed >= o.most_failed;
}
inline Uint128 blocks_left(const SaSlot& slot) noexcept {
    const Uint128 end = ((slot.base >> 96) + 1) << 96;  // where the salt would change; 0 for 2^128
    const Uint128 here = slot.base + slot.tracks[0].next.load(std::memory_order_relaxed);
    const Uint128 to_end = end - here;
    const Uint128 to_most = kMaxPosition - slot.tracks[0].next.load(std::memory_order_relaxed);
    return to_end < to_most ? to_end : to_most;
}
inline Error no_such_sa() {
    return {Code::invalid_argument, "the table has no such SA; it was removed, or never added"};
}

}  // namespace dael::keystream
