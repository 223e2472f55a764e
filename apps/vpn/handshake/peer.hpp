// SPDX-License-Identifier: Apache-2.0
// All that is known of one peer.
#pragma once

#include <array>
#include <optional>

#include "vpn/handshake/cookies.hpp"
#include "vpn/handshake/handshakes.hpp"

namespace dael::vpn {

// One session, in one of a peer's three places.
struct Slot {
    FreshSession keys;  // until they are handed out; its id, role and SPIs stay
    Time since{};
    std::uint64_t packets = 0, bytes = 0;  // sent
    std::uint64_t packets_in = 0, bytes_in = 0;
    bool installed = false;
    bool confirmed = false;  // something authentic came by it

    explicit operator bool() const noexcept { return keys.id != kNoSession; }
};

// An initiation that was sent, and is not answered yet.
struct Pending {
    std::uint32_t number = 0;  // 0: there is none
    std::uint32_t spi = 0;
    SecretKey ephemeral;
    Noise noise;

    void clear() noexcept {
        number = 0;
        ephemeral.clear();
        noise.clear();
    }
};

struct Peer {
    PeerOptions options;
    SecretKey agreed;     // X25519 of both static keys
    MacKeys macs;         // for what is sent to it
    bool yields = false;  // of two initiations that cross, ours is the one that goes
    bool removed = false;

    // What was received.
    Timestamp greatest{};
    Time last_initiation_in = Time::min();

    // What it asks for under load, and the MAC1 of what it may be asking for.
    Cookie cookie;
    Time cookie_since = Time::min();
    std::optional<Mac> initiation_mac, response_mac;

    // `current` sends. `previous` was current before it; `next`, of which the peer is the
    // initiator, becomes current once that one has used it.
    Slot current, previous, next;
    Pending pending;

    // What next() is to say.
    std::array<SessionId, 8> gone{};  // sessions to be removed
    std::array<std::uint32_t, 8> gone_spi{};
    std::size_t gone_count = 0;
    bool say_use = false, say_keepalive = false, say_send = false, say_unreachable = false;
    bool queued = false;

    // Timers; kNever: not running.
    bool wanted = false, hurried = false, yielded = false, answered = false;
    Time wanted_since = kNever, next_try = kNever;
    Time last_initiation = kNever;  // sent
    Time answer_due = kNever;       // data came, and nothing was sent since
    Time silence_due = kNever;      // data was sent, and nothing came since
    Time resume_at = kNever;        // to be tried again by itself
    Time last_sent{};

    PeerStatus status;

    bool has_keepalive() const noexcept { return options.keepalive > Time{0}; }
    bool has_uninstalled() const noexcept {
        return (current && !current.installed) || (previous && !previous.installed) ||
               (next && !next.installed);
    }
    // Something from before that was not asked for.
    bool undelivered() const noexcept { return has_uninstalled() || gone_count > 3; }
};

}  // namespace dael::vpn
