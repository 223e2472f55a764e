// SPDX-License-Identifier: Apache-2.0
// IPsec's Encapsulating Security Payload (RFC 4303) with AES-GCM (RFC 4106), over a SaTable
// (keystream.hpp): packets in the caller's own buffers, many at a time. docs/esp.md shows its use.
//
// Safety. A sequence number is sent once: sending stops for good before numbers, or those of
// 32 bits, would begin again. A packet that is not accepted leaves nothing of its plaintext
// anywhere, and moves no window. What is accepted was sealed with the key, and is no replay, where
// the SA has a window, of what the process accepted under the key before; nothing else is promised
// of it: which SA may carry which inner packets (RFC 4301's selectors) is for the caller to check.
// IP headers, fragments and IKE are the caller's. Nobody else may write to a buffer during a call.
//
// Threads: any may call anything; packets of one SA wait for each other, and a change of the list
// of SAs for the calls under way. Close: no call may be under way; the table must stay where it is,
// and outlive both ends. fork(): in a child nothing is sent (`exhausted`) or accepted (`fault`),
// and other calls say Code::limit; it may close them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/keystream.hpp>

namespace dael::esp {

inline constexpr std::size_t kHeader = 16;  // bytes before the payload: SPI, sequence number, IV
inline constexpr std::size_t kUdpHeader = 8;
inline constexpr std::size_t kTrailer = 5;  // at most so many after it: padding, its length, ...
inline constexpr std::size_t kMaxIcv = 16;  // ... and then the ICV
// Room that any packet of an SA finds enough: before its payload, and after it. TFC padding, where
// it is asked for, comes on top.
inline constexpr std::size_t kHeadroom = kUdpHeader + kHeader;
inline constexpr std::size_t kTailroom = kTrailer + kMaxIcv;
inline constexpr std::size_t kMaxPayload = 65535 - kHeadroom - kTailroom;
inline constexpr std::uint16_t kUdpPort = 4500;  // RFC 3948

// Next headers (IANA's protocol numbers) that mean something here.
inline constexpr std::uint8_t kIpv4 = 4, kIpv6 = 41;  // tunnel mode: the payload is an IP packet
inline constexpr std::uint8_t kNoNext = 59;           // a dummy packet (RFC 4303 2.6)

// What became of a packet. The values are the C ABI's, and never change.
enum class Verdict : std::uint8_t {
    ok = 0,
    truncated = 1,    // shorter than headers, trailer and ICV
    malformed = 2,    // lengths that cannot be, an SPI or number of 0; sending: next header 0
    unknown_spi = 3,  // no SA of this SPI
    too_old = 4,      // before the window
    replayed = 5,     // came before
    bad_icv = 6,      // forged, altered, or sealed with another key
    // These three were sealed with the SA's key:
    bad_padding = 7,  // not 1, 2, 3, ... (RFC 4303 2.4), or longer than the packet
    bad_inner = 8,    // tunnel mode: the inner IP packet does not fit, or is of another version
    dummy = 9,        // next header 59: to be dropped in silence
    ike = 10,         // UDP: an IKE message, which is what the packet holds now (RFC 3948 2.2)
    keepalive = 11,   // UDP: one byte of 0xff (RFC 3948 2.3)
    exhausted = 12,   // the SA's numbers are used up, or a lifetime is over
    no_room = 13,     // sending: too little room before or after the payload; or longer than any
    fault = 14,       // the cipher failed (libcrypto's fault, or memory's)
};
inline constexpr std::size_t kVerdicts = 15;
DAEL_API std::string_view describe(Verdict verdict) noexcept;

// A buffer and what lies in it: offset to offset + size. What goes out becomes the ESP packet, what
// comes in the payload, in the same buffer; what else is in the buffer is touched only in the room
// that is needed.
struct Packet {
    std::uint8_t* buffer = nullptr;
    std::uint32_t capacity = 0;  // bytes of the buffer
    std::uint32_t offset = 0, size = 0;
    // Sending: TFC padding (RFC 4303 2.7) to at least so many bytes, payload and padding. Tunnel
    // mode; receivers cannot take it off other payloads unless these know their own length.
    std::uint32_t pad_to = 0;
    std::uint8_t next_header = kIpv4;  // protocol of the payload; never 0 (hop-by-hop options)
    Verdict verdict = Verdict::ok;     // the answer
    std::uint32_t spi = 0;             // receiving, an answer: of the SA that is meant
    std::uint64_t sequence = 0;        // an answer: the whole number, upper half included
    void* user = nullptr;              // the caller's own; not looked at
};

struct Options {
    std::uint32_t spi = 0;               // 256 or above (RFC 4303 2.1)
    std::array<std::uint8_t, 4> salt{};  // the last 4 bytes of the keying material (RFC 4106 8.1)
    std::uint8_t icv_size = 16;          // bytes: 8, 12 or 16
    bool esn = true;                     // extended sequence numbers, of 64 bits
    // UDP encapsulation (RFC 3948). Sending: with these ports, where they are not 0; the checksum
    // is 0, which IPv6 does not allow: udp6_checksum(), below. Receiving: whether the SA's
    // packets begin with a UDP header is said with each call.
    std::uint16_t udp_source = 0, udp_destination = 0;
    // Receiving: how many packets late one may be, 32 to 2^20; 0, for SAs without ESN only: replays
    // are not looked for.
    std::uint32_t window = 1024;
    // Of the table's SA, as SaOptions says.
    SaIvs ivs = SaIvs::by_size;
    bool fresh_key = true;
    std::uint64_t soft_limit = 0, quota = ~std::uint64_t{0};
    std::uint64_t limit = 0;  // sending: most packets; 0: as many as there are sequence numbers
    std::uint64_t limit_bytes = 0, soft_limit_bytes = 0;  // encrypted; 0: none
    std::chrono::milliseconds lifetime{0}, soft_lifetime{0};
    std::uint64_t most_bad_icvs = 0;  // receiving: then all is `exhausted`; 0: any number
    // Receiving: under a key that has received in this process before, the window begins behind the
    // highest number that was accepted, so that nothing is accepted again; while another SA
    // receives under it, it is refused. True: it begins anew.
    bool accept_again = false;
};

// Where an SA that receives stands, for another of the same key to go on from.
struct WindowState {
    std::uint64_t top = 0;       // the highest number that was accepted; 0: none
    std::uint64_t accepted = 0;  // packets
    // Bit i of word j: whether top - (64 j + i) was accepted. What it does not say counts as seen.
    std::vector<std::uint64_t> seen;
};

struct Counters {
    std::array<std::uint64_t, kVerdicts> packets{};  // by verdict
    std::uint64_t bytes = 0;                         // of payloads that were sent or accepted
    std::uint64_t of(Verdict verdict) const noexcept {
        return packets[static_cast<std::size_t>(verdict)];
    }
};

// One SA that sends.
class DAEL_API Encapsulator {
  public:
    // Errors: invalid_argument; as SaTable::add.
    static Result<Encapsulator> open(SaTable& table, const Key& key, const Options& options);
    // One that goes on from where another stood, as SaTable::add.
    static Result<Encapsulator> open(SaTable& table, const Key& key, const Options& options,
                                     const SaState& from);
    // As SaTable::export_state: `more` packets are all that it may send from here on.
    Result<SaState> export_state(std::uint64_t more = 0);
    Encapsulator(Encapsulator&&) noexcept;
    Encapsulator& operator=(Encapsulator&&) noexcept;
    ~Encapsulator();  // removes the SA from the table

    struct Sent {
        std::size_t packets = 0;  // whose verdict is ok
        bool rekey_soon = false;  // the soft limit is passed: agree on another SA
    };
    // Each packet becomes an ESP packet, in order, or says why not and is left as it was; the
    // others go. Errors: internal, out_of_memory: of those packets with the verdict `fault` nothing
    // is left, and nothing may be sent.
    Result<Sent> encapsulate(std::span<Packet> packets);

    SaId sa() const noexcept;  // in the table, for its status
    Counters counters() const;

    struct DAEL_HIDDEN State;

  private:
    explicit Encapsulator(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

// How packets come: as ESP (IP protocol 50, or the content of a UDP datagram of port 4500 that is
// not IKE's), or from their UDP header on.
enum class Framing : std::uint8_t { esp = 0, udp = 1, udp_content = 2 };

// The SAs that receive, by SPI.
class DAEL_API Decapsulator {
  public:
    explicit Decapsulator(SaTable& table);
    Decapsulator(Decapsulator&&) noexcept;
    Decapsulator& operator=(Decapsulator&&) noexcept;
    ~Decapsulator();  // removes its SAs from the table

    // Packets may flow meanwhile. Errors: invalid_argument (options, an SPI that is taken); as
    // SaTable::add.
    Result<> add(const Key& key, const Options& options);
    // One that goes on from where another stood. Where this process has accepted more since then,
    // or otherwise, than the state says, all up to the highest number counts as seen.
    Result<> add(const Key& key, const Options& options, const WindowState& from);
    Result<> remove(std::uint32_t spi) { return remove(spi, nullptr); }
    // `last`, unless null: where it stood in the end.
    Result<> remove(std::uint32_t spi, WindowState* last);
    Result<WindowState> export_state(
        std::uint32_t spi) const;  // what comes afterwards is not in it
    std::size_t size() const;      // SAs

    // Every packet has its verdict: ok, and then it is the payload; or why not. What is not ok, nor
    // ike, holds nothing that was encrypted. Says how many are ok.
    std::size_t decapsulate(std::span<Packet> packets, Framing framing = Framing::esp) noexcept;

    Counters counters() const;                           // of all
    Result<Counters> counters(std::uint32_t spi) const;  // of one SA

    struct DAEL_HIDDEN State;

  private:
    std::unique_ptr<State> state_;
};

}  // namespace dael::esp

// What an ESP packet takes on the wire: sizes, for interfaces' MTUs and for buffers, and the one
// checksum around it.

namespace dael::esp {

// Bytes of the packet that a payload of `payload` bytes becomes, from its UDP header on where the
// SA has ports, else from its SPI on; outer IP headers come on top. `pad_to` as of Packet.
DAEL_API std::size_t packet_size(const Options& options, std::size_t payload,
                                 std::size_t pad_to = 0) noexcept;
// The longest payload whose packet takes no more than `room` bytes: the link's MTU without the
// outer IP header (20 bytes, of IPv6 40). 0 where not even an empty one fits, or nothing else.
DAEL_API std::size_t most_payload(const Options& options, std::size_t room) noexcept;

// Writes the checksum of a UDP datagram, from its header on, that travels over IPv6 (RFC 8200 8.1),
// from these addresses of 16 bytes: what encapsulate() makes has none, which receivers over IPv6
// drop. It goes over all of the packet, so it costs about what a copy of it does. Error:
// invalid_argument (below 8 bytes, above 65,535, or not the length that its header says).
DAEL_API Result<> udp6_checksum(std::span<std::uint8_t> datagram,
                                std::span<const std::uint8_t, 16> source,
                                std::span<const std::uint8_t, 16> destination);

}  // namespace dael::esp
