// SPDX-License-Identifier: Apache-2.0
// What a handshake of the tunnel costs: both ends in one thread, without sockets, with the clock
// set forward in between, so that no limit of rates comes in. Each end's part is everything from
// the first message to two SAs of ESP that are open, and those of sessions before it closed.
//
//     vpn_handshakes [COUNT]
//
// Prints microseconds of the processor for each: the end that begins, and the end that answers;
// the least, the median and the most of ten runs of COUNT / 10.
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <daelstrom/engine.hpp>
#include <daelstrom/esp.hpp>

#include "vpn/handshake/handshakes.hpp"

namespace dael::vpn {
namespace {

constexpr int kRuns = 10;
constexpr std::array<std::uint8_t, 6> kSource{192, 0, 2, 1, 17, 148};

double processor_us() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// As vpn/sessions.cpp does it.
esp::Options options_of(const DirectionKeys& keys) {
    esp::Options options;
    options.spi = keys.spi;
    std::copy_n(keys.salt.data(), options.salt.size(), options.salt.begin());
    options.window = 8192;
    options.quota = 0;
    return options;
}

struct Open {
    esp::Encapsulator sender;
    std::uint32_t receiving;
};

// An end: its handshakes, and what it does when it is told to.
struct End {
    explicit End(Handshakes&& own, SaTable& table)
        : handshakes(std::move(own)), sas(table), opener(table) {}
    Handshakes handshakes;
    SaTable& sas;
    esp::Decapsulator opener;
    std::map<SessionId, Open> sessions;
    SessionId last = kNoSession;
    std::vector<std::uint8_t> out;  // the message that is to be sent
    double spent = 0;               // microseconds

    Result<> drain(const Now& now) {
        out.clear();
        while (const Action* const action = handshakes.next(now)) {
            switch (action->kind) {
                case Action::Kind::reply:
                case Action::Kind::send:
                    out.assign(action->message.begin(), action->message.end());
                    break;
                case Action::Kind::install:
                    DAEL_TRY(install(*action->fresh));
                    last = action->session;
                    break;
                case Action::Kind::remove: {
                    const auto found = sessions.find(action->session);
                    if (found == sessions.end()) break;
                    DAEL_TRY(opener.remove(found->second.receiving));
                    sessions.erase(found);
                    break;
                }
                default:
                    break;
            }
        }
        return {};
    }
    Result<> install(const FreshSession& fresh) {
        DAEL_LET(sending, Key::import(fresh.sending.key.span()));
        DAEL_LET(receiving, Key::import(fresh.receiving.key.span()));
        DAEL_LET(sender, esp::Encapsulator::open(sas, sending, options_of(fresh.sending)));
        DAEL_TRY(opener.add(receiving, options_of(fresh.receiving)));
        sessions.emplace(fresh.id, Open{std::move(sender), fresh.receiving.spi});
        return {};
    }
    template <class Work>
    Result<> timed(Work&& work) {
        const double began = processor_us();
        auto done = work();
        spent += processor_us() - began;
        return done;
    }
};

Result<> shake(End& caller, End& called, Now& now) {
    now.steady += std::chrono::seconds(2);
    now.wall += std::chrono::seconds(2);
    DAEL_TRY(caller.timed([&] {
        caller.handshakes.want(0, now);
        return caller.drain(now);
    }));
    const auto receive = [&now](End& end, const End& from) {
        return end.timed([&]() -> Result<> {
            const Outcome outcome = end.handshakes.receive(from.out, kSource, now);
            if (outcome != Outcome::initiation && outcome != Outcome::response)
                return Error{Code::internal, std::string(describe(outcome))};
            return end.drain(now);
        });
    };
    DAEL_TRY(receive(called, caller));
    DAEL_TRY(receive(caller, called));
    // The first packet of the one that began.
    DAEL_TRY(caller.timed([&] {
        caller.handshakes.sent(0, caller.last, {1, 0, false}, now);
        return caller.drain(now);
    }));
    return called.timed([&] {
        called.handshakes.received(0, called.last, {1, 0, false}, now);
        return called.drain(now);
    });
}

void print(const char* what, std::vector<double> each) {
    std::ranges::sort(each);
    std::printf("%s %.2f %.2f %.2f\n", what, each.front(), (each[4] + each[5]) / 2, each.back());
}

Result<> run(int count) {
    DAEL_LET(engine, Engine::open({.backend = "cpu", .threads = 1, .calibrated = false}));
    const auto table = [&engine] {
        return SaTable::open(engine, {.budget = 1 << 20, .plan = SaTableOptions::Plan::direct});
    };
    DAEL_LET(table_a, table());
    DAEL_LET(table_b, table());
    DAEL_LET(key_a, generate_key());
    DAEL_LET(key_b, generate_key());
    DAEL_LET(handshakes_a, Handshakes::open(key_a));
    DAEL_LET(handshakes_b, Handshakes::open(key_b));
    PeerOptions peer_a, peer_b;
    peer_a.key = handshakes_a.own_key();
    peer_b.key = handshakes_b.own_key();
    DAEL_TRY(handshakes_a.add_peer(peer_b));
    DAEL_TRY(handshakes_b.add_peer(peer_a));
    End a(std::move(handshakes_a), table_a), b(std::move(handshakes_b), table_b);
    Now now{std::chrono::hours(1), std::chrono::hours(24 * 365 * 50)};
    for (int i = 0; i < 20; ++i) DAEL_TRY(shake(a, b, now));
    std::vector<double> caller, called;
    for (int run = 0; run < kRuns; ++run) {
        a.spent = b.spent = 0;
        for (int i = 0; i < count / kRuns; ++i) DAEL_TRY(shake(a, b, now));
        caller.push_back(a.spent / (count / kRuns));
        called.push_back(b.spent / (count / kRuns));
    }
    print("begins", caller);
    print("answers", called);
    return {};
}

}  // namespace
}  // namespace dael::vpn

int main(int argc, char** argv) {
    int count = 2000;
    if (argc == 2) {
        const std::string_view text(argv[1]);
        (void)std::from_chars(text.data(), text.data() + text.size(), count);
    }
    if (argc > 2 || count < 10) {
        std::fprintf(stderr, "usage: vpn_handshakes [COUNT]\n");
        return 2;
    }
    const auto done = dael::vpn::run(count);
    if (!done) std::fprintf(stderr, "vpn_handshakes: %s\n", done.error().message.c_str());
    return done ? 0 : 1;
}
