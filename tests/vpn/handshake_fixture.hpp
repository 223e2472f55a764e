// SPDX-License-Identifier: Apache-2.0
// Ends of a tunnel with handshakes and nothing else: what one is told to do is done to a model of
// its sessions, which has ESP's rules, and to a list of what goes over the wire.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "support/bytes.hpp"
#include "support/xorshift.hpp"
#include "vpn/handshake/handshakes.hpp"
#include "vpn/handshake/messages.hpp"

namespace dael::test {

using namespace dael::vpn;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline Bytes bytes_of_key(const DirectionKeys& keys) {
    Bytes out(keys.key.data(), keys.key.data() + kKeySize);
    out.insert(out.end(), keys.salt.data(), keys.salt.data() + 4);
    return out;
}

// What goes over the wire: a message of the handshake, or a packet of ESP, sealed with `key`.
struct Wire {
    Bytes bytes;  // a message; a packet has none
    Bytes key;
    std::uint32_t spi = 0;
    bool data = false;
    PeerId to = kNoPeer;  // a reply goes to where its cause came from
    bool is_message() const { return !bytes.empty(); }
};

struct LiveSession {
    PeerId peer = kNoPeer;
    Role role = Role::initiator;
    Bytes sending, receiving;
    std::uint32_t sending_spi = 0, receiving_spi = 0;
};

class End {
  public:
    End(const SecretKey& key, std::uint64_t seed, const Policy& policy = {}, Time floor = Time{0})
        : random_(seed) {
        auto opened = Handshakes::open(key, policy, {&End::fill, this}, floor);
        if (!opened) throw std::runtime_error(opened.error().message);
        handshakes_.emplace(std::move(*opened));
    }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    Handshakes& handshakes() { return *handshakes_; }
    PublicKey key() const { return handshakes_->own_key(); }
    PeerId add(const PublicKey& key, const SecretKey* shared = nullptr, Time keepalive = Time{0}) {
        PeerOptions options;
        options.key = key;
        options.keepalive = keepalive;
        if (shared) {
            options.has_shared = true;
            options.shared = *shared;
        }
        auto added = handshakes_->add_peer(options);
        if (!added) throw std::runtime_error(added.error().message);
        return *added;
    }

    // Everything that is to be done, done. What is to be sent is in `out` afterwards.
    void drain(const Now& now) {
        std::size_t count = 0;
        while (const Action* const action = handshakes_->next(now)) {
            ASSERT_LT(++count, 1000u) << "there is always something more to do";
            actions.push_back(action->kind);
            act(*action, now);
        }
        EXPECT_GT(handshakes_->next_deadline(), now.steady) << "all that is due was done";
    }

    Outcome receive(const Bytes& message, const Bytes& source, const Now& now) {
        const Outcome outcome = handshakes_->receive(message, source, now);
        drain(now);
        return outcome;
    }
    Outcome receive(const Wire& wire, const Now& now) {
        return receive(wire.bytes, Bytes{10, 0, 0, 1, 4, 5}, now);
    }
    // A packet of ESP: whether it was authentic.
    bool receive_packet(const Wire& wire, const Now& now) {
        for (const auto& [id, session] : live) {
            if (session.receiving_spi != wire.spi || session.receiving != wire.key) continue;
            handshakes_->received(session.peer, id, {1, 100, wire.data}, now);
            drain(now);
            return true;
        }
        return false;
    }
    // False: there is nothing to send it with; then one is asked for.
    bool send(PeerId peer, const Now& now, bool data = true) {
        const auto found = in_use.find(peer);
        if (found == in_use.end()) {
            handshakes_->want(peer, now);
            drain(now);
            return false;
        }
        packet(peer, found->second, data, now);
        drain(now);
        return true;
    }
    void want(PeerId peer, const Now& now) {
        handshakes_->want(peer, now);
        drain(now);
    }
    std::optional<SessionId> used(PeerId peer) const {
        const auto found = in_use.find(peer);
        return found == in_use.end() ? std::nullopt : std::optional(found->second);
    }
    const LiveSession& session_in_use(PeerId peer) const { return live.at(in_use.at(peer)); }
    Wire take() {
        if (out.empty()) throw std::runtime_error("nothing was sent");
        Wire wire = out.front();
        out.erase(out.begin());
        return wire;
    }
    std::size_t count(Action::Kind kind) const {
        return static_cast<std::size_t>(std::count(actions.begin(), actions.end(), kind));
    }

    std::vector<Wire> out;
    std::vector<Action::Kind> actions;
    std::map<SessionId, LiveSession> live;
    std::map<PeerId, SessionId> in_use;
    std::vector<Bytes> all_keys;  // that were ever installed here, both directions
    bool no_random = false;
    bool one_spi = false;  // what is drawn after a number is the same each time

  private:
    static bool fill(void* context, std::span<std::uint8_t> bytes) {
        End& end = *static_cast<End*>(context);
        const Bytes some = end.random_.bytes(bytes.size());
        std::copy(some.begin(), some.end(), bytes.begin());
        const bool again = end.drawn_ == 4 && bytes.size() == 4;
        if (again && end.one_spi) std::fill(bytes.begin(), bytes.end(), std::uint8_t{7});
        end.drawn_ = bytes.size();
        return !end.no_random;
    }
    void packet(PeerId peer, SessionId id, bool data, const Now& now) {
        const LiveSession& session = live.at(id);
        out.push_back({{}, session.sending, session.sending_spi, data, peer});
        handshakes_->sent(peer, id, {1, 100, data}, now);
    }
    void act(const Action& action, const Now& now) {
        const auto message = Bytes(action.message.begin(), action.message.end());
        switch (action.kind) {
            case Action::Kind::reply:
            case Action::Kind::send:
                ASSERT_FALSE(message.empty());
                ASSERT_TRUE(Handshakes::is_handshake(message));
                out.push_back({message,
                               {},
                               0,
                               false,
                               action.kind == Action::Kind::send ? action.peer : kNoPeer});
                break;
            case Action::Kind::install: {
                ASSERT_NE(action.fresh, nullptr);
                const FreshSession& fresh = *action.fresh;
                ASSERT_EQ(fresh.id, action.session);
                for (const auto& [id, other] : live)
                    ASSERT_NE(other.receiving_spi, fresh.receiving.spi) << "an SPI twice at once";
                ASSERT_GE(fresh.receiving.spi, 256u);
                ASSERT_GE(fresh.sending.spi, 256u);
                const LiveSession session{action.peer,
                                          fresh.role,
                                          bytes_of_key(fresh.sending),
                                          bytes_of_key(fresh.receiving),
                                          fresh.sending.spi,
                                          fresh.receiving.spi};
                ASSERT_NE(session.sending, session.receiving);
                all_keys.push_back(session.sending);
                all_keys.push_back(session.receiving);
                ASSERT_TRUE(live.emplace(action.session, session).second) << "installed twice";
                break;
            }
            case Action::Kind::use:
                ASSERT_TRUE(live.contains(action.session)) << "used before it was installed";
                ASSERT_EQ(live.at(action.session).peer, action.peer);
                ASSERT_EQ(live.at(action.session).role, action.role);
                in_use[action.peer] = action.session;
                if (action.role == Role::initiator) packet(action.peer, action.session, false, now);
                break;
            case Action::Kind::remove: {
                ASSERT_TRUE(live.contains(action.session)) << "removed, and was not there";
                ASSERT_EQ(live.at(action.session).peer, action.peer);
                live.erase(action.session);
                const auto found = in_use.find(action.peer);
                if (found != in_use.end() && found->second == action.session) in_use.erase(found);
                break;
            }
            case Action::Kind::keepalive:
                ASSERT_EQ(used(action.peer), action.session);
                packet(action.peer, action.session, false, now);
                break;
            case Action::Kind::unreachable:
                break;
        }
    }

    Xorshift random_;
    std::size_t drawn_ = 0;  // bytes, the last time
    std::optional<Handshakes> handshakes_;
};

inline SecretKey secret_key(std::uint64_t seed) {
    const Bytes bytes = Random(seed).bytes(kKeySize);
    SecretKey key;
    std::copy(bytes.begin(), bytes.end(), key.data());
    return key;
}

}  // namespace dael::test
