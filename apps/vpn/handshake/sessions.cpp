// SPDX-License-Identifier: Apache-2.0
// A peer's sessions, and its timers.
#include <algorithm>

#include "vpn/handshake/state.hpp"

namespace dael::vpn {
namespace {

bool passed(const Slot& slot, std::uint64_t packets, std::uint64_t bytes) noexcept {
    return slot.packets >= packets || slot.bytes >= bytes || slot.packets_in >= packets ||
           slot.bytes_in >= bytes;
}

// One that is handed over leaves nothing behind.
Slot take(Slot& slot) noexcept {
    Slot taken = std::move(slot);
    slot = Slot{};
    return taken;
}

}  // namespace

// Who began a session begins the next one, so that two do not cross; the other end sees to it where
// that one does not.
Time Handshakes::State::rekey_after(const Slot& slot) const noexcept {
    return slot.keys.role == Role::initiator
               ? policy.rekey_after
               : policy.rekey_after + (policy.reject_after - policy.rekey_after) / 2;
}

Time Handshakes::State::jitter() noexcept {
    std::array<std::uint8_t, 4> bytes;
    if (policy.jitter <= Time{0} || !random(bytes)) return Time{0};
    return Time(get_u32(bytes, 0) % static_cast<std::uint64_t>(policy.jitter.count()));
}

void Handshakes::State::drop(PeerId id, Slot& slot) noexcept {
    if (!slot) return;
    Peer& peer = *peers[id];
    if (slot.installed && peer.gone_count < peer.gone.size()) {
        peer.gone[peer.gone_count] = slot.keys.id;
        peer.gone_spi[peer.gone_count++] = slot.keys.receiving.spi;
    }
    if (&slot == &peer.current) {
        sending_spis[id] = 0;
        peer.say_use = peer.say_keepalive = false;
        peer.answer_due = peer.silence_due = kNever;
    }
    slot = Slot{};
    enqueue(id);
}

void Handshakes::State::drop_all(PeerId id) noexcept {
    Peer& peer = *peers[id];
    drop(id, peer.previous);
    drop(id, peer.current);
    drop(id, peer.next);
    clear_pending(id);
    response_numbers[id] = 0;
    peer.say_send = peer.say_unreachable = false;
    peer.wanted = false;
    peer.resume_at = kNever;
}

void Handshakes::State::clear_pending(PeerId id) noexcept {
    pending_numbers[id] = 0;
    peers[id]->pending.clear();
    peers[id]->initiation_mac.reset();
}

void Handshakes::State::stop_wanting(PeerId id) noexcept {
    Peer& peer = *peers[id];
    clear_pending(id);
    peer.wanted = peer.hurried = peer.yielded = peer.say_send = false;
    peer.wanted_since = peer.next_try = peer.resume_at = kNever;
}

void Handshakes::State::want(PeerId id, Time now) noexcept {
    Peer& peer = *peers[id];
    peer.resume_at = kNever;
    if (peer.wanted) return;
    peer.wanted = true;
    peer.hurried = false;
    peer.wanted_since = now;
    peer.next_try = now;
    if (peer.last_initiation != kNever)
        peer.next_try =
            std::max(now, peer.last_initiation + (peer.answered ? policy.again : policy.retry));
    // The peer has begun already, and needs a moment.
    if (peer.next && !peer.next.confirmed && !peer.current)
        peer.next_try = std::max(peer.next_try, peer.next.since + policy.retry);
    wake(id);
}

// The one that is new sends from now on.
void Handshakes::State::use_current(PeerId id, Time now) noexcept {
    Peer& peer = *peers[id];
    stop_wanting(id);
    sending_spis[id] = peer.current.keys.sending.spi;
    peer.say_use = true;
    peer.say_keepalive = false;
    peer.answered = true;
    peer.answer_due = peer.silence_due = kNever;
    peer.last_sent = now;
    peer.status.last_handshake = now;
    ++peer.status.sessions;
    enqueue(id);
    wake(id);
}

void Handshakes::State::begun_by_us(PeerId id, FreshSession&& keys, Time now) noexcept {
    Peer& peer = *peers[id];
    if (peer.current) {
        drop(id, peer.previous);
        peer.previous = take(peer.current);
    }
    peer.current.keys = std::move(keys);
    peer.current.since = now;
    use_current(id, now);
}

// Until the peer has shown by a packet that it has the keys, nothing is sent with them: what came
// might be of somebody who has but our private key, or a recording.
void Handshakes::State::begun_by_peer(PeerId id, FreshSession&& keys, Time now) noexcept {
    Peer& peer = *peers[id];
    drop(id, peer.next);
    peer.next.keys = std::move(keys);
    peer.next.since = now;
    // Both have begun at once. Of the two the one with the smaller public key forgets its own, so
    // that one session comes of it, and tries again later in case the other one's comes to nothing;
    // so does who has not sent its own yet. Once, not each time: after a restart recordings of old
    // initiations may pass for new ones.
    if (peer.wanted && !peer.yielded && (peer.yields || peer.pending.number == 0)) {
        clear_pending(id);
        peer.yielded = true;
        peer.say_send = false;
        peer.next_try = now + policy.retry + jitter();
    }
    enqueue(id);
    wake(id);
}

void Handshakes::State::confirm(PeerId id, Time now) noexcept {
    Peer& peer = *peers[id];
    peer.next.confirmed = true;
    // An older one than what is in use, of two that crossed: it receives, where it is.
    if (peer.current && peer.next.keys.id < peer.current.keys.id) return;
    if (peer.current) {
        drop(id, peer.previous);
        peer.previous = take(peer.current);
    }
    peer.current = take(peer.next);
    use_current(id, now);
}

void Handshakes::State::sent(PeerId id, SessionId session, const Traffic& traffic,
                             Time now) noexcept {
    Peer& peer = *peers[id];
    Slot& slot = peer.current;
    if (!slot || slot.keys.id != session || traffic.packets == 0) return;
    slot.packets += traffic.packets;
    slot.bytes += traffic.bytes;
    peer.last_sent = std::max(peer.last_sent, now);
    peer.answer_due = kNever;
    if (traffic.data && peer.silence_due == kNever)
        peer.silence_due = now + policy.keepalive + policy.retry;
    if (passed(slot, policy.reject_packets, policy.reject_bytes)) {
        drop(id, slot);
        want(id, now);
    } else if (now - slot.since >= rekey_after(slot) ||
               passed(slot, policy.rekey_packets, policy.rekey_bytes)) {
        want(id, now);
    }
    wake(id);
}

void Handshakes::State::received(PeerId id, SessionId session, const Traffic& traffic,
                                 Time now) noexcept {
    if (traffic.packets == 0) return;
    Peer& peer = *peers[id];
    if (peer.next && peer.next.keys.id == session && !peer.next.confirmed) confirm(id, now);
    Slot* const slots[] = {&peer.current, &peer.previous, &peer.next};
    const auto found = std::find_if(std::begin(slots), std::end(slots), [&](const Slot* slot) {
        return *slot && slot->keys.id == session;
    });
    if (found == std::end(slots)) return;
    Slot& slot = **found;
    slot.confirmed = true;
    slot.packets_in += traffic.packets;
    slot.bytes_in += traffic.bytes;
    peer.silence_due = kNever;
    if (traffic.data && peer.answer_due == kNever) peer.answer_due = now + policy.keepalive;
    // An initiator that sends nothing itself has to see to it in time, too.
    const Slot& used = peer.current;
    if (used && ((used.keys.role == Role::initiator &&
                  now - used.since >= policy.reject_after - policy.keepalive - policy.retry) ||
                 passed(used, policy.rekey_packets, policy.rekey_bytes)))
        want(id, now);
    wake(id);
}

void Handshakes::State::failed(PeerId id, SessionId session, Time now) noexcept {
    Peer& peer = *peers[id];
    for (Slot* const slot : {&peer.current, &peer.previous, &peer.next})
        if (*slot && slot->keys.id == session) drop(id, *slot);
    if (!peer.current && peer.has_keepalive()) peer.resume_at = now + policy.retry;
    wake(id);
}

void Handshakes::State::run_timers(PeerId id, Time now) noexcept {
    Peer& peer = *peers[id];
    const bool had = static_cast<bool>(peer.current);
    for (Slot* const slot : {&peer.current, &peer.previous, &peer.next})
        if (*slot && now - slot->since >= policy.reject_after) drop(id, *slot);
    if (had && !peer.current && peer.has_keepalive() && !peer.wanted) peer.resume_at = now;

    if (now >= peer.silence_due) {
        peer.silence_due = kNever;
        want(id, now);
    }
    if (now >= peer.resume_at) want(id, now);
    if (peer.wanted && now - peer.wanted_since >= policy.give_up) {
        stop_wanting(id);
        peer.say_unreachable = true;
        ++peer.status.given_up;
        if (peer.has_keepalive()) peer.resume_at = now + peer.options.keepalive;
    } else if (peer.wanted && now >= peer.next_try) {
        peer.say_send = true;
        peer.next_try = kNever;  // until it is sent, in this call
    }
    const bool answer = now >= peer.answer_due;
    if (answer) peer.answer_due = kNever;
    if (peer.current &&
        (answer || (peer.has_keepalive() && now - peer.last_sent >= peer.options.keepalive))) {
        peer.say_keepalive = true;
        peer.last_sent = now;
    }
    if (peer.say_send || peer.say_unreachable || peer.say_keepalive) enqueue(id);
}

Time Handshakes::State::due(const Peer& peer) const noexcept {
    Time at = std::min({peer.answer_due, peer.silence_due, peer.resume_at});
    for (const Slot* const slot : {&peer.current, &peer.previous, &peer.next})
        if (*slot) at = std::min(at, slot->since + policy.reject_after);
    if (peer.wanted) at = std::min({at, peer.next_try, peer.wanted_since + policy.give_up});
    if (peer.current && peer.has_keepalive())
        at = std::min(at, peer.last_sent + peer.options.keepalive);
    return at;
}

}  // namespace dael::vpn
