// SPDX-License-Identifier: Apache-2.0
// What is to be done next.
#include <algorithm>

#include "vpn/handshake/state.hpp"

namespace dael::vpn {

void Handshakes::State::enqueue(PeerId id) noexcept {
    if (peers[id]->queued) return;
    peers[id]->queued = true;
    // There is room: the ring is as large as there are peers, and each is in it once.
    ready[(ready_first + ready_count++) % ready.size()] = id;
}

void Handshakes::State::wake(PeerId id) noexcept {
    earliest = std::min(earliest, due(*peers[id]));
}

const Action* Handshakes::State::next(const Now& now) noexcept {
    if (reply_size != 0) {
        // What the answer brings finds its session: another thread may be the one to receive it.
        if (reply_peer != kNoPeer && peers[reply_peer] && peers[reply_peer]->has_uninstalled())
            return say(reply_peer, now);
        action = {};
        action.peer = reply_peer;
        action.message = BytesIn(reply).first(reply_size);
        reply_size = 0;
        return &action;
    }
    if (now.steady >= earliest) {
        earliest = kNever;
        for (PeerId id = 0; id < peers.size(); ++id)
            if (peer_at(id)) run_timers(id, now.steady);
        for (PeerId id = 0; id < peers.size(); ++id)
            if (peer_at(id)) wake(id);
    }
    while (ready_count != 0) {
        const PeerId id = ready[ready_first];
        if (const Action* const said = say(id, now)) return said;
        ready_first = (ready_first + 1) % ready.size();
        --ready_count;
        peers[id]->queued = false;
        release_if_done(id);
    }
    return nullptr;
}

// One thing of this peer's; nullptr: there is nothing more.
const Action* Handshakes::State::say(PeerId id, const Now& now) noexcept {
    Peer& peer = *peers[id];
    action = {};
    action.peer = id;
    for (Slot* const slot : {&peer.previous, &peer.current, &peer.next}) {
        if (!*slot || slot->installed) continue;
        slot->installed = true;
        handed = slot->keys;
        slot->keys.sending.key.clear();
        slot->keys.sending.salt.clear();
        slot->keys.receiving.key.clear();
        slot->keys.receiving.salt.clear();
        action.kind = Action::Kind::install;
        action.session = slot->keys.id;
        action.role = slot->keys.role;
        action.fresh = &handed;
        return &action;
    }
    action.session = peer.current.keys.id;
    action.role = peer.current.keys.role;
    if (std::exchange(peer.say_use, false)) {
        action.kind = Action::Kind::use;
        return &action;
    }
    if (peer.gone_count != 0) {
        action.kind = Action::Kind::remove;
        action.session = peer.gone[--peer.gone_count];
        return &action;
    }
    if (std::exchange(peer.say_keepalive, false)) {
        action.kind = Action::Kind::keepalive;
        return &action;
    }
    action.session = kNoSession;
    if (std::exchange(peer.say_unreachable, false)) {
        action.kind = Action::Kind::unreachable;
        return &action;
    }
    if (!std::exchange(peer.say_send, false)) return nullptr;
    peer.next_try = now.steady + policy.retry + jitter();
    const bool written = write_initiation(id, now);
    // A try that failed, for want of random bytes, counts as one: the timer brings the next.
    peer.last_initiation = now.steady;
    peer.answered = false;
    wake(id);
    if (!written) return nullptr;
    action.kind = Action::Kind::send;
    action.message = BytesIn(message).first(layout::Initiation::size);
    return &action;
}

void Handshakes::State::release_if_done(PeerId id) noexcept {
    if (peers[id]->removed) peers[id].reset();
}

}  // namespace dael::vpn
