// SPDX-License-Identifier: Apache-2.0
// Handshakes between two ends, message by message: who accepts what, what refuses what, and what
// was refused leaves as it was.
#include <malloc.h>

#include "support/child.hpp"
#include "support/thorough.hpp"
#include "vpn/handshake/cookies.hpp"
#include "vpn/handshake_fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using Kind = Action::Kind;

class HandshakeTest : public testing::Test {
  protected:
    explicit HandshakeTest(bool crossed = false) {
        // Whose public key is the smaller one matters where both begin at once.
        const bool smaller = *public_key(secret_key(1)) < *public_key(secret_key(2));
        a_key_ = secret_key(smaller == crossed ? 2 : 1);
        b_key_ = secret_key(smaller == crossed ? 1 : 2);
        make(a_, a_key_, 1);
        make(b_, b_key_, 2);
        join();
    }
    void make(std::optional<End>& end, const SecretKey& key, std::uint64_t seed,
              const Policy& policy = {}, Time floor = Time{0}) {
        end.emplace(key, seed, policy, floor);
    }
    // Each gets to know the other, unless it does.
    void join() {
        join(*a_, *b_);
        join(*b_, *a_);
    }
    void join(End& one, End& other, Time keepalive = Time{0}) {
        if (one.handshakes().find(other.key()) == kNoPeer) {
            ASSERT_EQ(one.add(other.key(), shared() ? &psk_ : nullptr, keepalive), 0u);
        }
    }
    virtual bool shared() const { return false; }

    Now now() const { return {steady_, wall_ + steady_}; }
    void pass(Time time) { steady_ += time; }
    // Until a's session is used by both; with how many messages it was done.
    std::size_t agree(End& one, End& other) {
        one.want(0, now());
        return exchange(one, other);
    }
    std::size_t exchange(End& one, End& other) {
        std::size_t messages = 0;
        while (!one.out.empty() || !other.out.empty()) {
            for (End* const from : {&one, &other}) {
                End& to = from == &one ? other : one;
                while (!from->out.empty()) {
                    const Wire wire = from->take();
                    messages += wire.is_message();
                    if (wire.is_message())
                        to.receive(wire, now());
                    else
                        to.receive_packet(wire, now());
                }
            }
        }
        return messages;
    }
    void expect_shared(End& one, End& other) {
        ASSERT_TRUE(one.used(0) && other.used(0));
        const LiveSession &mine = one.session_in_use(0), &theirs = other.session_in_use(0);
        EXPECT_EQ(mine.sending, theirs.receiving);
        EXPECT_EQ(mine.receiving, theirs.sending);
        EXPECT_EQ(mine.sending_spi, theirs.receiving_spi);
        EXPECT_EQ(mine.receiving_spi, theirs.sending_spi);
        EXPECT_NE(mine.role, theirs.role);
    }
    // Both without sessions: a restart.
    void restart() {
        make(a_, a_key_, ++seed_);
        make(b_, b_key_, ++seed_);
        join();
    }
    Wire initiation(End& from) {
        from.want(0, now());
        return from.take();
    }

    SecretKey a_key_, b_key_;
    const SecretKey psk_ = secret_key(3);
    std::optional<End> a_, b_;
    Time steady_ = seconds(1000), wall_ = seconds(1'700'000'000);
    std::uint64_t seed_ = 100;
};

class BothPatterns : public HandshakeTest, public testing::WithParamInterface<bool> {
  protected:
    BothPatterns() {
        make(a_, a_key_, 1);
        make(b_, b_key_, 2);
        join();
    }
    bool shared() const override { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(, BothPatterns, testing::Bool(), [](const auto& shown) {
    return std::string(shown.param ? "WithSharedSecret" : "WithKeysAlone");
});

TEST_P(BothPatterns, AgreesInOneRoundTrip) {
    a_->want(0, now());
    ASSERT_EQ(a_->out.size(), 1u);
    const Wire first = a_->take();
    EXPECT_EQ(first.bytes.size(), 156u);
    EXPECT_EQ(first.bytes[4], shared() ? 3 : 1);
    EXPECT_EQ(first.to, 0u);
    EXPECT_EQ(b_->receive(first, now()), Outcome::initiation);
    EXPECT_EQ(b_->handshakes().last_peer(), 0u);
    ASSERT_EQ(b_->out.size(), 1u);
    const Wire second = b_->take();
    EXPECT_EQ(second.bytes.size(), 100u);
    EXPECT_EQ(second.bytes[4], shared() ? 4 : 2);
    EXPECT_EQ(second.to, kNoPeer) << "where the initiation came from";
    EXPECT_EQ(b_->live.size(), 1u);
    EXPECT_FALSE(b_->used(0)) << "nobody has shown yet that they have the keys";
    EXPECT_EQ(b_->send(0, now()), false);
    EXPECT_TRUE(b_->out.empty()) << "the other one has begun";

    EXPECT_EQ(a_->receive(second, now()), Outcome::response);
    EXPECT_TRUE(a_->used(0));
    ASSERT_EQ(a_->out.size(), 1u) << "a packet at once";
    const Wire packet = a_->take();
    EXPECT_FALSE(packet.data);
    EXPECT_TRUE(b_->receive_packet(packet, now()));
    EXPECT_TRUE(b_->used(0));
    expect_shared(*a_, *b_);
    EXPECT_EQ(a_->actions, (std::vector{Kind::send, Kind::install, Kind::use}));
    EXPECT_EQ(b_->actions, (std::vector{Kind::install, Kind::reply, Kind::use}));
    EXPECT_EQ(a_->session_in_use(0).role, Role::initiator);
    const auto status = *a_->handshakes().status(0);
    EXPECT_EQ(status.in_use, *a_->used(0));
    EXPECT_EQ(status.sessions, 1u);
    EXPECT_FALSE(status.under_way);
}

TEST_P(BothPatterns, RefusesEveryChangeOfAnInitiation) {
    const Wire first = initiation(*a_);
    for (std::size_t at = 0; at < first.bytes.size(); at += thorough<std::size_t>(1, 5)) {
        Wire changed = first;
        changed.bytes[at] ^= static_cast<std::uint8_t>(1u << at % 8);
        const Outcome outcome = b_->receive(changed, now());
        if (at >= 140)
            EXPECT_EQ(outcome, Outcome::initiation) << "MAC2 is for load";
        else
            EXPECT_EQ(outcome, at < 8 ? Outcome::malformed : Outcome::bad_mac) << at;
        if (at >= 140) restart();
        changed.bytes = first.bytes;
        changed.bytes.resize(at);
        EXPECT_EQ(b_->receive(changed, now()), Outcome::malformed);
        EXPECT_TRUE(b_->live.empty() && b_->out.empty());
    }
    Wire longer = first;
    longer.bytes.push_back(0);
    EXPECT_EQ(b_->receive(longer, now()), Outcome::malformed);
}

// What knows the public key, and so can make MAC1 right.
TEST_P(BothPatterns, RefusesEveryChangeWithTheMacMadeRight) {
    const auto crypto = Crypto::open();
    MacKeys to_a, to_b;
    ASSERT_TRUE(to_a.set(*crypto, a_->key()) && to_b.set(*crypto, b_->key()));
    Wire first = initiation(*a_);
    for (std::size_t at = 8; at < 124; at += thorough<std::size_t>(1, 5)) {
        Wire changed = first;
        changed.bytes[at] ^= static_cast<std::uint8_t>(1u << at % 8);
        ASSERT_TRUE(write_macs(*crypto, to_b, nullptr, changed.bytes));
        if (at < 12) continue;   // the number is not in it: the answer finds nobody
        pass(milliseconds(10));  // not too many at once
        const Outcome outcome = b_->receive(changed, now());
        EXPECT_EQ(outcome, Outcome::forged) << at;
        EXPECT_TRUE(b_->live.empty() && b_->out.empty());
    }
    EXPECT_EQ(b_->receive(first, now()), Outcome::initiation);
    const Wire second = b_->take();
    for (std::size_t at = 8; at < 68; at += thorough<std::size_t>(1, 5)) {
        Wire changed = second;
        changed.bytes[at] ^= static_cast<std::uint8_t>(1u << at % 8);
        ASSERT_TRUE(write_macs(*crypto, to_a, nullptr, changed.bytes));
        if (at < 12) continue;
        const Outcome outcome = a_->receive(changed, now());
        EXPECT_EQ(outcome, at < 16 ? Outcome::unknown_number : Outcome::forged) << at;
        EXPECT_TRUE(a_->live.empty() && a_->out.empty());
        changed.bytes = second.bytes;
        changed.bytes.resize(at);
        EXPECT_EQ(a_->receive(changed, now()), Outcome::malformed);
    }
    EXPECT_EQ(a_->receive(second, now()), Outcome::response) << "forgeries took nothing from it";
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
}

TEST_P(BothPatterns, TakesNothingTwice) {
    const Wire first = initiation(*a_);
    EXPECT_EQ(b_->receive(first, now()), Outcome::initiation);
    const Wire second = b_->take();
    EXPECT_EQ(b_->receive(first, now()), Outcome::replayed);
    EXPECT_EQ(a_->receive(second, now()), Outcome::response);
    EXPECT_EQ(a_->receive(second, now()), Outcome::unknown_number);
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
    const SessionId session = *b_->used(0);
    for (int i = 0; i < 5; ++i) {
        pass(seconds(40));
        a_->send(0, now());
        exchange(*a_, *b_);
        EXPECT_EQ(b_->receive(first, now()), Outcome::replayed);
        EXPECT_EQ(a_->receive(second, now()), Outcome::unknown_number);
    }
    EXPECT_NE(*b_->used(0), session) << "a rekey came in between";
    expect_shared(*a_, *b_);
}

TEST_P(BothPatterns, TakesNothingOlderThanTheLast) {
    const Wire older = initiation(*a_);
    pass(seconds(6));
    a_->drain(now());
    const Wire newer = a_->take();
    EXPECT_EQ(b_->receive(newer, now()), Outcome::initiation);
    EXPECT_EQ(b_->receive(older, now()), Outcome::replayed);
    const Wire answer = b_->take();
    EXPECT_EQ(a_->receive(answer, now()), Outcome::response);
}

TEST_F(HandshakeTest, TakesThePatternThatIsConfiguredAlone) {
    End with(a_key_, 9);
    with.add(b_->key(), &psk_);
    with.want(0, now());
    EXPECT_EQ(b_->receive(with.take(), now()), Outcome::unknown_peer);
    End other(b_key_, 10);
    other.add(a_->key(), &psk_);
    EXPECT_EQ(other.receive(initiation(*a_), now()), Outcome::unknown_peer);
    // With another secret: the second message tells.
    const SecretKey wrong = secret_key(77);
    End third(a_key_, 11);
    third.add(b_->key(), &wrong);
    third.want(0, now());
    EXPECT_EQ(other.receive(third.take(), now()), Outcome::initiation);
    EXPECT_EQ(third.receive(other.take(), now()), Outcome::forged);
    EXPECT_TRUE(third.live.empty());
    EXPECT_FALSE(other.used(0));
}

TEST_F(HandshakeTest, KnowsNobodyElse) {
    End stranger(secret_key(50), 9);
    stranger.add(b_->key());
    stranger.want(0, now());
    const Wire first = stranger.take();
    EXPECT_EQ(b_->receive(first, now()), Outcome::unknown_peer);
    EXPECT_EQ(a_->receive(first, now()), Outcome::bad_mac) << "it is for somebody else";
    EXPECT_TRUE(a_->out.empty() && b_->out.empty());
    // Without the private key, with somebody's name.
    EXPECT_FALSE(b_->handshakes().add_peer({.key = b_->key()}));
    EXPECT_FALSE(b_->handshakes().add_peer({.key = a_->key()}));
    EXPECT_FALSE(b_->handshakes().add_peer({.key = PublicKey{}})) << "of low order";
    EXPECT_EQ(b_->handshakes().find(a_->key()), 0u);
    EXPECT_EQ(b_->handshakes().find(stranger.key()), kNoPeer);
}

TEST_F(HandshakeTest, RefusesWhatIsNoMessage) {
    for (std::size_t size = 0; size < 200; ++size) {
        Bytes zeros(size);
        EXPECT_EQ(b_->receive(zeros, {}, now()), Outcome::malformed) << size;
        for (std::uint8_t type = 1; type < 8 && size > 8; ++type) {
            zeros[4] = type;
            const Outcome outcome = b_->receive(zeros, {}, now());
            EXPECT_TRUE(outcome == Outcome::malformed || outcome == Outcome::bad_mac ||
                        outcome == Outcome::unknown_number)
                << size;
        }
    }
    EXPECT_FALSE(Handshakes::is_handshake(Bytes{0, 0, 0}));
    EXPECT_FALSE(Handshakes::is_handshake(Bytes{0, 0, 1, 0, 1}));
    EXPECT_TRUE(Handshakes::is_handshake(Bytes{0, 0, 0, 0}));
}

// Messages of both cross: one session comes of it, whoever's key is the smaller one.
class Crossing : public HandshakeTest, public testing::WithParamInterface<bool> {
  protected:
    Crossing() : HandshakeTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(, Crossing, testing::Bool());

TEST_P(Crossing, GivesOneSession) {
    const Wire from_a = initiation(*a_), from_b = initiation(*b_);
    EXPECT_EQ(b_->receive(from_a, now()), Outcome::initiation);
    EXPECT_EQ(a_->receive(from_b, now()), Outcome::initiation);
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
    EXPECT_EQ(a_->session_in_use(0).role, GetParam() ? Role::initiator : Role::responder)
        << "of the greater key";
    pass(seconds(60));
    a_->drain(now());
    b_->drain(now());
    EXPECT_TRUE(a_->out.empty() && b_->out.empty()) << "and nobody tries again";
}

TEST_P(Crossing, GivesOneSessionInWhateverOrder) {
    for (std::uint64_t seed = 0; seed < thorough(300u, 60u); ++seed) {
        SCOPED_TRACE(seed);
        restart();
        Xorshift random(seed);
        std::vector<std::pair<End*, Wire>> under_way{{&*b_, initiation(*a_)},
                                                     {&*a_, initiation(*b_)}};
        while (!under_way.empty()) {
            const auto at = under_way.begin() + static_cast<long>(random.below(under_way.size()));
            const auto [to, wire] = *at;
            under_way.erase(at);
            if (wire.is_message())
                to->receive(wire, now());
            else
                to->receive_packet(wire, now());
            while (!a_->out.empty()) under_way.emplace_back(&*b_, a_->take());
            while (!b_->out.empty()) under_way.emplace_back(&*a_, b_->take());
        }
        expect_shared(*a_, *b_);
        pass(seconds(5));
    }
}

TEST_F(HandshakeTest, WaitsWhereTheOtherOneHasBegun) {
    EXPECT_EQ(b_->receive(initiation(*a_), now()), Outcome::initiation);
    b_->take();  // is lost
    EXPECT_FALSE(b_->send(0, now()));
    EXPECT_TRUE(b_->out.empty());
    pass(seconds(6));
    a_->drain(now());
    b_->drain(now());
    EXPECT_EQ(a_->out.size(), 1u);
    EXPECT_EQ(b_->out.size(), 1u);
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
}

// After a restart a recorded initiation cannot be told from a new one; nothing comes of it.
TEST_F(HandshakeTest, RecordingsMoveNothingAfterARestart) {
    std::vector<Wire> recorded;
    for (int i = 0; i < 4; ++i) {
        recorded.push_back(initiation(*a_));
        b_->receive(recorded.back(), now());
        recorded.push_back(b_->take());
        a_->receive(recorded.back(), now());
        recorded.push_back(a_->take());
        b_->receive_packet(recorded.back(), now());
        pass(seconds(121));
    }
    make(b_, b_key_, 77);
    join();
    for (const Wire& wire : recorded) {
        pass(seconds(1));
        if (wire.is_message())
            b_->receive(wire, now());
        else
            EXPECT_FALSE(b_->receive_packet(wire, now()));
        EXPECT_FALSE(b_->used(0));
    }
    EXPECT_EQ(b_->live.size(), 1u) << "at most one waits";
    b_->out.clear();
    // And the real one goes on, from either side.
    EXPECT_FALSE(b_->send(0, now()));
    pass(seconds(6));
    b_->drain(now());
    exchange(*b_, *a_);
    expect_shared(*a_, *b_);
}

TEST_F(HandshakeTest, AClockThatGoesBackDoesNoHarm) {
    agree(*a_, *b_);
    const Time before = a_->handshakes().last_timestamp();
    wall_ -= seconds(3600 * 24 * 365);
    pass(seconds(130));
    a_->send(0, now());
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
    EXPECT_GT(a_->handshakes().last_timestamp(), before);
    // A restart forgets it, unless it was kept.
    make(a_, a_key_, 78);
    join();
    EXPECT_EQ(b_->receive(initiation(*a_), now()), Outcome::replayed);
    pass(seconds(1));
    make(a_, a_key_, 79, {}, before + seconds(200));
    join();
    agree(*a_, *b_);
    expect_shared(*a_, *b_);
    wall_ = Time{0} - steady_ * 2;  // before 1970
    pass(seconds(130));
    a_->send(0, now());
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
}

// A peer that was killed and is back does not know the other one's packets, and says so.
TEST_F(HandshakeTest, AHintBringsALostSessionBackAtOnce) {
    agree(*a_, *b_);
    const std::uint32_t lost = a_->session_in_use(0).sending_spi;
    make(b_, b_key_, 77);
    join();
    Bytes esp(36);
    put_u32(esp, 0, lost);
    EXPECT_FALSE(b_->handshakes().unknown_spi(BytesIn(esp).first(35), now())) << "no ESP packet";
    EXPECT_TRUE(b_->handshakes().unknown_spi(esp, now()));
    b_->drain(now());
    const Wire hint = b_->take();
    EXPECT_EQ(hint.bytes.size(), 28u);
    EXPECT_LT(hint.bytes.size(), esp.size()) << "no more than came";
    for (std::size_t at = 0; at < hint.bytes.size(); ++at) {
        Wire changed = hint;
        changed.bytes[at] ^= 0x10;
        EXPECT_NE(a_->receive(changed, now()), Outcome::hint) << at;
    }
    EXPECT_TRUE(a_->out.empty());
    pass(seconds(1));
    EXPECT_EQ(a_->receive(hint, now()), Outcome::hint);
    EXPECT_TRUE(a_->used(0)) << "a hint takes nothing away";
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
    pass(seconds(1));
    EXPECT_EQ(a_->receive(hint, now()), Outcome::unknown_number) << "it is of the old session";
    // However many packets come: so many hints a second.
    std::size_t hints = 0;
    for (int i = 0; i < 1000; ++i) hints += b_->handshakes().unknown_spi(esp, now());
    EXPECT_LE(hints, Policy{}.hints_per_second + 1);
}

TEST_F(HandshakeTest, HintsBringAtMostOneHandshakeASecond) {
    agree(*a_, *b_);
    for (int i = 0; i < 50; ++i) {  // somebody makes them, who sees the packets
        pass(milliseconds(100));
        Bytes esp(40);
        put_u32(esp, 0, a_->session_in_use(0).sending_spi);
        ASSERT_TRUE(b_->handshakes().unknown_spi(esp, now()));
        exchange(*a_, *b_);
    }
    expect_shared(*a_, *b_);
    EXPECT_LE(a_->handshakes().status(0)->initiations_sent, 7u);
}

TEST_F(HandshakeTest, WithoutRandomBytesNothingIsSaid) {
    const Wire first = initiation(*a_);
    b_->no_random = true;
    EXPECT_EQ(b_->receive(first, now()), Outcome::fault);
    EXPECT_TRUE(b_->live.empty() && b_->out.empty());
    b_->want(0, now());
    EXPECT_TRUE(b_->out.empty());
    b_->no_random = false;
    EXPECT_EQ(b_->receive(first, now()), Outcome::initiation) << "nothing was remembered of it";
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
}

TEST_F(HandshakeTest, WithoutAnSpiThatIsFreeNothingIsSaid) {
    b_->one_spi = true;
    EXPECT_EQ(b_->receive(initiation(*a_), now()), Outcome::initiation);
    b_->out.clear();  // it is lost
    pass(seconds(6));
    a_->drain(now());
    const Wire next = a_->take();
    EXPECT_EQ(b_->receive(next, now()), Outcome::fault);
    EXPECT_TRUE(b_->out.empty());
    b_->one_spi = false;
    EXPECT_EQ(b_->receive(next, now()), Outcome::initiation);
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
}

TEST_F(HandshakeTest, PeersGoWithTheirSessions) {
    agree(*a_, *b_);
    const Wire late = initiation(*b_);
    a_->handshakes().remove_peer(0, now());
    a_->handshakes().remove_peer(0, now());
    a_->handshakes().remove_peer(7, now());
    a_->drain(now());
    EXPECT_TRUE(a_->live.empty());
    EXPECT_TRUE(a_->in_use.empty());
    EXPECT_EQ(a_->receive(late, now()), Outcome::unknown_peer);
    EXPECT_FALSE(a_->handshakes().status(0));
    a_->handshakes().want(0, now());
    a_->handshakes().sent(0, 1, {1, 1, true}, now());
    a_->handshakes().received(0, 1, {1, 1, true}, now());
    a_->handshakes().failed(0, 1, now());
    a_->drain(now());
    pass(seconds(300));
    a_->drain(now());
    EXPECT_EQ(a_->handshakes().next_deadline(), kNever);
    // It comes back as another.
    EXPECT_EQ(a_->add(b_->key()), 1u);
    a_->handshakes().want(1, now());
    a_->drain(now());
    EXPECT_EQ(b_->receive(a_->take(), now()), Outcome::initiation);
}

TEST_F(HandshakeTest, ASessionThatCannotBeOpenedGoes) {
    agree(*a_, *b_);
    const SessionId session = *a_->used(0);
    a_->handshakes().failed(0, session, now());
    a_->drain(now());
    EXPECT_TRUE(a_->live.empty());
    EXPECT_FALSE(a_->used(0));
    pass(seconds(2));
    EXPECT_FALSE(a_->send(0, now()));
    exchange(*a_, *b_);
    expect_shared(*a_, *b_);
}

TEST_F(HandshakeTest, AChildOfForkHasNoPart) {
    const Wire first = initiation(*a_);
    agree(*a_, *b_);
    const Wire fresh = [&] {
        pass(seconds(10));
        return initiation(*b_);
    }();
    expect_in_a_child([&] {
        Handshakes& handshakes = a_->handshakes();
        if (handshakes.receive(fresh.bytes, Bytes(6), now()) != Outcome::fault) return false;
        handshakes.want(0, now());
        pass(seconds(1000));
        if (handshakes.next(now()) || handshakes.next_deadline() != kNever) return false;
        if (handshakes.add_peer({.key = first.bytes.empty() ? PublicKey{} : PublicKey{1}}))
            return false;
        const auto own = Handshakes::open(secret_key(9));  // a new one is its own
        return static_cast<bool>(own);
    });
    EXPECT_EQ(a_->receive(fresh, now()), Outcome::initiation);
}

// A thousand who have begun and do not go on, and garbage of every type: nothing is kept.
TEST_F(HandshakeTest, StrangersCostNoMemory) {
    const auto crypto = Crypto::open();
    MacKeys to_b;
    ASSERT_TRUE(to_b.set(*crypto, b_->key()));
    Xorshift random(5);
    const auto garbage = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            pass(milliseconds(i % 10 == 0));
            const std::size_t sizes[] = {156, 100, 156, 100, 60, 28};
            const std::size_t type = random.below(6);
            Bytes message = random.bytes(sizes[type]);
            std::fill_n(message.begin(), 8, std::uint8_t{0});
            message[4] = static_cast<std::uint8_t>(type + 1);
            if (type < 4 && random.below(4)) {
                ASSERT_TRUE(write_macs(*crypto, to_b, nullptr, message));
            }
            Bytes source = random.bytes(random.below(2) ? 6 : 18);
            const Outcome outcome = b_->handshakes().receive(message, source, now());
            ASSERT_NE(outcome, Outcome::initiation);
            ASSERT_NE(outcome, Outcome::response);
            std::size_t said = 0;
            while (const Action* const action = b_->handshakes().next(now())) {
                ASSERT_EQ(action->kind, Kind::reply);
                ASSERT_LE(action->message.size(), message.size());
                ++said;
            }
            ASSERT_LE(said, 1u);
            ASSERT_EQ(said, outcome == Outcome::cookie_asked);
        }
    };
    garbage(2000);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    const std::size_t before = mallinfo2().uordblks;
    garbage(thorough(20000u, 2000u));
    if (!kSanitized) {
        EXPECT_EQ(mallinfo2().uordblks, before);
    }
#endif
    EXPECT_TRUE(b_->live.empty());
    EXPECT_EQ(b_->handshakes().next_deadline(), kNever);
    pass(seconds(10));
    agree(*a_, *b_);
    expect_shared(*a_, *b_);
}

TEST(HandshakeNames, AreWords) {
    for (std::size_t i = 0; i < kOutcomes; ++i)
        EXPECT_NE(describe(static_cast<Outcome>(i)), "unknown") << i;
    EXPECT_EQ(describe(static_cast<Outcome>(kOutcomes)), "unknown");
    const auto key = generate_key();
    ASSERT_TRUE(key);
    EXPECT_NE(*public_key(*key), *public_key(*generate_key()));
    // RFC 7748 6.1
    const Bytes alice = Bytes{0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1,
                              0x72, 0x51, 0xb2, 0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0,
                              0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9, 0x2c, 0x2a};
    SecretKey secret;
    std::copy(alice.begin(), alice.end(), secret.data());
    const PublicKey expected = {0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54, 0x74, 0x8b, 0x7d,
                                0xdc, 0xb4, 0x3e, 0xf7, 0x5a, 0x0d, 0xbf, 0x3a, 0x0d, 0x26, 0x38,
                                0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e, 0xaa, 0x9b, 0x4e, 0x6a};
    EXPECT_EQ(*public_key(secret), expected);
}

}  // namespace
