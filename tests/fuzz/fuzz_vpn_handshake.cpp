// SPDX-License-Identifier: Apache-2.0
// Two ends of the tunnel's handshake, and somebody between them who does with their messages what
// the input says, or makes some up, with MACs that are right or not. Nobody gets a session that the
// other end did not agree to, no key comes twice, nothing is done without an end, and at the end
// both still find each other.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fuzz/fuzz.hpp"
#include "support/xorshift.hpp"
#include "vpn/handshake/cookies.hpp"
#include "vpn/handshake/handshakes.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;
using namespace dael::vpn;

SecretKey secret(std::uint8_t what) {
    SecretKey key;
    std::fill_n(key.data(), kKeySize, what);
    return key;
}

struct End {
    End(std::uint8_t own, std::uint8_t other, bool shared, std::uint64_t seed)
        : random(seed),
          handshakes(value(Handshakes::open(secret(own), policy(), {fill, &random}), "an end")) {
        PeerOptions options;
        options.key = value(public_key(secret(other)), "a key");
        options.has_shared = shared;
        options.shared = secret(99);
        peer = value(handshakes.add_peer(options), "a peer");
    }
    static Policy policy() {
        Policy policy;
        policy.free_per_second = policy.free_burst = 20;
        return policy;
    }
    static bool fill(void* context, std::span<std::uint8_t> bytes) {
        const Bytes some = static_cast<test::Xorshift*>(context)->bytes(bytes.size());
        std::copy(some.begin(), some.end(), bytes.begin());
        return true;
    }
    static Bytes join(const DirectionKeys& keys) {
        Bytes out(keys.key.data(), keys.key.data() + kKeySize);
        out.insert(out.end(), keys.salt.data(), keys.salt.data() + 4);
        out.push_back(static_cast<std::uint8_t>(keys.spi));
        return out;
    }
    // Does what there is to do; messages go to `out`.
    void drain(const Now& now, std::vector<Bytes>& out) {
        int actions = 0;
        while (const Action* const action = handshakes.next(now)) {
            require(++actions < 100, "what is to be done comes to an end");
            switch (action->kind) {
                case Action::Kind::reply:
                case Action::Kind::send:
                    out.emplace_back(action->message.begin(), action->message.end());
                    break;
                case Action::Kind::install: {
                    const Bytes sending = join(action->fresh->sending);
                    require(sends.emplace(action->session, sending).second, "installed once");
                    receives.emplace(join(action->fresh->receiving), action->session);
                    received.insert(join(action->fresh->receiving));
                    require(all.insert(sending).second, "a key that was never there");
                    break;
                }
                case Action::Kind::use:
                    require(sends.contains(action->session), "what is used is installed");
                    used = action->session;
                    break;
                case Action::Kind::remove:
                    require(sends.erase(action->session) == 1, "what is removed was there");
                    std::erase_if(receives,
                                  [&](const auto& one) { return one.second == action->session; });
                    if (used == action->session) used = kNoSession;
                    break;
                case Action::Kind::keepalive:
                    require(action->session == used, "with what is in use");
                    break;
                case Action::Kind::unreachable:
                    break;
            }
        }
        require(sends.size() <= 3, "no more sessions than places");
        require(handshakes.next_deadline() > now.steady, "what is due is done");
    }
    // A packet of the other one's session in use, if it has one that this end knows.
    bool packet_from(const End& other, const Now& now, std::vector<Bytes>& out) {
        if (other.used == kNoSession) return false;
        const auto found = receives.find(other.sends.at(other.used));
        if (found == receives.end()) return false;
        handshakes.received(peer, found->second, {1, 1, true}, now);
        drain(now, out);
        return true;
    }

    test::Xorshift random;
    Handshakes handshakes;
    PeerId peer = kNoPeer;
    std::map<SessionId, Bytes> sends;
    std::map<Bytes, SessionId> receives;
    std::set<Bytes> all, received;  // keys that were ever there
    SessionId used = kNoSession;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    const bool shared = data.ConsumeBool();
    End ends[] = {End(1, 2, shared, 11), End(2, 1, shared, 22)};
    static const Crypto crypto = value(Crypto::open(), "libcrypto");
    static const auto macs = [] {
        std::array<MacKeys, 2> keys;
        for (std::uint8_t i = 0; i < 2; ++i)
            require(keys[i].set(crypto, value(public_key(secret(i + 1)), "a key")), "its MACs");
        return keys;
    }();
    std::vector<Bytes> seen;
    Now now{std::chrono::seconds(100), std::chrono::seconds(1'700'000'000)};
    Bytes source = {10, 0, 0, 1, 1, 1};
    int steps = 0;
    while (data.remaining_bytes() != 0 && ++steps < 200) {
        const std::size_t at = data.ConsumeBool();
        End &end = ends[at], &other = ends[1 - at];
        switch (data.ConsumeIntegralInRange(0, 6)) {
            case 0:
                end.handshakes.want(end.peer, now);
                break;
            case 1:
                now.steady += std::chrono::milliseconds(data.ConsumeIntegral<std::uint16_t>());
                now.wall += std::chrono::milliseconds(data.ConsumeIntegral<std::int32_t>());
                break;
            case 2:  // what was seen, as it was or changed
            case 3: {
                if (seen.empty()) break;
                Bytes message = seen[data.ConsumeIntegralInRange<std::size_t>(0, seen.size() - 1)];
                for (int i = data.ConsumeIntegralInRange(0, 3); i > 1; --i)
                    message[data.ConsumeIntegralInRange<std::size_t>(0, message.size() - 1)] ^=
                        data.ConsumeIntegral<std::uint8_t>();
                if (message.size() >= 100 && data.ConsumeBool())
                    require(write_macs(crypto, macs[at], nullptr, message), "MACs");
                source.back() = data.ConsumeIntegralInRange<std::uint8_t>(1, 2);
                (void)end.handshakes.receive(message, source, now);
                break;
            }
            case 4: {  // anything
                Bytes message(8);
                message[4] = data.ConsumeIntegralInRange<std::uint8_t>(0, 7);
                static constexpr std::size_t kSizes[] = {156, 100, 156, 100, 60, 28, 0, 8};
                const std::size_t want = kSizes[data.ConsumeBool() ? (message[4] + 7u) % 8 : 6];
                const Bytes more = data.ConsumeBytes<std::uint8_t>(
                    want > 8 ? want - 8 : data.ConsumeIntegralInRange<std::size_t>(0, 200));
                message.insert(message.end(), more.begin(), more.end());
                if (want > 8) message.resize(want);
                if (message.size() >= 100 && data.ConsumeBool())
                    require(write_macs(crypto, macs[at], nullptr, message), "MACs");
                const Outcome outcome = end.handshakes.receive(message, source, now);
                require(outcome != Outcome::initiation && outcome != Outcome::response &&
                            outcome != Outcome::cookie && outcome != Outcome::fault,
                        "what is made up is refused");
                break;
            }
            case 5:
                (void)end.packet_from(other, now, seen);
                break;
            default: {
                const Bytes packet = data.ConsumeBytes<std::uint8_t>(
                    data.ConsumeIntegralInRange<std::size_t>(0, 40));
                (void)end.handshakes.unknown_spi(packet, now);
            }
        }
        end.drain(now, seen);
        if (seen.size() > 50) seen.erase(seen.begin(), seen.begin() + 10);
        for (int i = 0; i < 2; ++i) {
            if (ends[i].used == kNoSession) continue;
            require(ends[1 - i].received.contains(ends[i].sends.at(ends[i].used)),
                    "the other end has what this one sends with");
        }
    }
    // The one between goes away.
    std::vector<Bytes> out[2];
    for (int i = 0; i < 400 && !(ends[0].used && ends[1].packet_from(ends[0], now, out[1])); ++i) {
        if (!ends[0].used || i % 20 == 19) ends[0].handshakes.want(ends[0].peer, now);
        for (std::size_t at = 0; at < 2; ++at) ends[at].drain(now, out[at]);
        for (std::size_t at = 0; at < 2; ++at) {
            for (const Bytes& message : std::exchange(out[at], {})) {
                (void)ends[1 - at].handshakes.receive(message, source, now);
                ends[1 - at].drain(now, out[1 - at]);
            }
        }
        now.steady += std::chrono::milliseconds(250);
    }
    require(ends[0].used && ends[1].packet_from(ends[0], now, out[1]), "they find each other");
    return 0;
}
