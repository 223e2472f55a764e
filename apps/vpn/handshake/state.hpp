// SPDX-License-Identifier: Apache-2.0
// What stands behind `Handshakes`: messages in receive.cpp, sessions and timers in sessions.cpp,
// what is said in next.cpp.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "vpn/handshake/locked.hpp"
#include "vpn/handshake/peer.hpp"

namespace dael::vpn {

struct Handshakes::State {
    State(Crypto crypto_, const Policy& policy_, Randomness random_, Time floor);

    // receive.cpp
    Outcome receive(BytesIn datagram, BytesIn source, const Now& now) noexcept;
    bool unknown_spi(BytesIn packet, const Now& now) noexcept;
    bool write_initiation(PeerId id, const Now& now) noexcept;

    // sessions.cpp
    void want(PeerId id, Time now) noexcept;
    void sent(PeerId id, SessionId session, const Traffic& traffic, Time now) noexcept;
    void received(PeerId id, SessionId session, const Traffic& traffic, Time now) noexcept;
    void failed(PeerId id, SessionId session, Time now) noexcept;
    void drop_all(PeerId id) noexcept;
    void begun_by_us(PeerId id, FreshSession&& keys, Time now) noexcept;
    void begun_by_peer(PeerId id, FreshSession&& keys, Time now) noexcept;
    void run_timers(PeerId id, Time now) noexcept;
    Time due(const Peer& peer) const noexcept;

    // next.cpp
    const Action* next(const Now& now) noexcept;
    void enqueue(PeerId id) noexcept;
    void wake(PeerId id) noexcept;  // its timers have changed

    bool in_child() const noexcept;
    void settle() noexcept { handed = FreshSession{}; }
    Peer* peer_at(PeerId id) noexcept {
        return id < peers.size() && peers[id] && !peers[id]->removed ? peers[id].get() : nullptr;
    }

    const std::uint64_t process;
    const Crypto crypto;
    const Randomness random;
    const Policy policy;
    KeyPair own;
    Gate gate;
    std::uint16_t spi_mark = 0;  // the upper half of every SPI that is ours

    std::vector<Locked<Peer>> peers;
    std::map<PublicKey, PeerId> by_key;
    // By peer, close together, to be found quickly by what strangers claim; 0: none.
    std::vector<std::uint32_t> pending_numbers, response_numbers, sending_spis;
    std::vector<PeerId> ready;  // a ring: who has something to say
    std::size_t ready_first = 0, ready_count = 0;
    Time earliest = kNever;  // no timer is due before

    std::uint64_t last_timestamp = 0;  // sent
    SessionId last_session = kNoSession;
    PeerId last_peer = kNoPeer;

    std::array<std::uint8_t, kLargestMessage> reply{}, message{};
    std::size_t reply_size = 0;  // 0: none
    PeerId reply_peer = kNoPeer;
    FreshSession handed;  // what the last action points to
    Action action;

  private:
    std::optional<Outcome> refused(BytesIn message, BytesIn source, Time now) noexcept;
    Outcome initiation(BytesIn message, bool shared, BytesIn source, const Now& now) noexcept;
    Outcome response(BytesIn message, bool shared, BytesIn source, const Now& now) noexcept;
    Outcome cookie_reply(BytesIn message, Time now) noexcept;
    Outcome hint(BytesIn message, Time now) noexcept;
    bool derive(Noise& noise, Role role, std::uint32_t own_spi, std::uint32_t peer_spi,
                FreshSession& keys) noexcept;
    bool new_number(const std::vector<std::uint32_t>& taken, std::uint32_t& number) noexcept;
    bool new_spi(std::uint32_t& spi) noexcept;
    bool new_ephemeral(SecretKey& secret, KeyPair& pair) noexcept;
    const Cookie* cookie_for(const Peer& peer, Time now) const noexcept;

    void drop(PeerId id, Slot& slot) noexcept;
    void confirm(PeerId id, Time now) noexcept;
    void stop_wanting(PeerId id) noexcept;
    void clear_pending(PeerId id) noexcept;
    void use_current(PeerId id, Time now) noexcept;
    Time jitter() noexcept;
    Time rekey_after(const Slot& slot) const noexcept;

    const Action* say(PeerId id, const Now& now) noexcept;
    void release_if_done(PeerId id) noexcept;
};

}  // namespace dael::vpn
