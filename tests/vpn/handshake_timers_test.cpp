// SPDX-License-Identifier: Apache-2.0
// When handshakes are begun, tried again and given up, when sessions go, who sends keepalives, and
// what is asked of strangers while there is much to do. The time is the test's own.
#include "vpn/handshake/cookies.hpp"
#include "vpn/handshake_fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using Kind = Action::Kind;

class Timers : public testing::Test {
  protected:
    Timers() { open({}); }
    void open(const Policy& policy, Time keepalive = Time{0}) {
        a_.emplace(secret_key(1), 1, policy);
        b_.emplace(secret_key(2), 2, policy);
        a_->add(b_->key(), nullptr, keepalive);
        b_->add(a_->key());
    }
    Now now() const { return {steady_, seconds(1'700'000'000) + steady_}; }
    // As a loop does it that wakes when it should.
    void pass(Time time) {
        const Time end = steady_ + time;
        for (std::size_t turns = 0;; ++turns) {
            ASSERT_LT(turns, 100'000u) << "it wakes without an end";
            const Time next =
                std::min(a_->handshakes().next_deadline(), b_->handshakes().next_deadline());
            if (next > end) break;
            steady_ = std::max(steady_, next);
            a_->drain(now());
            b_->drain(now());
            deliver();
        }
        steady_ = end;
    }
    void deliver() {
        while (!a_->out.empty() || !b_->out.empty()) {
            for (End* const from : {&*a_, &*b_}) {
                End& to = from == &*a_ ? *b_ : *a_;
                while (!from->out.empty()) {
                    const Wire wire = from->take();
                    if (broken_) continue;
                    if (wire.is_message())
                        to.receive(wire, now());
                    else
                        to.receive_packet(wire, now());
                }
            }
        }
    }
    void agree() {
        a_->want(0, now());
        deliver();
        ASSERT_TRUE(a_->used(0) && b_->used(0));
    }
    void send(End& from) {
        from.send(0, now());
        deliver();
    }
    std::uint64_t sent_by(End& end) { return end.handshakes().status(0)->initiations_sent; }

    std::optional<End> a_, b_;
    Time steady_ = seconds(50);
    bool broken_ = false;  // nothing arrives
};

TEST_F(Timers, TriesAgainAndGivesUp) {
    broken_ = true;
    a_->want(0, now());
    EXPECT_EQ(sent_by(*a_), 1u);
    deliver();
    pass(milliseconds(4999));
    EXPECT_EQ(sent_by(*a_), 1u);
    pass(milliseconds(340));
    EXPECT_EQ(sent_by(*a_), 2u);
    for (int i = 0; i < 100; ++i) a_->want(0, now());
    EXPECT_EQ(sent_by(*a_), 2u);
    pass(seconds(84));
    EXPECT_EQ(a_->count(Kind::unreachable), 0u);
    const auto tries = sent_by(*a_);
    EXPECT_GE(tries, 17u);  // 90 / 5.333
    EXPECT_LE(tries, 18u);
    pass(seconds(1));
    EXPECT_EQ(a_->count(Kind::unreachable), 1u);
    pass(seconds(1000));
    EXPECT_EQ(sent_by(*a_), tries) << "quiet until it is asked again";
    EXPECT_EQ(a_->count(Kind::unreachable), 1u);
    EXPECT_FALSE(a_->handshakes().status(0)->under_way);
    broken_ = false;
    agree();
    EXPECT_EQ(sent_by(*a_), tries + 1) << "at once";
}

TEST_F(Timers, JitterIsNotAlwaysTheSame) {
    std::vector<Time> waits;
    broken_ = true;
    a_->want(0, now());
    for (int i = 0; i < 10; ++i) {
        const Time before = steady_, next = a_->handshakes().next_deadline();
        waits.push_back(next - before);
        EXPECT_GE(waits.back(), seconds(5));
        EXPECT_LT(waits.back(), milliseconds(5333));
        pass(next - before);
    }
    EXPECT_NE(*std::min_element(waits.begin(), waits.end()),
              *std::max_element(waits.begin(), waits.end()));
}

TEST_F(Timers, TheInitiatorRekeysWhenItSends) {
    agree();
    const SessionId first = *a_->used(0);
    pass(seconds(119));
    send(*a_);
    EXPECT_EQ(*a_->used(0), first);
    pass(seconds(1));
    send(*a_);
    EXPECT_NE(*a_->used(0), first);
    EXPECT_EQ(a_->live.size(), 2u) << "what is under way still arrives";
    EXPECT_EQ(b_->live.size(), 2u);
    pass(seconds(61));
    EXPECT_EQ(a_->live.size(), 1u);
    EXPECT_EQ(b_->live.size(), 1u);
}

TEST_F(Timers, TheInitiatorRekeysInTimeWhenItOnlyReceives) {
    agree();
    pass(seconds(140));
    send(*b_);
    EXPECT_EQ(sent_by(*a_) + sent_by(*b_), 1u);
    pass(seconds(25));
    send(*b_);
    pass(seconds(1));
    EXPECT_EQ(sent_by(*a_) + sent_by(*b_), 2u);
    EXPECT_EQ(a_->session_in_use(0).sending, b_->session_in_use(0).receiving);
}

// Where the initiator does not, its peer does.
TEST_F(Timers, TheResponderRekeysLater) {
    agree();
    pass(seconds(149));
    b_->send(0, now());
    b_->out.clear();
    pass(seconds(1));
    EXPECT_EQ(sent_by(*b_), 0u);
    send(*b_);
    EXPECT_EQ(sent_by(*b_), 1u);
    EXPECT_EQ(b_->session_in_use(0).role, Role::initiator);
}

TEST_F(Timers, ASessionEndsThatNobodyNeeds) {
    agree();
    pass(milliseconds(179'999));
    EXPECT_TRUE(a_->used(0) && b_->used(0));
    pass(milliseconds(1));
    EXPECT_FALSE(a_->used(0) || b_->used(0));
    EXPECT_TRUE(a_->live.empty() && b_->live.empty());
    pass(seconds(1000));
    EXPECT_EQ(sent_by(*a_) + sent_by(*b_), 1u);
    EXPECT_EQ(a_->handshakes().next_deadline(), kNever);
    send(*b_);
    EXPECT_TRUE(a_->used(0) && b_->used(0)) << "the next packet makes another";
}

TEST_F(Timers, AnswersWhereThereIsNothingToSay) {
    agree();
    pass(seconds(30));
    const std::size_t before = b_->count(Kind::keepalive);
    EXPECT_EQ(a_->count(Kind::keepalive) + before, 0u) << "dummies are not answered";
    send(*a_);
    pass(milliseconds(9999));
    EXPECT_EQ(b_->count(Kind::keepalive), 0u);
    pass(milliseconds(1));
    EXPECT_EQ(b_->count(Kind::keepalive), 1u);
    pass(seconds(60));
    EXPECT_EQ(a_->count(Kind::keepalive) + b_->count(Kind::keepalive), 1u);
    EXPECT_EQ(sent_by(*a_), 1u);
    send(*a_);
    send(*b_);  // is an answer
    pass(milliseconds(9999));
    EXPECT_EQ(b_->count(Kind::keepalive), 1u);
}

TEST_F(Timers, NoticesAPeerThatIsSilent) {
    agree();
    pass(seconds(20));
    broken_ = true;
    send(*a_);
    pass(milliseconds(14'999));
    EXPECT_EQ(sent_by(*a_), 1u);
    pass(milliseconds(1));
    EXPECT_EQ(sent_by(*a_), 2u);
    EXPECT_TRUE(a_->used(0)) << "until there is another";
    broken_ = false;
    pass(seconds(6));
    EXPECT_EQ(a_->session_in_use(0).sending, b_->session_in_use(0).receiving);
    EXPECT_EQ(sent_by(*a_), 3u);
}

TEST_F(Timers, KeepsAPathOpenWhereAskedTo) {
    open({}, seconds(25));
    agree();
    pass(seconds(24));
    EXPECT_EQ(a_->count(Kind::keepalive), 0u);
    pass(seconds(1));
    EXPECT_EQ(a_->count(Kind::keepalive), 1u);
    send(*a_);
    pass(milliseconds(24'999));
    EXPECT_EQ(a_->count(Kind::keepalive), 1u);
    pass(seconds(3600));
    EXPECT_TRUE(a_->used(0) && b_->used(0)) << "and a session there, always";
    EXPECT_GE(a_->count(Kind::keepalive), 140u);
    // The other end is away for an hour: it is tried again by itself.
    broken_ = true;
    pass(seconds(3600));
    EXPECT_FALSE(a_->used(0));
    EXPECT_GE(a_->count(Kind::unreachable), 20u);
    broken_ = false;
    pass(seconds(31));
    EXPECT_TRUE(a_->used(0) && b_->used(0));
}

TEST_F(Timers, RekeysByPacketsAndBytes) {
    for (const bool bytes : {false, true}) {
        Policy policy;
        (bytes ? policy.rekey_bytes : policy.rekey_packets) = 1000;
        (bytes ? policy.reject_bytes : policy.reject_packets) = 2000;
        open(policy);
        steady_ += seconds(10);
        agree();
        const SessionId first = *a_->used(0);
        // After its own dummy: the rest, but one.
        const Traffic some = bytes ? Traffic{1, 899, true} : Traffic{998, 1, true};
        pass(seconds(2));
        a_->handshakes().sent(0, first, some, now());
        a_->drain(now());
        EXPECT_TRUE(a_->out.empty());
        a_->handshakes().sent(0, first, {1, 1, true}, now());
        a_->drain(now());
        EXPECT_EQ(a_->out.size(), 1u);
        a_->out.clear();  // is lost
        a_->handshakes().sent(0, first, {998, 998, true}, now());
        a_->drain(now());
        EXPECT_TRUE(a_->used(0));
        a_->handshakes().sent(0, first, {2, 2, true}, now());
        a_->drain(now());
        EXPECT_FALSE(a_->used(0)) << "it is used up";
        pass(seconds(6));
        EXPECT_TRUE(a_->used(0));
        // What comes counts as well.
        pass(seconds(2));
        const auto before = sent_by(*b_);
        b_->handshakes().received(0, *b_->used(0), {1000, 1000, true}, now());
        b_->drain(now());
        EXPECT_EQ(sent_by(*b_), before + 1);
    }
}

// Two hundred years of it.
TEST_F(Timers, ALongTime) {
    for (int i = 0; i < 200; ++i) {
        send(*a_);
        EXPECT_TRUE(a_->used(0));
        steady_ += seconds(3600l * 24 * 365);
        a_->drain(now());
        b_->drain(now());
        deliver();
    }
}

class Load : public Timers {
  protected:
    Load() {
        policy_.free_per_second = policy_.free_burst = 0;  // always
        open(policy_);
    }
    const Bytes here_ = {10, 0, 0, 1, 0x11, 0x22}, there_ = {10, 0, 0, 2, 0x11, 0x22};
    Policy policy_;
    // The same in each run: two addresses may happen to share a place in the table of rates. With
    // these bytes none of the test's do.
    Xorshift random_{3};
    const Randomness fixed_{[](void* context, std::span<std::uint8_t> bytes) {
                                const Bytes some =
                                    static_cast<Xorshift*>(context)->bytes(bytes.size());
                                std::copy(some.begin(), some.end(), bytes.begin());
                                return true;
                            },
                            &random_};
};

TEST_F(Load, ACookieIsAskedForOnce) {
    EXPECT_TRUE(b_->handshakes().under_load(now()));
    a_->want(0, now());
    const Wire first = a_->take();
    EXPECT_EQ(b_->receive(first.bytes, here_, now()), Outcome::cookie_asked);
    EXPECT_TRUE(b_->live.empty());
    const Wire reply = b_->take();
    EXPECT_EQ(reply.bytes.size(), 60u);
    for (std::size_t at = 0; at < reply.bytes.size(); ++at) {
        Wire changed = reply;
        changed.bytes[at] ^= 1;
        const Outcome outcome = a_->receive(changed, now());
        EXPECT_NE(outcome, Outcome::cookie) << at;
    }
    EXPECT_EQ(a_->receive(reply, now()), Outcome::cookie);
    ASSERT_EQ(a_->out.size(), 1u) << "with it, at once";
    EXPECT_EQ(a_->receive(reply, now()), Outcome::unknown_number);
    const Wire second = a_->take();
    EXPECT_NE(second.bytes, first.bytes);
    EXPECT_EQ(b_->receive(second.bytes, there_, now()), Outcome::cookie_asked)
        << "it is for one address";
    b_->out.clear();
    EXPECT_EQ(b_->receive(second.bytes, here_, now()), Outcome::initiation);
    // The answer is treated alike: it is asked for b's cookie. And b, which did not begin, waits.
    const Wire answer = b_->take();
    EXPECT_EQ(a_->receive(answer.bytes, there_, now()), Outcome::cookie_asked);
    EXPECT_EQ(b_->receive(a_->take(), now()), Outcome::cookie);
    EXPECT_TRUE(b_->out.empty());
}

TEST_F(Load, EverybodyGetsThroughInTheEnd) {
    a_->want(0, now());
    deliver();
    EXPECT_FALSE(a_->used(0));
    pass(seconds(6));
    EXPECT_TRUE(a_->used(0) && b_->used(0));
    EXPECT_LE(sent_by(*a_), 4u);
}

TEST_F(Load, CookiesDoNoGoodWhereTheAddressChanges) {
    a_->want(0, now());
    std::uint8_t port = 0;
    for (int i = 0; i < 20; ++i) {  // each time from another port
        if (a_->out.empty()) pass(milliseconds(5400));
        while (!a_->out.empty())
            b_->receive(a_->take().bytes, Bytes{10, 0, 0, 1, 0, ++port}, now());
        while (!b_->out.empty()) a_->receive(b_->take(), now());
    }
    EXPECT_LE(sent_by(*a_), 42u) << "no storm";
}

TEST_F(Load, ACookieHoldsForItsTime) {
    const auto crypto = Crypto::open();
    Gate gate;
    ASSERT_TRUE(gate.open(*crypto, b_->key(), policy_, fixed_));
    a_->want(0, now());
    Bytes message = a_->take().bytes;
    Bytes reply(60), again(60);
    ASSERT_TRUE(gate.write_reply(*crypto, message, here_, now().steady, reply));
    ASSERT_TRUE(gate.write_reply(*crypto, message, here_, now().steady, again));
    EXPECT_NE(reply, again) << "sealed under another key each time";
    Cookie cookie, same_cookie;
    ASSERT_TRUE(open_cookie(*crypto, gate.own(), mac1_of(message), reply, cookie));
    ASSERT_TRUE(open_cookie(*crypto, gate.own(), mac1_of(message), again, same_cookie));
    EXPECT_EQ(difference(cookie.span(), same_cookie.span()), "");
    ASSERT_TRUE(write_macs(*crypto, gate.own(), &cookie, message));
    const auto admits = [&](BytesIn source) {
        return gate.admit(*crypto, message, source, now().steady) == Gate::Answer::compute;
    };
    EXPECT_TRUE(admits(here_));
    EXPECT_FALSE(admits(there_));
    for (std::size_t at = 0; at < here_.size(); ++at) {
        Bytes other = here_;
        other[at] ^= 1;
        EXPECT_FALSE(admits(other));
    }
    EXPECT_FALSE(admits(BytesIn(here_).first(5)));
    for (std::size_t at = 140; at < 156; ++at) {
        message[at] ^= 1;
        EXPECT_FALSE(admits(here_));
        message[at] ^= 1;
    }
    steady_ += seconds(119);
    EXPECT_TRUE(admits(here_));
    steady_ += seconds(2);  // the secret changes; the one before holds
    EXPECT_TRUE(admits(here_));
    steady_ += seconds(120);
    EXPECT_FALSE(admits(here_));
    steady_ += seconds(3600);
    EXPECT_FALSE(admits(here_));
}

TEST_F(Load, EachAddressHasItsShare) {
    const auto crypto = Crypto::open();
    Gate gate;
    ASSERT_TRUE(gate.open(*crypto, b_->key(), policy_, fixed_));
    a_->want(0, now());
    const Bytes message = a_->take().bytes;
    const auto admitted = [&](const Bytes& source, std::size_t tries) {
        Bytes reply(60), with = message;
        Cookie cookie;
        EXPECT_TRUE(gate.write_reply(*crypto, message, source, steady_, reply) &&
                    open_cookie(*crypto, gate.own(), mac1_of(message), reply, cookie) &&
                    write_macs(*crypto, gate.own(), &cookie, with));
        std::size_t count = 0;
        for (std::size_t i = 0; i < tries; ++i)
            count += gate.admit(*crypto, with, source, steady_) == Gate::Answer::compute;
        return count;
    };
    EXPECT_EQ(admitted(here_, 100), 10u);
    Bytes other_port = here_;
    other_port[5] ^= 9;
    EXPECT_EQ(admitted(other_port, 100), 0u) << "ports are for nothing";
    steady_ += milliseconds(500);
    EXPECT_EQ(admitted(here_, 100), 10u);
    steady_ += milliseconds(100);
    EXPECT_EQ(admitted(here_, 100), 2u);
    EXPECT_EQ(admitted(there_, 100), 10u);
    // IPv6: a network of 64 bits; but IPv4 within IPv6 is addresses.
    Bytes six(18, 7), neighbour = six, elsewhere = six;
    neighbour[15] = 1;
    elsewhere[7] = 1;
    EXPECT_EQ(admitted(six, 100), 10u);
    EXPECT_EQ(admitted(neighbour, 100), 0u);
    EXPECT_EQ(admitted(elsewhere, 100), 10u);
    Bytes mapped(18, 0);
    mapped[10] = mapped[11] = 0xff;
    EXPECT_EQ(admitted(mapped, 100), 10u);
    mapped[15] = 5;
    EXPECT_EQ(admitted(mapped, 100), 10u);
}

// Without a load nobody is asked, and after a burst it is over soon.
TEST_F(Load, ComesAndGoes) {
    policy_.free_per_second = 10;
    policy_.free_burst = 5;
    open(policy_);
    a_->want(0, now());
    Bytes message = a_->take().bytes;
    message[20] ^= 1;
    const auto crypto = Crypto::open();
    MacKeys to_b;
    ASSERT_TRUE(to_b.set(*crypto, b_->key()) && write_macs(*crypto, to_b, nullptr, message));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(b_->receive(message, here_, now()), Outcome::forged);
    EXPECT_EQ(b_->receive(message, here_, now()), Outcome::cookie_asked);
    EXPECT_TRUE(b_->handshakes().under_load(now()));
    steady_ += milliseconds(101);
    EXPECT_EQ(b_->receive(message, here_, now()), Outcome::forged);
    EXPECT_EQ(b_->receive(message, here_, now()), Outcome::cookie_asked);
    steady_ += seconds(1);
    EXPECT_FALSE(b_->handshakes().under_load(now()));
    message[21] ^= 1;  // MAC1 is wrong: that costs nobody a turn
    for (int i = 0; i < 100; ++i) EXPECT_EQ(b_->receive(message, here_, now()), Outcome::bad_mac);
    EXPECT_FALSE(b_->handshakes().under_load(now()));
}

}  // namespace
