// SPDX-License-Identifier: Apache-2.0
#include "vpn/handshake/handshakes.hpp"

#include <pthread.h>

#include <atomic>
#include <new>

#include "vpn/handshake/state.hpp"

namespace dael::vpn {
namespace {

// How often this process is a child of fork() of a child of ...
std::atomic<std::uint64_t>& generation() noexcept {
    static std::atomic<std::uint64_t> number{0};
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { number.fetch_add(1, std::memory_order_relaxed); });
    (void)registered;
    return number;
}

Error internal(const char* what) {
    return Error{Code::internal, std::string("OpenSSL cannot compute ") + what};
}

}  // namespace

std::string_view describe(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::initiation:
            return "initiation answered";
        case Outcome::response:
            return "response accepted";
        case Outcome::cookie:
            return "cookie accepted";
        case Outcome::hint:
            return "session lost by the peer";
        case Outcome::malformed:
            return "malformed";
        case Outcome::bad_mac:
            return "bad MAC";
        case Outcome::cookie_asked:
            return "cookie asked for";
        case Outcome::limited:
            return "rate limited";
        case Outcome::unknown_peer:
            return "unknown peer";
        case Outcome::unknown_number:
            return "answer to nothing";
        case Outcome::forged:
            return "forged";
        case Outcome::replayed:
            return "replayed";
        case Outcome::too_soon:
            return "too soon";
        case Outcome::fault:
            return "fault";
    }
    return "unknown";
}

Handshakes::State::State(Crypto crypto_, const Policy& policy_, Randomness random_, Time floor)
    : process(generation().load(std::memory_order_relaxed)),
      crypto(std::move(crypto_)),
      random(random_),
      policy(policy_),
      last_timestamp(static_cast<std::uint64_t>(std::max(floor, Time{0}).count())) {}

bool Handshakes::State::in_child() const noexcept {
    return generation().load(std::memory_order_relaxed) != process;
}

void Handshakes::Delete::operator()(State* state) const noexcept {
    Unlock<State>{}(state);
}

Handshakes::Handshakes(std::unique_ptr<State, Delete> state) noexcept : state_(std::move(state)) {}
Handshakes::Handshakes(Handshakes&&) noexcept = default;
Handshakes& Handshakes::operator=(Handshakes&&) noexcept = default;
Handshakes::~Handshakes() = default;

Result<Handshakes> Handshakes::open(const SecretKey& own, const Policy& policy, Randomness random,
                                    Time timestamp_floor) {
    DAEL_LET(crypto, Crypto::open());
    std::unique_ptr<State, Delete> state(
        make_locked<State>(std::move(crypto), policy, random, timestamp_floor).release());
    if (!state) return Error{Code::out_of_memory, "no memory for the handshake's keys"};
    if (!state->own.set(own)) return internal("X25519");
    if (!state->gate.open(state->crypto, state->own.public_key(), policy, random))
        return internal("HMAC-SHA256");
    while (state->spi_mark == 0) {
        std::array<std::uint8_t, 2> bytes;
        if (!random(bytes)) return internal("random numbers");
        state->spi_mark = static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
    }
    return Handshakes(std::move(state));
}

std::uint16_t Handshakes::spi_mark() const noexcept {
    return state_->spi_mark;
}

const PublicKey& Handshakes::own_key() const noexcept {
    return state_->own.public_key();
}

Result<PeerId> Handshakes::add_peer(const PeerOptions& options) {
    State& state = *state_;
    state.settle();
    if (state.in_child()) return Error{Code::limit, "handshakes do not go on in a child of fork()"};
    if (options.key == state.own.public_key())
        return Error{Code::invalid_argument, "a peer's public key is this end's own"};
    if (state.by_key.contains(options.key))
        return Error{Code::invalid_argument, "two peers have the same public key"};
    auto peer = make_locked<Peer>();
    if (!peer) return Error{Code::out_of_memory, "no memory for a peer's keys"};
    peer->options = options;
    peer->yields = state.own.public_key() < options.key;
    if (!state.crypto.agree(state.own, options.key, peer->agreed))
        return Error{Code::invalid_argument, "a peer's public key is none that anybody has"};
    if (!peer->macs.set(state.crypto, options.key)) return internal("SHA256");
    const auto id = static_cast<PeerId>(state.peers.size());
    try {  // all that may fail, and then what may not
        state.peers.reserve(id + 1);
        state.pending_numbers.reserve(id + 1);
        state.response_numbers.reserve(id + 1);
        state.sending_spis.reserve(id + 1);
        std::vector<PeerId> ring(id + 1);
        for (std::size_t i = 0; i < state.ready_count; ++i)
            ring[i] = state.ready[(state.ready_first + i) % state.ready.size()];
        state.by_key.emplace(options.key, id);
        state.ready = std::move(ring);
        state.ready_first = 0;
    } catch (const std::bad_alloc&) {
        return Error{Code::out_of_memory, "no memory for a peer"};
    }
    state.peers.push_back(std::move(peer));
    state.pending_numbers.push_back(0);
    state.response_numbers.push_back(0);
    state.sending_spis.push_back(0);
    return id;
}

void Handshakes::remove_peer(PeerId id, const Now&) {
    State& state = *state_;
    state.settle();
    Peer* const peer = state.in_child() ? nullptr : state.peer_at(id);
    if (!peer) return;
    state.drop_all(id);
    state.by_key.erase(peer->options.key);
    peer->removed = true;
    if (state.reply_peer == id) state.reply_size = 0;
    state.enqueue(id);  // and then its memory goes
}

PeerId Handshakes::find(const PublicKey& key) const noexcept {
    const auto found = state_->by_key.find(key);
    return found == state_->by_key.end() ? kNoPeer : found->second;
}

bool Handshakes::is_handshake(std::span<const std::uint8_t> datagram) noexcept {
    return datagram.size() >= 4 && get_u32(datagram, 0) == 0;
}

Outcome Handshakes::receive(std::span<const std::uint8_t> datagram,
                            std::span<const std::uint8_t> source, const Now& now) noexcept {
    state_->settle();
    state_->last_peer = kNoPeer;
    if (state_->in_child()) return Outcome::fault;
    return state_->receive(datagram, source, now);
}

PeerId Handshakes::last_peer() const noexcept {
    return state_->last_peer;
}

bool Handshakes::unknown_spi(std::span<const std::uint8_t> packet, const Now& now) noexcept {
    state_->settle();
    return !state_->in_child() && state_->unknown_spi(packet, now);
}

void Handshakes::want(PeerId peer, const Now& now) noexcept {
    state_->settle();
    if (!state_->in_child() && state_->peer_at(peer)) state_->want(peer, now.steady);
}

void Handshakes::sent(PeerId peer, SessionId session, const Traffic& traffic,
                      const Now& now) noexcept {
    state_->settle();
    if (!state_->in_child() && state_->peer_at(peer))
        state_->sent(peer, session, traffic, now.steady);
}

void Handshakes::received(PeerId peer, SessionId session, const Traffic& traffic,
                          const Now& now) noexcept {
    state_->settle();
    if (!state_->in_child() && state_->peer_at(peer))
        state_->received(peer, session, traffic, now.steady);
}

void Handshakes::failed(PeerId peer, SessionId session, const Now& now) noexcept {
    state_->settle();
    if (!state_->in_child() && state_->peer_at(peer)) state_->failed(peer, session, now.steady);
}

const Action* Handshakes::next(const Now& now) noexcept {
    state_->settle();
    return state_->in_child() ? nullptr : state_->next(now);
}

Time Handshakes::next_deadline() const noexcept {
    if (state_->in_child()) return kNever;
    return state_->reply_size != 0 || state_->ready_count != 0 ? Time::min() : state_->earliest;
}

Result<PeerStatus> Handshakes::status(PeerId id) const {
    const Peer* const peer = state_->peer_at(id);
    if (!peer) return Error{Code::invalid_argument, "there is no such peer"};
    PeerStatus status = peer->status;
    status.under_way = peer->wanted;
    if (peer->current) {
        status.in_use = peer->current.keys.id;
        status.role = peer->current.keys.role;
        status.since = peer->current.since;
    }
    return status;
}

Time Handshakes::last_timestamp() const noexcept {
    return Time(static_cast<Time::rep>(state_->last_timestamp));
}

bool Handshakes::under_load(const Now& now) const noexcept {
    return state_->gate.under_load(now.steady);
}

}  // namespace dael::vpn
