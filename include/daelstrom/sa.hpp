// SPDX-License-Identifier: Apache-2.0
// Security associations (SAs), as keystream.hpp takes them: what a packet's counters are, what an
// SA promises, and files that list them.
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
#include <string>
#include <vector>

#include <daelstrom/export.h>
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
    // Packets sent: from `soft_limit` on every Sealed says so (0: 7/8 of the limit); after `limit`
    // seal() refuses. 2^32 - 1 for ESP without extended sequence numbers.
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t soft_limit = 0;
    // Bytes of keystream that may be ready or under way at once. 0: every packet is direct.
    std::uint64_t quota = std::numeric_limits<std::uint64_t>::max();
    // stream: the IV of the first packet, 0 being taken for 1.
    std::array<std::uint8_t, 12> first_iv{};
    // Lifetimes beside `limit`, of this key; 0: none. Once one is over, seal() and open() refuse;
    // from the soft one on Sealed and SaStatus say `rekey_soon`. Bytes are those of packets that
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

struct Sealed {
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
