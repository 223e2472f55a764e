// SPDX-License-Identifier: Apache-2.0
// What is left in memory of secrets: nothing of ephemeral keys once they have served, nothing of
// ESP's once they were handed over, and nothing of any when it is closed. Looked for in all memory
// that this process may write, at every address, and its stack.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "support/bytes.hpp"
#include "support/thorough.hpp"
#include "support/xorshift.hpp"
#include "vpn/handshake/crypto.hpp"
#include "vpn/handshake/handshakes.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using namespace dael::vpn;

constexpr std::uint64_t kMask = 0xa5c3965a3c69f00f;  // so that the search does not find itself

std::uint64_t word(const std::uint8_t* from) {
    std::uint64_t number = 0;
    std::memcpy(&number, from, 8);
    return number ^ kMask;
}

class Secrets {
  public:
    // The middle of it is enough: 8 bytes that nothing else has.
    void add(const char* name, std::span<const std::uint8_t> secret) {
        known_.push_back({name, word(secret.data() + 8)});
    }
    void clear() { known_.clear(); }
    std::size_t size() const { return known_.size(); }

    // The names of those that lie anywhere.
    std::string found() const {
        std::ifstream maps("/proc/self/maps");
        std::string line, names;
        while (std::getline(maps, line)) {
            std::uintptr_t from = 0, to = 0;
            char rights[5] = "";
            if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) < 3)
                continue;
            if (rights[0] != 'r' || rights[1] != 'w') continue;
            for (; from + 8 <= to; ++from) look(reinterpret_cast<const std::uint8_t*>(from), names);
        }
        return names;
    }

  private:
    struct Known {
        const char* name;
        std::uint64_t masked;
    };
    void look(const std::uint8_t* at, std::string& names) const {
        const std::uint64_t there = word(at);
        for (const Known& known : known_)
            if (known.masked == there) names += std::string(known.name) + ", ";
    }
    std::vector<Known> known_;
};

struct Source {
    Xorshift random;
    Secrets* ephemerals;
    static bool fill(void* context, std::span<std::uint8_t> bytes) {
        Source& source = *static_cast<Source*>(context);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(source.random.next());
        if (bytes.size() == kKeySize) source.ephemerals->add("ephemeral", bytes);
        return true;
    }
};

void make_secret(std::uint64_t seed, SecretKey& key) {
    Xorshift random(seed);
    for (std::size_t i = 0; i < kKeySize; ++i)
        key.data()[i] = static_cast<std::uint8_t>(random.next());
}

TEST(HandshakeMemory, HoldsNoSecretThatHasServed) {
    if (kSanitized) GTEST_SKIP() << "sanitizers keep copies of their own";
    Secrets lasting, ephemerals, session;
    {
        SecretKey keys[2], shared;
        make_secret(1, keys[0]);
        make_secret(2, keys[1]);
        make_secret(3, shared);
        lasting.add("private key", keys[0].span());
        lasting.add("private key", keys[1].span());
        lasting.add("shared secret", shared.span());
        ASSERT_NE(lasting.found(), "") << "the search finds what is there";

        Source sources[] = {{Xorshift(7), &ephemerals}, {Xorshift(8), &ephemerals}};
        std::optional<Handshakes> ends[2];
        for (int i = 0; i < 2; ++i) {
            auto opened = Handshakes::open(keys[i], {}, {&Source::fill, &sources[i]});
            ASSERT_TRUE(opened);
            ends[i].emplace(std::move(*opened));
        }
        for (int i = 0; i < 2; ++i) {
            PeerOptions options;
            options.key = ends[1 - i]->own_key();
            options.has_shared = true;
            options.shared = shared;
            ASSERT_TRUE(ends[i]->add_peer(options));
        }
        keys[0].clear();
        keys[1].clear();
        shared.clear();

        const Now now{std::chrono::seconds(10), std::chrono::seconds(1'700'000'000)};
        std::array<std::uint8_t, 156> message{};
        std::size_t size = 0;
        SessionId id[2] = {};
        const auto drain = [&](int which) {
            while (const Action* const action = ends[which]->next(now)) {
                if (!action->message.empty()) {
                    size = action->message.size();
                    std::copy(action->message.begin(), action->message.end(), message.begin());
                }
                if (action->kind != Action::Kind::install) continue;
                id[which] = action->session;
                session.add("key of a session", action->fresh->sending.key.span());
                session.add("key of a session", action->fresh->receiving.key.span());
                EXPECT_NE(session.found(), "");
            }
        };
        ends[0]->want(0, now);
        drain(0);
        ASSERT_EQ(ephemerals.size(), 1u);
        EXPECT_NE(ephemerals.found(), "") << "it is needed still";
        ends[1]->receive(std::span(message).first(size), Bytes(6), now);
        drain(1);
        ends[0]->receive(std::span(message).first(size), Bytes(6), now);
        drain(0);
        ends[1]->received(0, id[1], {1, 1, true}, now);
        drain(1);
        ASSERT_TRUE(id[0] && id[1]);
        EXPECT_EQ(ephemerals.size(), 2u);
        EXPECT_EQ(session.size(), 4u);
        EXPECT_EQ(ephemerals.found(), "");
        EXPECT_EQ(session.found(), "");
        ends[0]->want(0, now);  // another is under way when it is closed
        const Now later{std::chrono::seconds(12), now.wall};
        EXPECT_NE(ends[0]->next(later), nullptr);
        EXPECT_NE(ephemerals.found(), "");
    }
    EXPECT_EQ(lasting.found(), "");
    EXPECT_EQ(ephemerals.found(), "");
    EXPECT_EQ(session.found(), "");
}

}  // namespace
