// SPDX-License-Identifier: Apache-2.0
// The handshakes of one end with all of its peers: who they are, which sessions there are, and when
// new ones are made. docs/vpn.md has the protocol, message by message.
//
// No I/O: datagrams and the time are given, and what is to be done is asked for with next(), until
// it has nothing more:
//
//     switch (handshakes.receive(datagram, source, now)) ...       // counters
//     while (const Action* action = handshakes.next(now)) ...      // send, install, use, remove
//     wait until handshakes.next_deadline()
//
// What is promised
// - Keys come from fresh ephemeral keys each time: no two sessions, of this process or another,
//   share a key, so that `fresh_key` of esp::Options is true. All SPIs of the sessions that were
//   installed and not yet removed differ.
// - Strangers cost neither memory nor state: what is not authentic changes nothing but counters and
//   a table of fixed size; at most one message is sent for one that comes, and it is no longer.
// - What was recorded and comes again changes no session that is in use, whatever was restarted
//   meanwhile. After a restart the first of a peer's recorded initiations, since nothing is
//   remembered, is answered and gets a session; nobody can use it, and it goes.
// - At most one session of a peer sends. Those before it receive until they are removed.
//
// Threads: one at a time. Close: at any time; all keys are wiped. fork(): in a child every call
// does nothing (Outcome::fault, no action), since both would have the same keys; it may be closed.
// Memory: with add_peer() alone; keys lie in locked pages that core dumps leave out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <daelstrom/error.hpp>

#include "vpn/handshake/keys.hpp"
#include "vpn/handshake/timers.hpp"

namespace dael::vpn {

// Numbers peers from 0 on, in the order of add_peer(); those of removed ones are not used again.
using PeerId = std::uint32_t;
inline constexpr PeerId kNoPeer = ~PeerId{0};

// What identifies a session to its peer's slots: never used again by one `Handshakes`.
using SessionId = std::uint64_t;
inline constexpr SessionId kNoSession = 0;

struct PeerOptions {
    PublicKey key{};
    // With a pre-shared secret (32 bytes) the pattern is IKpsk2, and IK is refused; without, the
    // other way round.
    bool has_shared = false;
    SecretKey shared{};
    Time keepalive{0};  // a packet at least so often, also with nothing to say; 0: not
};

enum class Role : std::uint8_t { initiator, responder };

// The bytes of one direction's AES-256-GCM in ESP (RFC 4106), and the SPI of its receiver.
struct DirectionKeys {
    SecretKey key;
    Wiped<4> salt;
    std::uint32_t spi = 0;
};

struct FreshSession {
    SessionId id = kNoSession;
    Role role = Role::initiator;
    DirectionKeys sending, receiving;
};

// What is to be done. Pointers and spans hold until the next call of anything.
struct Action {
    enum class Kind : std::uint8_t {
        // Send `message`, an answer, to where the datagram of the last receive() came from. If it
        // begins a session, `install` came before.
        reply,
        // Send `message` to the peer's endpoint, wherever it is thought to be. Without one: drop
        // it.
        send,
        // A session: open both its SAs, with ESN and fresh keys. It receives from now on. If its
        // SPI cannot be opened, say failed().
        install,
        // `session` is the one to send with from now on, and there is none before it any more. If
        // this end began the session (`role`), send a packet at once, data or else a dummy: until
        // that arrives the peer may not send.
        use,
        // Close both SAs of `session`. It may have been the one in use; then there is none.
        remove,
        // Send a dummy packet with `session`, the one in use.
        keepalive,
        // Nobody answered for Policy::give_up: drop what waits for this peer. It is tried again
        // when asked for (want()), and by itself where the peer has PeerOptions::keepalive.
        unreachable,
    };
    Kind kind = Kind::reply;
    PeerId peer = kNoPeer;  // reply: of whom, if that is known
    SessionId session = kNoSession;
    Role role = Role::initiator;  // use
    std::span<const std::uint8_t> message;
    const FreshSession* fresh = nullptr;  // install: wiped with the next call
};

// What became of a datagram. The values are for counters.
enum class Outcome : std::uint8_t {
    initiation,      // authentic: there is an answer and a session
    response,        // authentic: there is a session
    cookie,          // authentic: the next message will have it
    hint,            // the peer has lost the session in use: another is agreed on
    malformed,       // of no type or size that there is
    bad_mac,         // not by somebody who knows our public key
    cookie_asked,    // there is much to do: answered with a cookie
    limited,         // there is much to do, and this address had its share
    unknown_peer,    // a key that is nobody's, or with the wrong pattern
    unknown_number,  // an answer to nothing that is under way
    forged,          // not authentic
    replayed,        // an initiation that is not newer than the last one
    too_soon,        // one that comes too quickly after the last one
    fault,           // libcrypto or randomness failed; a child of fork()
};
inline constexpr std::size_t kOutcomes = 14;
std::string_view describe(Outcome outcome) noexcept;

// Packets of one session that went out, or that were authentic: of a burst, or of many.
struct Traffic {
    std::uint64_t packets = 0, bytes = 0;
    bool data = false;  // any that was not a dummy
};

// What `status` shows of a peer.
struct PeerStatus {
    SessionId in_use = kNoSession;  // of which Role, and since when:
    Role role = Role::initiator;
    Time since = kNever;
    bool under_way = false;        // an initiation of ours waits for its answer
    Time last_handshake = kNever;  // when the last session began to be used (Now::steady)
    std::uint64_t initiations_sent = 0, responses_sent = 0, sessions = 0, given_up = 0;
};

class Handshakes {
  public:
    // `timestamp_floor`: timestamps begin above it (nanoseconds since 1970): what last_timestamp()
    // said before a restart, where that was kept; else a clock that was set back in between makes
    // peers refuse us until it is where it was. Errors: invalid_argument, out_of_memory, internal.
    static Result<Handshakes> open(const SecretKey& own, const Policy& policy = {},
                                   Randomness random = {}, Time timestamp_floor = Time{0});
    Handshakes(Handshakes&&) noexcept;
    Handshakes& operator=(Handshakes&&) noexcept;
    ~Handshakes();

    const PublicKey& own_key() const noexcept;
    // What all SPIs under which this end receives begin with, drawn at its start and never 0: so
    // that what is nobody's can be told without knowing the sessions.
    std::uint16_t spi_mark() const noexcept;
    // Errors: invalid_argument (our own key, one that is there already, one of low order);
    // out_of_memory; internal.
    Result<PeerId> add_peer(const PeerOptions& options);
    // next() has its sessions for removal afterwards. Nothing for a peer that is not there.
    void remove_peer(PeerId peer, const Now& now);
    PeerId find(const PublicKey& key) const noexcept;  // kNoPeer: nobody's

    // Whether what came by UDP is for receive(), and not ESP: the marker of RFC 3948 2.2.
    static bool is_handshake(std::span<const std::uint8_t> datagram) noexcept;
    // `source`: the bytes of the sender's address, 4 or 16, and 2 of its port. Where what the last
    // ones left to do has not been asked for (next()), a peer's messages may be refused (too_soon).
    Outcome receive(std::span<const std::uint8_t> datagram, std::span<const std::uint8_t> source,
                    const Now& now) noexcept;
    // Of the last receive(): who it was, if that is known for sure (initiation, response, cookie).
    PeerId last_peer() const noexcept;
    // An ESP packet came whose SPI is nobody's: perhaps of a session from before a restart. Its
    // sender is told (next() has a `reply`), so that it need not wait for a timer. The packet from
    // its SPI on; false: nothing is said.
    bool unknown_spi(std::span<const std::uint8_t> packet, const Now& now) noexcept;

    // There is something to send, and no session to send it with; or: make a new one now.
    void want(PeerId peer, const Now& now) noexcept;
    // What the data path did with a session. The first that is received under a session which this
    // end did not begin confirms it, and next() says `use`.
    void sent(PeerId peer, SessionId session, const Traffic& traffic, const Now& now) noexcept;
    void received(PeerId peer, SessionId session, const Traffic& traffic, const Now& now) noexcept;
    // The SAs of a session could not be opened, or have ended: it goes, next() says `remove`.
    void failed(PeerId peer, SessionId session, const Now& now) noexcept;

    // The next thing to do, nullptr if there is none. Everything that receive() and the others
    // leave to do comes at once, what timers ask for when their time is there.
    const Action* next(const Now& now) noexcept;
    // When next() may have something by itself (Now::steady), kNever if not. It may be early.
    Time next_deadline() const noexcept;

    Result<PeerStatus> status(PeerId peer) const;
    // The highest timestamp that was sent, for `timestamp_floor`.
    Time last_timestamp() const noexcept;
    bool under_load(const Now& now) const noexcept;

    struct State;
    struct Delete {
        void operator()(State* state) const noexcept;
    };

  private:
    explicit Handshakes(std::unique_ptr<State, Delete> state) noexcept;
    std::unique_ptr<State, Delete> state_;  // in memory of its own: locked.hpp
};

}  // namespace dael::vpn
