// SPDX-License-Identifier: Apache-2.0
// AES-GCM for packets of many security associations (SAs), with keystream made ahead of time on a
// GPU or on other cores: when a packet comes, what is left is an XOR and a hash. docs/keystream.md
// says when that pays, and when it does not.
//
// Safety. A counter never serves two packets: sealing counts, cannot be told to go back, stops for
// good at `limit` (Code::limit), and in a child of fork() at once. That holds as long as the table:
// a key whose SA has sent is not taken for another sending SA of the table, and must not be given
// to any other table or process, nor again after a restart. Opening writes no plaintext of a packet
// that fails, and looks for no replays (esp.hpp does).
//
// One table serves one core that works on packets: its budget is that core's share of the cache,
// from which keystream must come to be worth anything. Any thread may call anything; calls for one
// SA wait for each other, and none waits for a filler or a device. A packet whose keystream is not
// there is encrypted where it is (a "direct" one): nothing is ever dropped or late for want of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/sa.hpp>

namespace dael {

struct SaFillerOptions {
    int threads = 1;  // that bring keystream; one keeps a device busy
    int lanes = 8;    // device: blocks under way at once of each thread, each on a stream
};

// Brings keystream for one table or several, which share it fairly, SA by SA (deficit round
// robin). Its threads sleep when no packets come, and while they come take up to a core each.
class DAEL_API SaFiller {
  public:
    // Through a device that writes keystream into host memory (cuda), or else has lists in its own;
    // otherwise (cpu, openssl, opencl, an engine for auto that has no device) by Engine::run. Keeps
    // what it needs of the engine alive.
    // Errors: invalid_argument, out_of_memory, device.
    static Result<SaFiller> open(Engine& engine, SaFillerOptions options = {});
    SaFiller(SaFiller&&) noexcept;
    SaFiller& operator=(SaFiller&&) noexcept;
    ~SaFiller();  // tables that use it keep it alive

    struct DAEL_HIDDEN State;  // src/keystream/filler.hpp
    const std::shared_ptr<State>& state() const noexcept { return state_; }

  private:
    explicit SaFiller(std::shared_ptr<State> state) noexcept;
    std::shared_ptr<State> state_;
};

struct SaTableOptions {
    // Bytes of keystream ready or under way at once: the packet core's share of the cache. Takes
    // twice as much memory, page-locked where a device fills.
    std::size_t budget = std::size_t{8} << 20;
    std::size_t block = 0;         // bytes that one launch makes at most; 0: as the budget allows
    std::uint32_t overlap = 2048;  // receiving: packets' worth of keystream kept for late ones
    std::uint32_t idle_ms = 200;   // an SA without packets for so long gives up its keystream
    double most_waste = 0.18;      // rfc4106: share of keystream made that longer slots may waste
    std::uint32_t most_sas = 1u << 20;  // at once
    // measured: ahead where open() finds that XOR and hash are faster here than the direct path.
    // ahead, direct: whatever is faster, for tests and measurements.
    enum class Plan : std::uint8_t { measured = 0, ahead = 1, direct = 2 } plan = Plan::measured;
};

class DAEL_API SaTable {
  public:
    // With a filler of its own, or one that is shared. Measures for some milliseconds.
    static Result<SaTable> open(Engine& engine, SaTableOptions options = {});
    static Result<SaTable> open(const SaFiller& filler, SaTableOptions options = {});
    SaTable(SaTable&&) noexcept;
    SaTable& operator=(SaTable&&) noexcept;
    ~SaTable();  // no call may be under way

    // Errors: invalid_argument (a sending key that is not fresh, or that has sent in this table;
    // tag size; limits), limit (most_sas), out_of_memory.
    Result<SaId> add(const Key& key, const SaOptions& options);
    // Another key and salt in the place of the first, numbers from 1 on; otherwise as it was.
    Result<> rekey(SaId sa, const Key& key, const std::array<std::uint8_t, 4>& salt);
    // Wipes its key and keystream. Errors, as of every call: invalid_argument for no such SA.
    Result<> remove(SaId sa);

    // All packets, or none: then the call says why, and no number was used (after internal and
    // out_of_memory, faults of libcrypto alone, they were, and the outputs are wiped). Errors:
    // limit; invalid_argument.
    Result<Sealed> seal(SaId sa, std::span<const SaPacket> packets, SaNumbered numbered = {});
    // codes[i]: ok, authentication, invalid_argument. After the latter two the output holds what it
    // held before (in place the ciphertext) or zeros.
    Result<> open(SaId sa, std::span<const SaPacket> packets, std::span<Code> codes);

    SaCounters counters() const;
    Result<SaStatus> status(SaId sa) const;
    // What was measured, and what is done for that: some lines of text.
    std::string explain() const;
    // Waits until fillers have nothing to do for this table: for tests and measurements.
    void settle();

    struct DAEL_HIDDEN State;  // src/keystream/table.hpp

  private:
    explicit SaTable(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael
