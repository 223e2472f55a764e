// SPDX-License-Identifier: Apache-2.0
#include "vpn/sessions.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include <daelstrom/engine.hpp>

#include "vpn/aside.hpp"
#include "vpn/path/filter.hpp"

namespace dael::vpn {
namespace {

Time clock_of(clockid_t clock) noexcept {
    timespec t{};
    ::clock_gettime(clock, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// The way of packets is on the processor. Unless somebody asks for it, no keystream is made ahead
// of time: packets come in bursts, and the cipher is a fifth of what one costs (docs/vpn.md).
Result<SaTable> open_table(const std::string& keystream) {
    if (!keystream.empty()) {
        DAEL_LET(engine, Engine::open({.backend = keystream, .threads = 1, .calibrated = false}));
        DAEL_LET(filler, SaFiller::open(engine));
        return SaTable::open(filler, {.plan = SaTableOptions::Plan::ahead});
    }
    auto engine = Engine::open({.backend = "cpu", .threads = 1, .calibrated = false});
    if (!engine) engine = Engine::open({.backend = "openssl", .threads = 1, .calibrated = false});
    if (!engine) return engine.error();
    return SaTable::open(*engine, {.budget = 1 << 20, .plan = SaTableOptions::Plan::direct});
}

esp::Options options_of(const DirectionKeys& keys, bool ahead) {
    esp::Options options;
    options.spi = keys.spi;
    std::copy_n(keys.salt.data(), options.salt.size(), options.salt.begin());
    options.window = 8192;  // a burst of another path's may be late by as many
    if (!ahead) options.quota = 0;
    return options;
}

Policy policy_of(const Config& config) {
    Policy policy;
    if (config.rekey_seconds != 0) policy.rekey_after = std::chrono::seconds(config.rekey_seconds);
    if (config.rekey_packets != 0) policy.rekey_packets = config.rekey_packets;
    if (config.rekey_bytes != 0) policy.rekey_bytes = config.rekey_bytes;
    return policy;
}

}  // namespace

Now now() {
    return {clock_of(CLOCK_BOOTTIME), clock_of(CLOCK_REALTIME)};
}

Result<std::unique_ptr<Sessions>> Sessions::open(Config& config) {
    auto self = std::unique_ptr<Sessions>(new Sessions);
    if (!config.private_key) return Error{Code::internal, "a tunnel without a private key"};
    DAEL_LET(table, open_table(config.keystream));
    self->ahead_ = !config.keystream.empty();
    self->table_.emplace(std::move(table));
    self->opener_.emplace(*self->table_);
    DAEL_LET(handshakes,
             Handshakes::open(*config.private_key, policy_of(config), {}, config.timestamp_floor));
    self->since_ = now().steady;
    self->spi_mark_ = handshakes.spi_mark();
    config.private_key.reset();
    const Aside aside(config);
    if (config.routes)
        for (const path::Prefix& own : config.addresses) self->inside_.add(own, 0);
    self->handshakes_.emplace(std::move(handshakes));
    for (PeerConfig& each : config.peers) {
        PeerOptions options;
        options.key = each.public_key;
        options.has_shared = each.shared_secret.has_value();
        if (each.shared_secret) options.shared = *each.shared_secret;
        options.keepalive = std::chrono::seconds(each.keepalive);
        each.shared_secret.reset();
        DAEL_LET(id, self->handshakes_->add_peer(options));
        if (id != self->peers_.size()) return Error{Code::internal, "a peer has another's number"};
        auto peer = std::make_unique<PeerEnd>();
        peer->route.remote = each.resolved;
        self->peers_.push_back(std::move(peer));
        for (const path::Prefix& prefix : each.allowed) {
            self->allowed_.add(prefix, id);
            if (config.routes && !aside.has(prefix)) self->inside_.add(prefix, id);
        }
    }
    return self;
}

Sessions::~Sessions() {
    spis_.clear();
    sessions_.clear();
    for (const auto& peer : peers_) peer->in_use.reset();  // before the table, as esp.hpp asks
}

Sessions::Way Sessions::way_to(PeerId peer) {
    PeerEnd& to = *peers_[peer];
    const std::lock_guard lock(to.mutex);
    return {to.in_use, to.route};
}

void Sessions::forget_local(PeerId peer, const path::Endpoint& remote) {
    PeerEnd& to = *peers_[peer];
    const std::lock_guard lock(to.mutex);
    if (to.route.remote == remote) to.route = {.remote = remote, .local = {}, .interface = 0};
}

SessionPtr Sessions::by_spi(std::uint32_t spi) {
    const std::lock_guard lock(spis_mutex_);
    const auto found = spis_.find(spi);
    return found == spis_.end() ? nullptr : found->second;
}

void Sessions::wait(PeerId peer, std::span<const esp::Packet> packets, std::uint8_t tos,
                    Outlet& outlet) {
    const std::lock_guard lock(handshakes_mutex_);
    {
        PeerEnd& to = *peers_[peer];
        const std::lock_guard peer_lock(to.mutex);
        for (const esp::Packet& p : packets)
            if (!to.waiting.add({{p.buffer + p.offset, p.size}, tos, p.next_header}))
                to.lost.add_shared(1);
        // Another loop's datagram may have made a session since way_to() had none: then nobody else
        // comes for what waits until the next one.
        if (to.in_use && to.route.remote) {
            const SessionPtr session = to.in_use;
            const Traffic traffic = outlet.send(*session, to.route, to.waiting.items());
            to.waiting.clear();
            if (traffic.packets != 0)
                handshakes_->sent(peer, session->id, traffic, now());
            else
                handshakes_->failed(peer, session->id, now());
        }
    }
    handshakes_->want(peer, now());
    drain(outlet, nullptr);
}

void Sessions::sent(const Session& session, const Traffic& traffic, Outlet& outlet) {
    const std::lock_guard lock(handshakes_mutex_);
    handshakes_->sent(session.peer, session.id, traffic, now());
    drain(outlet, nullptr);
}

void Sessions::received(const Session& session, const Traffic& traffic, const path::Route& route,
                        Outlet& outlet) {
    move(*peers_[session.peer], route);
    const std::lock_guard lock(handshakes_mutex_);
    handshakes_->received(session.peer, session.id, traffic, now());
    drain(outlet, nullptr);
}

void Sessions::failed(const Session& session, Outlet& outlet) {
    const std::lock_guard lock(handshakes_mutex_);
    handshakes_->failed(session.peer, session.id, now());
    drain(outlet, nullptr);
}

void Sessions::handshake(std::span<const std::uint8_t> datagram, const path::Route& from,
                         Outlet& outlet) {
    std::array<std::uint8_t, 18> source;
    const std::size_t size = from.remote.bytes(source);
    const std::lock_guard lock(handshakes_mutex_);
    const Outcome outcome = handshakes_->receive(datagram, std::span(source).first(size), now());
    outcomes_[static_cast<std::size_t>(outcome)].add(1);
    // An initiation may be a recorded one, after a restart: it moves nothing. A response answers
    // what was sent this moment.
    if (const PeerId peer = handshakes_->last_peer();
        outcome == Outcome::response && peer < peers_.size())
        move(*peers_[peer], from);
    drain(outlet, &from);
}

void Sessions::unknown_spi(std::span<const std::uint8_t> packet, const path::Route& from,
                           Outlet& outlet) {
    const std::lock_guard lock(handshakes_mutex_);
    // (A hint that is not to be sent is made all the same: so rarely is it looked whose address
    // that is, however much comes.)
    if (handshakes_->unknown_spi(packet, now()))
        drain(outlet, may_hint(from.remote) ? &from : nullptr);
}

// Sessions of before the start, which hints are for, are over by themselves after a while. Until
// then a peer may be anywhere; later, who is where no peer is gets no answer.
bool Sessions::may_hint(const path::Endpoint& to) const {
    if (now().steady - since_ <= Policy{}.reject_after) return true;
    return std::ranges::any_of(peers_, [&to](const auto& peer) {
        const std::lock_guard lock(peer->mutex);
        return peer->route.remote.address == to.address;
    });
}

std::vector<path::Address> Sessions::guests() const {
    std::vector<path::Address> all;
    for (const auto& peer : peers_) {
        const std::lock_guard lock(peer->mutex);
        const path::Endpoint& remote = peer->route.remote;
        if (remote && std::ranges::find(all, remote.address) == all.end())
            all.push_back(remote.address);
        if (all.size() > path::kMostGuests) break;  // too many, whoever they are
    }
    return all;
}

void Sessions::begin(Outlet& outlet) {
    const std::lock_guard lock(handshakes_mutex_);
    for (PeerId i = 0; i < peers_.size(); ++i) {
        bool reachable = false;
        {
            const std::lock_guard peer_lock(peers_[i]->mutex);
            reachable = static_cast<bool>(peers_[i]->route.remote);
        }
        if (reachable) handshakes_->want(i, now());
    }
    drain(outlet, nullptr);
}

void Sessions::tick(Outlet& outlet) {
    const Time at = clock_of(CLOCK_BOOTTIME);
    if (at - since_ > Policy{}.reject_after) hints_over_.store(true, std::memory_order_relaxed);
    if (at.count() < deadline_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(handshakes_mutex_);
    drain(outlet, nullptr);
}

int Sessions::patience_ms() const noexcept {
    const std::int64_t left =
        deadline_.load(std::memory_order_relaxed) - clock_of(CLOCK_BOOTTIME).count();
    return static_cast<int>(std::clamp<std::int64_t>(left / 1'000'000 + 1, 0, 1000));
}

void Sessions::drain(Outlet& outlet, const path::Route* from) {
    const Now at = now();
    while (const Action* action = handshakes_->next(at)) act(*action, outlet, from, at);
    deadline_.store(std::max(handshakes_->next_deadline(), Time{0}).count(),
                    std::memory_order_relaxed);
    const Time sent = handshakes_->last_timestamp();
    if (timestamp_file_ < 0 || sent == last_timestamp_) return;
    last_timestamp_ = sent;
    char text[32];
    const int size =
        std::snprintf(text, sizeof text, "%020" PRId64 "\n", std::int64_t{sent.count()});
    (void)!::pwrite(timestamp_file_, text, static_cast<std::size_t>(size), 0);
}

void Sessions::act(const Action& action, Outlet& outlet, const path::Route* from, const Now& at) {
    if (action.kind == Action::Kind::reply) {
        if (from) outlet.send(action.message, *from);
        return;
    }
    if (action.peer >= peers_.size()) return;
    switch (action.kind) {
        case Action::Kind::reply:
            return;
        case Action::Kind::send: {
            const Way way = way_to(action.peer);
            if (way.route.remote) outlet.send(action.message, way.route);
            return;
        }
        case Action::Kind::install:
            return install(action, at);
        case Action::Kind::use:
            return use(action, outlet, at);
        case Action::Kind::remove:
            return remove(action);
        case Action::Kind::keepalive: {
            const Way way = way_to(action.peer);
            if (!way.session || !way.route.remote) return;
            const Traffic traffic = outlet.send(*way.session, way.route, {});
            handshakes_->sent(way.session->peer, way.session->id, traffic, at);
            return;
        }
        case Action::Kind::unreachable: {
            PeerEnd& peer = *peers_[action.peer];
            const std::lock_guard lock(peer.mutex);
            peer.lost.add_shared(peer.waiting.items().size());
            peer.waiting.clear();
            return;
        }
    }
}

void Sessions::install(const Action& action, const Now& at) {
    const FreshSession& fresh = *action.fresh;
    const PeerId peer = action.peer;
    const SessionId id = fresh.id;
    auto session = std::make_shared<Session>();
    session->id = id;
    session->peer = peer;
    session->sending_spi = fresh.sending.spi;
    session->receiving_spi = fresh.receiving.spi;
    const auto open = [&]() -> Result<> {
        DAEL_LET(sending, Key::import(fresh.sending.key.span()));
        DAEL_LET(receiving, Key::import(fresh.receiving.key.span()));
        DAEL_LET(sender,
                 esp::Encapsulator::open(*table_, sending, options_of(fresh.sending, ahead_)));
        DAEL_TRY(opener_->add(receiving, options_of(fresh.receiving, ahead_)));
        session->sender.emplace(std::move(sender));
        return {};
    };
    if (!open()) {
        handshakes_->failed(peer, id, at);
        return;
    }
    if (key_log_ >= 0) write_keys(fresh);
    sessions_[id] = session;
    const std::lock_guard lock(spis_mutex_);
    spis_[session->receiving_spi] = std::move(session);
}

void Sessions::use(const Action& action, Outlet& outlet, const Now& at) {
    const auto found = sessions_.find(action.session);
    if (found == sessions_.end()) return;
    const SessionPtr session = found->second;
    PeerEnd& peer = *peers_[action.peer];
    const std::lock_guard lock(peer.mutex);
    peer.in_use = session;
    // Who began has to show that it has the keys, and sends at once.
    if (!peer.route.remote || (action.role == Role::responder && peer.waiting.empty())) return;
    const Traffic traffic = outlet.send(*session, peer.route, peer.waiting.items());
    peer.waiting.clear();
    handshakes_->sent(session->peer, session->id, traffic, at);
}

void Sessions::remove(const Action& action) {
    const auto found = sessions_.find(action.session);
    if (found == sessions_.end()) return;
    const SessionPtr session = std::move(found->second);
    sessions_.erase(found);
    (void)opener_->remove(session->receiving_spi);
    {
        const std::lock_guard lock(spis_mutex_);
        spis_.erase(session->receiving_spi);
    }
    PeerEnd& peer = *peers_[session->peer];
    const std::lock_guard lock(peer.mutex);
    if (peer.in_use == session) peer.in_use.reset();
}

void Sessions::move(PeerEnd& peer, const path::Route& route) {
    const std::lock_guard lock(peer.mutex);
    if (peer.route == route) return;
    // What was sent there would come back as a packet for that peer, to be sealed and sent again.
    // The sender's address is in nobody's seal, so a peer can name any.
    const path::Address& remote = route.remote.address;
    if (inside_.find(remote) != Allowed::kNobody) return peer.refused_moves.add_shared(1);
    if (peer.route.remote && peer.route.remote != route.remote) peer.moves.add_shared(1);
    const bool elsewhere = peer.route.remote.address != remote;
    peer.route = route;
    if (elsewhere) guest_list_.fetch_add(1, std::memory_order_release);
}

// In the form of Wireshark's esp_sa, whose keys are key and salt in one.
void Sessions::write_keys(const FreshSession& fresh) const {
    for (const DirectionKeys* keys : {&fresh.sending, &fresh.receiving}) {
        char line[256];
        int at = std::snprintf(line, sizeof line,
                               "\"IPv4\",\"*\",\"*\",\"0x%08" PRIx32
                               "\",\"AES-GCM with 16 octet ICV [RFC4106]\",\"0x",
                               keys->spi);
        const auto put = [&](std::span<const std::uint8_t> bytes) {
            for (const std::uint8_t byte : bytes)
                at += std::snprintf(line + at, sizeof line - static_cast<std::size_t>(at), "%02x",
                                    byte);
        };
        put(keys->key.span());
        put(keys->salt.span());
        at += std::snprintf(line + at, sizeof line - static_cast<std::size_t>(at),
                            "\",\"NULL\",\"\",\"64-bit\"\n");
        (void)!::write(key_log_, line, static_cast<std::size_t>(at));
        wipe(line, sizeof line);
    }
}

Sessions::PeerReport Sessions::report(PeerId peer) {
    PeerReport report;
    {
        const std::lock_guard lock(handshakes_mutex_);
        if (const auto status = handshakes_->status(peer)) report.handshakes = *status;
    }
    const Way way = way_to(peer);
    report.route = way.route;
    if (way.session) {
        report.sending_spi = way.session->sending_spi;
        report.receiving_spi = way.session->receiving_spi;
    }
    return report;
}

std::array<std::uint64_t, kOutcomes> Sessions::outcomes() const {
    std::array<std::uint64_t, kOutcomes> all{};
    for (std::size_t i = 0; i < kOutcomes; ++i) all[i] = outcomes_[i].get();
    return all;
}

bool Sessions::under_load() {
    const std::lock_guard lock(handshakes_mutex_);
    return handshakes_->under_load(now());
}

}  // namespace dael::vpn
