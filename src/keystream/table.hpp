// SPDX-License-Identifier: Apache-2.0
// A database of security associations (RFC 4301's SAD) with precomputed AES-CTR keystream for their
// packets: what is behind an SaTable, the places of its SAs, its buffers, and the way from a packet
// to its keystream.
//
// The words of this folder:
//     track    a sequence of numbers of one SA that count up; by_size has one for each class of IVs
//     slot     the keystream of one packet; an SaSlot is the place of an SA in the table
//     window   precomputed keystream of some consecutive numbers of a track (no anti-replay window)
//     buffer   page-locked memory with the windows of many SAs, which one fill writes
//     fill     one batch of precomputation; a stretch is one window of it, with its key and salt
//     lane     what a fill goes through: a stream, memory and keys of its own, or the host's engine
//     direct   a packet whose keystream is not there (a cache miss), encrypted as usual
//
// Order of locks: `control`, a slot's mutex, the scheduler's. Whoever has a later one only tries
// for an earlier one. A change of an SA takes the latter two together (SaFiller::State::lock_with),
// so that packets do not wait for the scheduler meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/backend.hpp"
#include "keystream/filler.hpp"
#include "keystream/planner.hpp"
#include "keystream/sa_slot.hpp"

namespace dael {

struct SaTable::State {
    State(std::shared_ptr<SaFiller::State> its_filler, const SaTableOptions& its_options);
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    Result<> set_up();

    Result<SaId> add(const Key& key, const SaOptions& options, const SaState* from);
    Result<> rekey(SaId sa, const Key& key, const std::array<std::uint8_t, 4>& salt);
    Result<> remove(SaId sa);
    Result<SaState> export_state(SaId sa, std::uint64_t more);
    Result<SaSealed> seal(SaId sa, std::span<const SaPacket> packets, SaNumbered numbered);
    Result<> open(SaId sa, std::span<const SaPacket> packets, std::span<Code> codes);
    SaCounters counters() const;
    Result<SaStatus> status(SaId sa) const;
    std::string explain() const;

    // Null: no such SA. Without a lock; its id is to be looked at again under the slot's mutex.
    keystream::SaSlot* find(SaId sa) const noexcept;
    bool forked() const noexcept;
    Result<> usable() const;

    // A window is done with: its buffer may be filled again once all of it are.
    void retire(keystream::Window& window) noexcept;
    // What fillers have brought since for a track, but for what ends before number `n`. This and
    // the next two under the slot's mutex, and those outside of packet calls.
    void take_in(keystream::Track& track, std::uint64_t n, SaCounters& counters) noexcept;
    // A track's window, or all windows of a slot, are given up and wiped.
    void drop(keystream::Track& track, std::uint32_t at) noexcept;
    void drop_all(keystream::SaSlot& slot) noexcept;

    const std::shared_ptr<SaFiller::State> filler;
    SaTableOptions options;
    std::unique_ptr<core::Backend> host;  // of the direct path
    keystream::Measured measured;
    std::uint32_t process = 0;

    // The scheduler's mutex guards these.
    std::vector<std::unique_ptr<keystream::FillBuffer>> buffers;
    std::vector<keystream::SaSlot*> active;        // have had packets of late
    double rate = 0;                               // of all of them, blocks a second
    std::uint32_t under_way = 0;                   // jobs
    std::uint32_t lost = 0;                        // buffers that could not be waited for
    std::uint64_t fill_errors = 0, unclaimed = 0;  // bytes that came for nobody
    std::uint64_t pressed = 0;                     // the last tick when somebody wanted in vain
    std::uint64_t looked_at = 0;                   // the last fill that found none free
    bool blocked = false;                          // wants a buffer, and none is free
    std::uint32_t blocked_ticks = 0;

    std::atomic<std::uint64_t> live{0};  // bytes of windows that are not retired
    // So many SAs that a call's is not in the nearest cache from the last time.
    std::atomic<bool> many{false};

  private:
    static constexpr std::size_t kPage = 64, kPages = std::size_t{1} << 14;
    struct Page {
        std::array<std::unique_ptr<keystream::SaSlot>, kPage> slots;
    };
    static Result<> check(const Key& key, const SaOptions& options, const SaState* from);
    struct PreparedSa {
        std::shared_ptr<const Key> key;
        std::unique_ptr<core::PacketCipher> cipher;
        std::uint64_t print = 0;
    };
    Result<PreparedSa> prepare(const Key& key, const SaOptions& options, const SaState* from);
    void enter(keystream::SaSlot& slot, PreparedSa entry, const SaOptions& options,
               const SaState& from) noexcept;
    void leave(keystream::SaSlot& slot) noexcept;

    mutable std::mutex control;  // adding, removing, rekeying
    std::unique_ptr<std::atomic<Page*>[]> pages;
    std::vector<std::uint32_t> free_slots;
    std::uint32_t slots = 0;  // that were ever made
    static constexpr std::uint32_t kFew = 16;
    std::uint32_t sas = 0;
    std::uint64_t generation = 0;
    SaCounters gone;  // of SAs that were removed
};

namespace keystream {

inline SaTable::State& table_of(const Track& track) noexcept {
    return *track.slot->table;
}

}  // namespace keystream
}  // namespace dael
