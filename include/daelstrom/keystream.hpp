// SPDX-License-Identifier: Apache-2.0
// AES-GCM for packets of many security associations (SAs), with keystream made ahead of time on a
// GPU or on other cores: when a packet comes, what is left is an XOR and a hash. docs/keystream.md
// says when that pays, and when it does not.
//
// Safety. A counter never serves two packets: sealing counts, cannot be told to go back, and stops
// for good at `limit` (Code::limit). That holds as long as the process: a key whose SA has sent is
// not taken for another sending SA of any table, but for one that goes on from its exported state,
// and must not be given to any other process, nor again after a restart. Opening writes no
// plaintext of a packet that fails, and looks for no replays (esp.hpp does). Nobody else may write
// to a packet's buffers while a call works on them: the ciphertext is read once to be hashed and
// once more to be decrypted.
//
// One table serves one core that works on packets: its budget is that core's share of the cache,
// from which keystream must come to be worth anything. A packet whose keystream is not there is
// encrypted where it is (a "direct" one): nothing is ever dropped or late for want of it.
//
// Threads: any may call anything; calls for one SA wait for each other, and none waits for a filler
// or a device. Close: no call of that table may be under way; it waits for what a device has begun,
// for `patience_ms` at most, and what it could not wait for is kept until the device answers.
// fork(): in a child all calls of its parent's tables answer at once, with Code::limit or nothing;
// it may close them, and open its own, but not with its parent's keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/sa.hpp>

namespace dael {

struct SaFillerOptions {
    int threads = 1;  // that bring keystream; one keeps a device busy
    int lanes = 8;    // device: blocks under way at once of each thread, each on a stream
    // Processors on which the threads may run, which are called dael-filler-0 and so on. Empty:
    // those of the program's first thread, whatever the one that opens is bound to.
    std::vector<int> cpus{};
    // How long closing a table, or the filler, waits for a device that does not answer.
    std::uint32_t patience_ms = 5000;
};

// Brings keystream for one table or several, which share it fairly, SA by SA (deficit round
// robin). Its threads sleep when no packets come, and while they come take up to a core each.
// Threads: any may open tables with it. Close: at any time, tables that use it keep it alive.
// fork(): it has no threads in a child, which may close it, and opens no table on it (Code::limit).
class DAEL_API SaFiller {
  public:
    // Through a device that writes keystream into host memory (cuda), or else has lists in its own;
    // otherwise (cpu, openssl, opencl, an engine for auto that has no device) by Engine::run. Keeps
    // what it needs of the engine alive. After a fault, of the device's or memory's, packets are
    // direct for 10 ms to 10 s, longer from fault to fault, and then it is tried anew.
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
    std::uint32_t most_sas = 1u << 20;  // at once; of host memory each takes some 7 KiB
    // measured: ahead where open() finds that XOR and hash are faster here than the direct path.
    // ahead, direct: whatever is faster, for tests and measurements.
    enum class Plan : std::uint8_t { measured = 0, ahead = 1, direct = 2 } plan = Plan::measured;
};

// How those stand who bring keystream: for a monitor to look at now and then.
struct SaFilling {
    bool works = true;           // false: after a fault, for as long as it rests
    std::uint64_t faults = 0;    // since the filler was opened,
    std::string fault;           // and what the last one was
    std::uint64_t retry_ms = 0;  // until it is tried again
    std::uint64_t waits_ms = 0;  // that the oldest block has been under way: a device that hangs
};

class DAEL_API SaTable {
  public:
    // With a filler of its own, or one that is shared. Measures for some milliseconds. Errors:
    // invalid_argument, out_of_memory, device.
    static Result<SaTable> open(Engine& engine, SaTableOptions options = {});
    static Result<SaTable> open(const SaFiller& filler, SaTableOptions options = {});
    SaTable(SaTable&&) noexcept;
    SaTable& operator=(SaTable&&) noexcept;
    ~SaTable();  // no call may be under way

    // Errors: invalid_argument (a sending key that is not fresh, or that another SA of the process
    // has, or has sent with; tag size; limits), limit (most_sas), out_of_memory.
    Result<SaId> add(const Key& key, const SaOptions& options);
    // One that sends, and goes on where another ended, or will have ended (export_state). Of that
    // one the last state alone is taken in the same process, and once. In others, and after a
    // restart, whoever imports answers for both.
    Result<SaId> add(const Key& key, const SaOptions& options, const SaState& from);
    // Another key and salt in the place of the first, numbers from 1 on; otherwise as it was. After
    // an error all is as before.
    Result<> rekey(SaId sa, const Key& key, const std::array<std::uint8_t, 4>& salt);
    // Wipes its key and keystream, used or not. Blocks that are just being filled with others' over
    // it, or with more of it, are written over or wiped when that ends (some ms). Errors, as of
    // every call: invalid_argument for no such SA.
    Result<> remove(SaId sa);
    // Where a sending SA stands, beyond `more` packets, which are all that it may send from here on
    // until it exports again: so whoever goes on from that state repeats nothing, whenever that
    // is. With 0 it has sent its last. Errors: invalid_argument (it receives; layout stream, whose
    // packets have no common length, and `more`; its state was imported).
    Result<SaState> export_state(SaId sa, std::uint64_t more = 0);

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
    SaFilling filling() const;
    // Waits until fillers have nothing to do for this table, or rest: for tests and measurements.
    void settle();

    struct DAEL_HIDDEN State;  // src/keystream/table.hpp

  private:
    explicit SaTable(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael
