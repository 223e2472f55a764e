// SPDX-License-Identifier: Apache-2.0
// Security associations (SAs), what a packet's counters are, what an SA promises, and files that
// list them; and tables of them, whose keystream is made ahead of time.
//
// Safety: keys from files are static, and under a static key the counters would begin again with
// each start. So what is read from a file can receive; it can send only where the file states that
// the key is fresh (docs/keystream.md).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>

namespace dael {

// What a packet's counters are. In both, the first masks the tag and the others are for the data.
enum class SaLayout : std::uint8_t {
    // RFC 4106, the standard: an IV of 8 bytes, and the counters (salt, IV, 1), (salt, IV, 2), ...
    rfc4106 = 0,
    // Schoenberger's: an IV of 12 bytes, and (salt, IV) is itself the first counter, one number of
    // 128 bits; the next packet goes on where the last one ended. Only a peer that does the same
    // understands it: with SP 800-38D it shares the arithmetic, not the counters.
    stream = 1,
};
enum class SaDirection : std::uint8_t { sending = 0, receiving = 1 };

// How the IVs of a sending SA in layout rfc4106 go. The RFC asks that they differ, no more.
enum class SaIvs : std::uint8_t {
    // The upper two bits say how long the packet is, in four classes, and the others count within
    // the class: packets of one class need about the same keystream, so that little is wasted.
    by_size = 0,
    // The IV is the packet's number, 1, 2, 3: where a peer wants that (RFC 8750).
    counting = 1,
};

struct SaOptions {
    SaDirection direction = SaDirection::sending;
    SaLayout layout = SaLayout::rfc4106;
    SaIvs ivs = SaIvs::by_size;
    std::uint8_t tag_size = 16;          // bytes of the tag (ICV): as gcm::valid_tag_size
    std::array<std::uint8_t, 4> salt{};  // agreed on with the key
    // That no packet was ever sent under this key and salt. Must be true to send: numbers begin at
    // 1 with the SA, so under a key from a file they would begin there after every start.
    bool fresh_key = true;
    // Packets sent: from `soft_limit` on every SaSealed says so (0: 7/8 of the limit); after
    // `limit` seal() refuses. 2^32 - 1 for ESP without extended sequence numbers.
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t soft_limit = 0;
    // Bytes of keystream that may be ready or under way at once. 0: every packet is direct.
    std::uint64_t quota = std::numeric_limits<std::uint64_t>::max();
    // stream: the IV of the first packet, 0 being taken for 1.
    std::array<std::uint8_t, 12> first_iv{};
    // Lifetimes beside `limit`, of this key; 0: none. Once one is over, seal() and open() refuse;
    // from the soft one on SaSealed and SaStatus say `rekey_soon`. Bytes are those of packets that
    // were sealed, or were authentic; of the calls that receive, the one that passes it is served.
    std::uint64_t limit_bytes = 0, soft_limit_bytes = 0;
    std::chrono::milliseconds lifetime{0}, soft_lifetime{0};
    // Receiving: open() refuses after so many packets that failed; 0: never. For tags of 8 bytes,
    // where each forgery that is tried counts (SP 800-38D appendix C); who can send packets to a
    // receiver can end its SA this way.
    std::uint64_t most_failed = 0;
};

// Where a sending SA stands, for another one of the same key and salt to go on from: in another
// table, process or machine, or after a restart. It is no secret, but must not be altered, and
// means what it does under the options that it was exported with: in layout stream under another
// first_iv counters would repeat. That is refused in the process that exported it, and nobody sees
// it else.
struct SaState {
    std::uint64_t next = 1;  // the number of the next packet
    // by_size: the next number of each class. counting: ivs[0] is `next`. stream: ivs[0] is one
    // above the count of blocks that were used.
    std::array<std::uint64_t, 4> ivs{1, 1, 1, 1};
    std::uint64_t bytes = 0, age_ms = 0;  // lifetimes go on
    friend constexpr bool operator==(const SaState&, const SaState&) noexcept = default;
};

// Names an SA of one table. Never used again, so that one that was removed is nobody else's.
struct SaId {
    std::uint64_t value = 0;  // 0: none
    friend constexpr bool operator==(const SaId&, const SaId&) noexcept = default;
};

// A packet in host memory, of any alignment. `out` is `in` or apart from it; the tag may follow.
struct SaPacket {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::size_t size = 0;  // bytes of `in` and of `out`
    const std::uint8_t* aad = nullptr;
    std::size_t aad_size = 0;
    std::uint8_t* iv = nullptr;   // 8 bytes, stream: 12. Sealing writes it, opening reads it
    std::uint8_t* tag = nullptr;  // SaOptions::tag_size bytes. Sealing writes it, opening reads it
};

// Called by seal() when the packets have their numbers (first, first + 1, ..., from 1 on), before
// any AAD is read: to write sequence numbers into headers and AAD. It must call nothing of the
// table, and not throw.
struct SaNumbered {
    void (*call)(void* context, std::uint64_t first) = nullptr;
    void* context = nullptr;
};

struct SaSealed {
    std::uint64_t first = 0;  // number of the first packet
    bool rekey_soon = false;  // a soft limit is passed
    std::uint64_t epoch = 0;  // which of the SA's keys it was: 1, and one more with each rekey()
};

// Since the SA, or the table, came into being, but for the last two.
struct SaCounters {
    std::uint64_t packets = 0, bytes = 0;  // that were sealed or opened, or failed to open
    std::uint64_t hits = 0;                // packets, all of whose keystream was there;
    std::uint64_t partial = 0;             // a part of it, the rest was encrypted here;
    std::uint64_t direct = 0;              // none
    std::uint64_t used = 0;                // bytes of keystream that they took
    std::uint64_t overlapped = 0;          // hits and partials that came late, out of order
    std::uint64_t failed = 0;              // to open
    std::uint64_t windows = 0;             // runs of keystream that fillers brought
    std::uint64_t made = 0;                // bytes of keystream in them; and of it
    std::uint64_t dropped = 0;             // what was given up before any packet came to it
    std::uint64_t fill_errors = 0;         // of devices; table only
    std::uint64_t ready = 0;               // bytes of keystream that wait for packets now
    std::uint64_t memory = 0;              // bytes of blocks that hold them; table only
};

struct SaStatus {
    SaOptions options;
    int key_bits = 0;
    std::uint64_t next = 0;  // sending: the next packet's number
    std::uint64_t epoch = 0;
    bool rekey_soon = false, expired = false;           // a soft limit or a hard one is passed
    std::chrono::milliseconds age{0}, since_packet{0};  // of the key; of the last call with packets
    bool ahead = false;  // whether keystream is made for it now; why not: `why`
    std::string why;
    SaCounters counters;
};

// An SA of a file.
struct SaEntry {
    Key key;
    SaOptions options;
    int line = 0;  // where it stands
};

// Reads SAs from a file in libconfig's form, as the thesis has it:
//     testapp = { SAs = ( { keybits = 128; key = [0xfe, ...]; nonce = [0xcafebabe, ...];
//                           segments = 4; }, ... ); };
// docs/keystream.md has all settings. Errors, with file and line: io; bad_format; key_size;
// unsupported where the library was built without libconfig++.
DAEL_API Result<std::vector<SaEntry>> load_sas(const std::string& path);

}  // namespace dael

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
    Result<SaSealed> seal(SaId sa, std::span<const SaPacket> packets, SaNumbered numbered = {});
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
