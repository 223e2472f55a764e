// SPDX-License-Identifier: Apache-2.0
// Messages, as they come and as they are written. Of each the cheapest checks come first, and what
// can fail comes before anything is changed.
#include <algorithm>

#include "vpn/handshake/state.hpp"

namespace dael::vpn {
namespace {

constexpr std::uint32_t kLowestSpi = 256;                 // RFC 4303 2.1
constexpr Time kBetween = std::chrono::milliseconds(20);  // initiations of a peer, at least
// Timestamps say no more of our clock than this, in nanoseconds: 17 ms.
constexpr std::uint64_t kGrain = std::uint64_t{1} << 24;

PeerId place_of(const std::vector<std::uint32_t>& numbers, std::uint32_t number) noexcept {
    if (number == 0) return kNoPeer;
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    return found == numbers.end() ? kNoPeer : static_cast<PeerId>(found - numbers.begin());
}

Pattern pattern_of(bool shared) noexcept {
    return shared ? Pattern::ik_psk2 : Pattern::ik;
}

}  // namespace

Outcome Handshakes::State::receive(BytesIn datagram, BytesIn source, const Now& now) noexcept {
    const auto type = type_of(datagram);
    if (!type) return Outcome::malformed;
    switch (*type) {
        case MessageType::initiation:
        case MessageType::shared_initiation:
            return initiation(datagram, *type == MessageType::shared_initiation, source, now);
        case MessageType::response:
        case MessageType::shared_response:
            return response(datagram, *type == MessageType::shared_response, source, now);
        case MessageType::cookie_reply:
            return cookie_reply(datagram, now.steady);
        case MessageType::hint:
            return hint(datagram, now.steady);
    }
    return Outcome::malformed;
}

// Why an initiation or a response is not to be computed; nothing: it is.
std::optional<Outcome> Handshakes::State::refused(BytesIn datagram, BytesIn source,
                                                  Time now) noexcept {
    if (!gate.mac1_holds(datagram)) return Outcome::bad_mac;
    switch (gate.admit(crypto, datagram, source, now)) {
        case Gate::Answer::compute:
            return std::nullopt;
        case Gate::Answer::drop:
            return Outcome::limited;
        case Gate::Answer::fault:
            return Outcome::fault;
        case Gate::Answer::ask:
            break;
    }
    const BytesOut to(reply.data(), layout::CookieReply::size);
    if (!gate.write_reply(crypto, datagram, source, now, to)) return Outcome::fault;
    reply_size = to.size();
    reply_peer = kNoPeer;
    return Outcome::cookie_asked;
}

Outcome Handshakes::State::initiation(BytesIn datagram, bool shared, BytesIn source,
                                      const Now& now) noexcept {
    using layout::Initiation;
    using layout::Response;
    if (const auto why = refused(datagram, source, now.steady)) return *why;

    const BytesIn first = datagram.subspan(Initiation::noise, Initiation::noise_size);
    Noise noise;
    PublicKey claimed;
    if (!noise.begin(crypto, pattern_of(shared), bytes_of(kPrologue), own.public_key()) ||
        !noise.read_first_key(crypto, own, first, claimed))
        return Outcome::forged;
    const auto found = by_key.find(claimed);
    if (found == by_key.end()) return Outcome::unknown_peer;
    const PeerId id = found->second;
    Peer& peer = *peers[id];
    if (peer.options.has_shared != shared) return Outcome::unknown_peer;
    std::array<std::uint8_t, Initiation::payload_size> payload;
    if (!noise.read_first_payload(crypto, peer.agreed, first, payload)) return Outcome::forged;

    // It is of this peer. Is it new?
    Timestamp stamp;
    std::copy_n(payload.begin(), stamp.size(), stamp.begin());
    if (stamp <= peer.greatest) return Outcome::replayed;
    if (peer.undelivered() ||
        (peer.last_initiation_in != Time::min() && now.steady - peer.last_initiation_in < kBetween))
        return Outcome::too_soon;
    const std::uint32_t peer_spi = get_u32(payload, stamp.size());
    if (peer_spi < kLowestSpi) return Outcome::malformed;

    // What may fail.
    SecretKey secret;
    KeyPair ephemeral;
    std::uint32_t number = 0, spi = 0;
    FreshSession keys;
    std::array<std::uint8_t, Response::size> answer;
    begin_message(answer, shared ? MessageType::shared_response : MessageType::response);
    if (!new_ephemeral(secret, ephemeral) || !new_number(response_numbers, number) || !new_spi(spi))
        return Outcome::fault;
    put_u32(answer, Response::sender, number);
    put_u32(answer, Response::receiver, get_u32(datagram, Initiation::sender));
    std::array<std::uint8_t, Response::payload_size> own_payload;
    put_u32(own_payload, 0, spi);
    if (!noise.write_second(crypto, claimed, ephemeral, peer.options.shared, own_payload,
                            BytesOut(answer).subspan(Response::noise, Response::noise_size)) ||
        !derive(noise, Role::responder, spi, peer_spi, keys) ||
        !write_macs(crypto, peer.macs, cookie_for(peer, now.steady), answer))
        return Outcome::fault;

    // What may not.
    peer.greatest = stamp;
    peer.last_initiation_in = now.steady;
    peer.response_mac = mac1_of(answer);
    response_numbers[id] = number;
    std::copy(answer.begin(), answer.end(), reply.begin());
    reply_size = answer.size();
    reply_peer = last_peer = id;
    ++peer.status.responses_sent;
    begun_by_peer(id, std::move(keys), now.steady);
    return Outcome::initiation;
}

Outcome Handshakes::State::response(BytesIn datagram, bool shared, BytesIn source,
                                    const Now& now) noexcept {
    using layout::Response;
    const PeerId id = place_of(pending_numbers, get_u32(datagram, Response::receiver));
    if (id == kNoPeer) return Outcome::unknown_number;
    if (const auto why = refused(datagram, source, now.steady)) return *why;
    Peer& peer = *peers[id];
    if (peer.options.has_shared != shared) return Outcome::forged;
    if (peer.undelivered()) return Outcome::too_soon;

    Noise noise = peer.pending.noise;  // a forged one leaves that as it is
    KeyPair ephemeral;
    if (!ephemeral.set(peer.pending.ephemeral)) return Outcome::fault;
    std::array<std::uint8_t, Response::payload_size> payload;
    if (!noise.read_second(crypto, own, ephemeral, peer.options.shared,
                           datagram.subspan(Response::noise, Response::noise_size), payload))
        return Outcome::forged;
    const std::uint32_t peer_spi = get_u32(payload, 0);
    if (peer_spi < kLowestSpi) return Outcome::malformed;
    FreshSession keys;
    if (!derive(noise, Role::initiator, peer.pending.spi, peer_spi, keys)) return Outcome::fault;
    last_peer = id;
    begun_by_us(id, std::move(keys), now.steady);
    return Outcome::response;
}

Outcome Handshakes::State::cookie_reply(BytesIn datagram, Time now) noexcept {
    const std::uint32_t number = get_u32(datagram, layout::CookieReply::receiver);
    PeerId id = place_of(pending_numbers, number);
    const bool to_initiation = id != kNoPeer;
    if (!to_initiation) id = place_of(response_numbers, number);
    if (id == kNoPeer) return Outcome::unknown_number;
    Peer& peer = *peers[id];
    auto& asked_by = to_initiation ? peer.initiation_mac : peer.response_mac;
    if (!asked_by) return Outcome::unknown_number;  // one for each message
    Cookie cookie;
    if (!open_cookie(crypto, peer.macs, *asked_by, datagram, cookie)) return Outcome::forged;
    asked_by.reset();
    peer.cookie = cookie;
    peer.cookie_since = now;
    last_peer = id;
    // With the cookie there is no need to wait, once: where cookies do no good this ends.
    if (to_initiation && peer.wanted && !peer.hurried) {
        peer.hurried = true;
        peer.next_try = now;
        wake(id);
    }
    return Outcome::cookie;
}

Outcome Handshakes::State::hint(BytesIn datagram, Time now) noexcept {
    using layout::Hint;
    const PeerId id = place_of(sending_spis, get_u32(datagram, Hint::spi));
    if (id == kNoPeer) return Outcome::unknown_number;
    Hash mac;
    if (!crypto.hmac(peers[id]->macs.mac.span(), {datagram.first(Hint::mac)}, mac))
        return Outcome::fault;
    if (!same(mac.span().first<kMacSize>(), datagram.subspan(Hint::mac, kMacSize)))
        return Outcome::bad_mac;
    want(id, now);
    return Outcome::hint;
}

// The session in use stays: whoever sends such hints has us make a new one, each second at most.
bool Handshakes::State::unknown_spi(BytesIn packet, const Now& now) noexcept {
    constexpr std::size_t kSmallestEsp = 8 + 8 + 4 + 16;  // RFC 4106, with nothing in it
    static_assert(layout::Hint::size < kSmallestEsp);
    if (packet.size() < kSmallestEsp || get_u32(packet, 0) < kLowestSpi) return false;
    if (!gate.may_hint(now.steady)) return false;
    const BytesOut to(reply.data(), layout::Hint::size);
    begin_message(to, MessageType::hint);
    put_u32(to, layout::Hint::spi, get_u32(packet, 0));
    if (!gate.write_hint_mac(to)) return false;
    reply_size = to.size();
    reply_peer = kNoPeer;
    return true;
}

bool Handshakes::State::write_initiation(PeerId id, const Now& now) noexcept {
    using layout::Initiation;
    Peer& peer = *peers[id];
    pending_numbers[id] = 0;
    peer.pending.clear();

    KeyPair ephemeral;
    std::uint32_t number = 0, spi = 0;
    Pending fresh;
    if (!new_ephemeral(fresh.ephemeral, ephemeral) || !new_number(pending_numbers, number) ||
        !new_spi(spi))
        return false;
    const auto wall = static_cast<std::uint64_t>(std::max(now.wall, Time{0}).count());
    const std::uint64_t time = std::max(wall / kGrain * kGrain, last_timestamp + 1);
    const Timestamp stamp = timestamp_of(time);
    std::array<std::uint8_t, Initiation::payload_size> payload;
    std::copy(stamp.begin(), stamp.end(), payload.begin());
    put_u32(payload, stamp.size(), spi);

    const BytesOut to(message.data(), Initiation::size);
    const bool shared = peer.options.has_shared;
    begin_message(to, shared ? MessageType::shared_initiation : MessageType::initiation);
    put_u32(to, Initiation::sender, number);
    if (!fresh.noise.begin(crypto, pattern_of(shared), bytes_of(kPrologue), peer.options.key) ||
        !fresh.noise.write_first(crypto, own, peer.options.key, peer.agreed, ephemeral, payload,
                                 to.subspan(Initiation::noise, Initiation::noise_size)) ||
        !write_macs(crypto, peer.macs, cookie_for(peer, now.steady), to))
        return false;
    fresh.number = number;
    fresh.spi = spi;
    peer.pending = std::move(fresh);
    peer.initiation_mac = mac1_of(to);
    pending_numbers[id] = number;
    last_timestamp = time;
    ++peer.status.initiations_sent;
    return true;
}

// Keys of ESP: HKDF-SHA256 from Noise's two keys, for each direction of its own, with the hash of
// all that was said as salt, and both SPIs bound in.
bool Handshakes::State::derive(Noise& noise, Role role, std::uint32_t own_spi,
                               std::uint32_t peer_spi, FreshSession& keys) noexcept {
    SecretKey to_responder, to_initiator;
    if (!noise.split(crypto, to_responder, to_initiator)) return false;
    const bool initiator = role == Role::initiator;
    std::array<std::uint8_t, kEspLabel.size() + 8> info;
    std::copy(kEspLabel.begin(), kEspLabel.end(), info.begin());
    put_u32(info, kEspLabel.size(), initiator ? own_spi : peer_spi);
    put_u32(info, kEspLabel.size() + 4, initiator ? peer_spi : own_spi);
    const auto make = [&](const SecretKey& from, std::uint32_t spi, DirectionKeys& to) {
        Wiped<kKeySize + 4> material;
        if (!crypto.hkdf(noise.handshake_hash().span(), from.span(), info, material.span()))
            return false;
        to.key = SecretKey(material.span().first<kKeySize>());
        to.salt = Wiped<4>(material.span().last<4>());
        to.spi = spi;
        return true;
    };
    keys.role = role;
    keys.id = ++last_session;
    return make(initiator ? to_responder : to_initiator, peer_spi, keys.sending) &&
           make(initiator ? to_initiator : to_responder, own_spi, keys.receiving);
}

bool Handshakes::State::new_number(const std::vector<std::uint32_t>& taken,
                                   std::uint32_t& number) noexcept {
    do {
        std::array<std::uint8_t, 4> bytes;
        if (!random(bytes)) return false;
        number = get_u32(bytes, 0);
    } while (number == 0 || place_of(taken, number) != kNoPeer);
    return true;
}

// One that none of our sessions has: those that were removed too, until that was said. (With a mark
// it is above those that are reserved.) False, too, where next to all 65,536 are taken, by some ten
// thousand peers.
bool Handshakes::State::new_spi(std::uint32_t& spi) noexcept {
    const auto taken = [&] {
        const auto has = [&](const Slot& slot) { return slot && slot.keys.receiving.spi == spi; };
        for (const auto& peer : peers) {
            if (!peer) continue;
            if (has(peer->current) || has(peer->previous) || has(peer->next) ||
                (peer->pending.number != 0 && peer->pending.spi == spi))
                return true;
            const std::span gone(peer->gone_spi.data(), peer->gone_count);
            if (std::find(gone.begin(), gone.end(), spi) != gone.end()) return true;
        }
        return false;
    };
    for (int tries = 0; tries < 64; ++tries) {
        std::array<std::uint8_t, 4> bytes;
        if (!random(bytes)) return false;
        spi = std::uint32_t{spi_mark} << 16 | (get_u32(bytes, 0) & 0xffff);
        if (!taken()) return true;
    }
    return false;
}

bool Handshakes::State::new_ephemeral(SecretKey& secret, KeyPair& pair) noexcept {
    return random(secret.span()) && pair.set(secret);
}

const Cookie* Handshakes::State::cookie_for(const Peer& peer, Time now) const noexcept {
    if (peer.cookie_since == Time::min() || now - peer.cookie_since >= kCookieLife) return nullptr;
    return &peer.cookie;
}

}  // namespace dael::vpn
