// SPDX-License-Identifier: Apache-2.0
// Random walks over two or three ends and a network that loses, doubles, delays, reorders, alters
// and repeats what it carries, for as long as it likes; ends are restarted, and their clocks set to
// anything. Held against a model of what must hold whatever happens:
//
// - no key, and no key with an SPI, is given twice: each has one end that sends and one that
//   receives, and these name each other;
// - who sends with a session knows that its peer receives by it, until that one is restarted, or
// the
//   session is too old;
// - what came before, to this end, moves nothing, however it is repeated; what an end was told
//   before it was restarted moves nothing that is in use;
// - once the network does what it should, all ends that want to have a session have it.
#include <algorithm>
#include <deque>
#include <set>

#include "support/thorough.hpp"
#include "support/walks.hpp"
#include "vpn/handshake_fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

struct Parcel {
    std::size_t from, to;
    Wire wire;
    Bytes source;  // of who sent it
};

class HandshakeWalk : public testing::Test {
  protected:
    struct Place {
        SecretKey key;
        std::optional<End> end;
        Time wall{}, floor{};
        std::uint32_t life = 0;     // how often it was restarted
        std::vector<PeerId> peers;  // by place
        std::set<Bytes> heard;      // messages that were taken in this life
        std::set<Bytes> ever;       // and in any
    };
    // Who has which key: as it was installed.
    struct Holder {
        std::size_t place;
        std::uint32_t life, spi;
        SessionId session;
        bool sends;
    };

    void begin(std::uint64_t seed) {
        random_ = Xorshift(seed);
        steady_ = seconds(1000);
        places_ = std::vector<Place>(2 + random_.below(2));
        holders_.clear();
        under_way_.clear();
        recorded_.clear();
        shared_ = random_.below(2);
        policy_ = Policy{};
        if (random_.one_in(3)) policy_.free_per_second = policy_.free_burst = 2;
        if (random_.one_in(3)) policy_.rekey_packets = 20, policy_.reject_packets = 60;
        keepalive_ = random_.one_in(3) ? seconds(25) : Time{0};
        for (std::size_t i = 0; i < places_.size(); ++i) {
            places_[i].key = secret_key(seed * 10 + i);
            places_[i].wall = seconds(1'700'000'000);
        }
        for (std::size_t i = 0; i < places_.size(); ++i) start(i);
    }
    Now now(const Place& place) const { return {steady_, place.wall + steady_}; }

    void start(std::size_t at) {
        Place& place = places_[at];
        if (place.end) place.floor = place.end->handshakes().last_timestamp();
        ++place.life;
        place.heard.clear();
        place.end.emplace(place.key, random_.next(), policy_, place.floor);
        place.peers.assign(places_.size(), kNoPeer);
        installed_.resize(places_.size());
        installed_[at] = 0;
        for (std::size_t i = 0; i < places_.size(); ++i)
            if (i != at)
                place.peers[i] = place.end->add(*public_key(places_[i].key),
                                                shared_ ? &psk_ : nullptr, keepalive_);
    }
    std::size_t place_of(const Place& place, PeerId peer) const {
        return static_cast<std::size_t>(std::find(place.peers.begin(), place.peers.end(), peer) -
                                        place.peers.begin());
    }
    Bytes address(std::size_t place) const {
        return {10, 0, 0, static_cast<std::uint8_t>(place), 1, 1};
    }

    // What an end has said since: onto the network, and into the model. `cause`: where a reply
    // goes.
    void collect(std::size_t at, std::size_t cause) {
        Place& place = places_[at];
        End& end = *place.end;
        while (!end.out.empty()) {
            const Wire wire = end.take();
            const std::size_t to = wire.to == kNoPeer ? cause : place_of(place, wire.to);
            if (to == at || to >= places_.size()) continue;
            under_way_.push_back({at, to, wire, address(at)});
            if (recorded_.size() < 400) recorded_.push_back(under_way_.back());
        }
        check_keys(at);
        check_use(at);
    }
    void check_keys(std::size_t at) {
        Place& place = places_[at];
        End& end = *place.end;
        for (const auto& [id, session] : end.live) {
            if (id <= installed_[at]) continue;
            add_key(session.sending, {at, place.life, session.sending_spi, id, true});
            add_key(session.receiving, {at, place.life, session.receiving_spi, id, false});
        }
        if (!end.live.empty()) installed_[at] = std::max(installed_[at], end.live.rbegin()->first);
    }
    void add_key(const Bytes& key, const Holder& holder) {
        auto& known = holders_[key];
        ASSERT_LT(known.size(), 2u) << "a third one has this key";
        for (const Holder& other : known) {
            ASSERT_NE(other.sends, holder.sends) << "two send, or receive, with one key";
            ASSERT_EQ(other.spi, holder.spi);
            ASSERT_NE(other.place, holder.place) << "an end has a key twice";
        }
        known.push_back(holder);
    }
    void check_use(std::size_t at) {
        Place& place = places_[at];
        for (const auto& [peer, id] : place.end->in_use) {
            const std::size_t other = place_of(place, peer);
            const LiveSession& session = place.end->live.at(id);
            const auto& known = holders_.at(session.sending);
            ASSERT_EQ(known.size(), 2u) << "it sends, and nobody can receive";
            const Holder& receiver = known[0].sends ? known[1] : known[0];
            ASSERT_EQ(receiver.place, other);
        }
    }

    void deliver(const Parcel& parcel, bool altered = false) {
        Place& place = places_[parcel.to];
        End& end = *place.end;
        const auto before = end.in_use;
        const auto live_before = end.live;
        if (!parcel.wire.is_message()) {
            const bool known = end.receive_packet(parcel.wire, now(place));
            if (!known && random_.one_in(2)) {
                Bytes packet(40);
                put_u32(packet, 0, parcel.wire.spi);
                if (end.handshakes().unknown_spi(packet, now(place))) end.drain(now(place));
            }
        } else {
            const Bytes& bytes = parcel.wire.bytes;
            const Outcome outcome = end.receive(bytes, parcel.source, now(place));
            const bool taken = outcome == Outcome::initiation || outcome == Outcome::response ||
                               outcome == Outcome::cookie;
            if (altered) {
                ASSERT_FALSE(outcome == Outcome::response || outcome == Outcome::cookie);
                // MAC2 alone may be altered, and the answer of an initiation's is lost.
            }
            if (taken) {
                ASSERT_TRUE(place.heard.insert(bytes).second)
                    << "the same message was taken twice: " << describe(outcome);
            }
            if (outcome == Outcome::response) {
                ASSERT_FALSE(place.ever.contains(bytes)) << "a response from a former life";
            }
            if (taken) place.ever.insert(bytes);
            // What is in use changes by an answer to what we began in this life, not by what
            // begins.
            if (outcome != Outcome::response) {
                for (const auto& [peer, id] : before) {
                    const auto found = end.in_use.find(peer);
                    ASSERT_TRUE(found == end.in_use.end() || found->second == id)
                        << describe(outcome);
                    // It may have run out in the same call; the message did not do that.
                    if (found == end.in_use.end()) {
                        ASSERT_TRUE(timed_out_);
                    }
                }
            }
        }
        collect(parcel.to, parcel.from);
    }

    void step() {
        timed_out_ = true;
        const std::size_t at = random_.below(places_.size());
        Place& place = places_[at];
        switch (random_.below(16)) {
            case 0: {  // an end wants to send, or does
                std::size_t other = random_.below(places_.size());
                if (other == at) other = (at + 1) % places_.size();
                for (std::size_t i = 1 + random_.below(30); i > 0; --i)
                    place.end->send(place.peers[other], now(place));
                collect(at, at);
                break;
            }
            case 1:
                pass(milliseconds(random_.below(2000)));
                break;
            case 2:
                pass(seconds(random_.below(10)));
                break;
            case 3:
                if (random_.one_in(6)) pass(seconds(random_.below(200)));
                break;
            case 4:
                if (random_.one_in(8)) start(at);
                break;
            case 5:
                if (random_.one_in(4))
                    place.wall = Time(static_cast<Time::rep>(random_.below(1ull << 61)));
                break;
            case 6:  // lost
                if (!under_way_.empty()) under_way_.erase(any_under_way());
                break;
            case 7:  // twice
                if (!under_way_.empty()) deliver(Parcel(*any_under_way()));
                break;
            case 8: {  // altered
                if (under_way_.empty()) break;
                Parcel parcel = *any_under_way();
                if (!parcel.wire.is_message()) break;
                if (parcel.wire.bytes.size() < 100 || !random_.one_in(4)) {
                    const std::size_t byte = random_.below(parcel.wire.bytes.size());
                    parcel.wire.bytes[byte] ^= static_cast<std::uint8_t>(1 + random_.below(255));
                    deliver(parcel, byte + 16 < parcel.wire.bytes.size());
                } else {
                    parcel.wire.bytes.resize(random_.below(parcel.wire.bytes.size()));
                    deliver(parcel, true);
                }
                break;
            }
            case 9: {  // something old, perhaps to somebody else
                if (recorded_.empty()) break;
                Parcel parcel = recorded_[random_.below(recorded_.size())];
                if (random_.one_in(4)) parcel.to = at;
                if (random_.one_in(4)) parcel.source = address(9);
                if (parcel.to != parcel.from) deliver(parcel);
                break;
            }
            default:
                if (!under_way_.empty()) {
                    // Mostly in order.
                    const auto which = random_.one_in(4) ? any_under_way() : under_way_.begin();
                    const Parcel parcel = *which;
                    under_way_.erase(which);
                    deliver(parcel);
                }
        }
        for (std::size_t i = 0; i < places_.size(); ++i) wake(i);
    }
    std::deque<Parcel>::iterator any_under_way() {
        return under_way_.begin() + static_cast<long>(random_.below(under_way_.size()));
    }
    void wake(std::size_t at) {
        Place& place = places_[at];
        if (place.end->handshakes().next_deadline() > steady_) return;
        place.end->drain(now(place));
        collect(at, at);
    }
    void pass(Time time) { steady_ += time; }

    // The network is whole. Who wants a session gets one, and data goes both ways.
    void settle() {
        under_way_.clear();
        for (std::size_t one = 0; one < places_.size(); ++one) {
            for (std::size_t two = 0; two < places_.size(); ++two) {
                if (one == two) continue;
                Place& place = places_[one];
                bool arrived = false;
                for (int i = 0; i < 60 && !arrived; ++i) {
                    place.end->send(place.peers[two], now(place));
                    collect(one, one);
                    while (!under_way_.empty()) {
                        const Parcel parcel = under_way_.front();
                        under_way_.pop_front();
                        if (!parcel.wire.is_message() && parcel.wire.data && parcel.to == two &&
                            parcel.from == one)
                            for (const auto& [id, session] : places_[two].end->live)
                                arrived |= session.receiving == parcel.wire.key;
                        deliver(parcel);
                    }
                    pass(milliseconds(1000));
                    for (std::size_t j = 0; j < places_.size(); ++j) wake(j);
                }
                ASSERT_TRUE(arrived) << one << " to " << two;
            }
        }
    }

    Xorshift random_{1};
    Time steady_{};
    std::vector<Place> places_;
    std::map<Bytes, std::vector<Holder>> holders_;
    std::vector<SessionId> installed_;
    std::deque<Parcel> under_way_;
    std::vector<Parcel> recorded_;
    bool shared_ = false, timed_out_ = false;
    const SecretKey psk_ = secret_key(3);
    Policy policy_;
    Time keepalive_{};
};

TEST_F(HandshakeWalk, HoldsWhateverHappens) {
    std::size_t sessions = 0, restarts = 0;
    for (Walks walks("handshakes", thorough(120u, 12u)); walks.next();) {
        SCOPED_TRACE(walks.text());
        begin(walks.seed());
        for (std::size_t i = 0; i < 600; ++i) {
            walks.step();
            step();
            if (HasFatalFailure() || HasNonfatalFailure()) return;
        }
        settle();
        if (HasFatalFailure() || HasNonfatalFailure()) return;
        sessions += holders_.size() / 2;
        for (const Place& place : places_) restarts += place.life - 1;
    }
    EXPECT_GT(sessions, thorough(1000u, 100u)) << "a walk that goes nowhere";
    EXPECT_GT(restarts, thorough(200u, 20u));
}

}  // namespace
