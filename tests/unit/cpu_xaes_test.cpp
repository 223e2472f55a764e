// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM of the cpu backend at every level that this machine has: C2SP's vectors, and all
// lengths against AES-256-GCM of OpenSSL's under keys that are derived here by OpenSSL's ECB.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/oracle.hpp"
#include "unit/cpu_aead.hpp"

namespace {

using namespace dael;
using test::AeadCase;
using test::Bytes;

constexpr Cipher kXaes{Mode::xaes256gcm, Direction::encrypt, 16};

// C2SP, "XAES-256-GCM", "Overview".
Bytes derived(const AeadCase& c) {
    const auto cipher = [&](const Bytes& block) {
        return test::oracle(c.key, {Mode::ecb, Direction::encrypt}, block);
    };
    const Bytes l = cipher(Bytes(16));
    Bytes k1(16), key;
    for (std::size_t i = 0; i < 16; ++i)
        k1[i] = static_cast<std::uint8_t>(l[i] << 1 | (i < 15 ? l[i + 1] >> 7 : 0));
    if (l[0] >> 7) k1[15] ^= 0x87;
    for (std::uint8_t number = 1; number <= 2; ++number) {
        Bytes m{0, number, 'X', 0};
        m.insert(m.end(), c.nonce.begin(), c.nonce.begin() + 12);
        for (std::size_t i = 0; i < 16; ++i) m[i] ^= k1[i];
        const Bytes half = cipher(m);
        key.insert(key.end(), half.begin(), half.end());
    }
    return key;
}
AeadCase sealed(AeadCase c) {
    auto made = test::gcm_oracle(derived(c), std::span(c.nonce).subspan(12), c.aad, c.plain);
    c.ciphertext = std::move(made.ciphertext);
    c.tag = std::move(made.tag);
    return c;
}

class CpuXaes : public test::CpuAead {
  protected:
    Make make() {
        return [this](std::size_t size, std::size_t aad_size) {
            return sealed({random_.bytes(32),
                           random_.bytes(24),
                           random_.bytes(aad_size),
                           random_.bytes(size),
                           {},
                           {}});
        };
    }
};

Bytes bytes(const std::string& text) {
    return Bytes(text.begin(), text.end());
}

TEST_P(CpuXaes, GivesTheVectorsOfTheDocument) {
    const Bytes nonce = bytes("ABCDEFGHIJKLMNOPQRSTUVWX"), plain = bytes("XAES-256-GCM");
    AeadCase low{Bytes(32, 1), nonce, {}, plain, {}, {}};
    low.ciphertext = {0xce, 0x54, 0x6e, 0xf6, 0x3c, 0x9c, 0xc6, 0x07, 0x65, 0x92, 0x36, 0x09};
    low.tag = {0xb3, 0x3a, 0x9a, 0x19, 0x74, 0xe9, 0x6e, 0x52,
               0xda, 0xf2, 0xfc, 0xf7, 0x07, 0x5e, 0x22, 0x71};
    AeadCase high{Bytes(32, 3), nonce, bytes("c2sp.org/XAES-256-GCM"), plain, {}, {}};
    high.ciphertext = {0x98, 0x6e, 0xc1, 0x83, 0x25, 0x93, 0xdf, 0x54, 0x43, 0xa1, 0x79, 0x43};
    high.tag = {0x7f, 0xd0, 0x83, 0xbf, 0x3f, 0xdb, 0x41, 0xab,
                0xd7, 0x40, 0xa2, 0x1f, 0x71, 0xeb, 0x76, 0x9d};
    check(Mode::xaes256gcm, {low}, "by itself");
    check(Mode::xaes256gcm, {high, low, low, high, high}, "in a list");
}

TEST_P(CpuXaes, EveryLengthByItself) {
    every_length(kXaes, test::thorough(600, 150), make());
}

TEST_P(CpuXaes, MessagesSideBySide) {
    side_by_side(kXaes, 1200, make());
}

// As many as are derived together, and more; of sizes that overlap with their neighbours, and not.
TEST_P(CpuXaes, ListsOfOneKey) {
    for (const std::size_t count : {1, 3, 4, 5, 8, 9, 15, 16, 17, 32, 33, 70}) {
        const Bytes key = random_.bytes(32);
        std::vector<AeadCase> cases;
        for (std::size_t i = 0; i < count; ++i) {
            AeadCase c = make()(random_.below(3) ? 256 * random_.below(5) + 48 * random_.below(2)
                                                 : random_.below(700),
                                random_.below(2) ? random_.below(100) : 0);
            c.key = key;
            cases.push_back(sealed(c));
        }
        check(Mode::xaes256gcm, cases, "of one key");
        if (HasFatalFailure()) return;
    }
}

TEST_P(CpuXaes, RefusesForgeries) {
    forgeries(kXaes, 700, make());
}

TEST_P(CpuXaes, PiecesOfAnySizeMakeTheWhole) {
    pieces(kXaes, 700, make());
}

// The keys of messages, their hash keys, what masks their tags, and keystream. More messages than
// are derived together, so that some wait for the next.
TEST_P(CpuXaes, LeavesNothingOnTheStack) {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers keep copies of their own";
    for (const bool encrypts : {true, false})
        for (const std::size_t count : {1, 40}) {
            std::vector<AeadCase> cases;
            for (std::size_t i = 0; i < count; ++i) {
                cases.push_back(make()(i % 3 ? 768 : 500 + i, i % 2 ? 8 : 0));
                cases.back().key = cases.front().key;
                cases.back() = sealed(cases.back());
            }
            const Bytes stack = stack_after(Mode::xaes256gcm, encrypts, cases);
            for (const AeadCase& c : cases) {
                const Bytes key = derived(c);
                Bytes start(c.nonce.begin() + 12, c.nonce.end());
                start.insert(start.end(), {0, 0, 0, 1});
                std::vector<Bytes> secrets{
                    Bytes(key.begin(), key.begin() + 16), Bytes(key.begin() + 16, key.end()),
                    test::oracle(key, {Mode::ecb, Direction::encrypt}, Bytes(16)),
                    test::oracle(key, {Mode::ecb, Direction::encrypt}, start)};
                for (std::size_t at = 0; at + 16 <= c.plain.size(); at += 16) {
                    secrets.emplace_back();
                    for (std::size_t i = at; i < at + 16; ++i)
                        secrets.back().push_back(c.plain[i] ^ c.ciphertext[i]);
                }
                for (Bytes& secret : secrets) {
                    ASSERT_FALSE(holds(stack, secret)) << (encrypts ? "sealing" : "opening");
                    std::reverse(secret.begin(), secret.end());
                    ASSERT_FALSE(holds(stack, secret)) << (encrypts ? "sealing" : "opening");
                }
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuXaes, testing::Values("sse", "avx2", "avx512"),
                         [](const auto& its) { return std::string(its.param); });

}  // namespace
