// SPDX-License-Identifier: Apache-2.0
// Known answers for AEGIS: RFC 10032's vectors, forgeries among them, and every length up to 2 KiB
// by libaegis's digests.
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <set>

#include <daelstrom/aegis.hpp>

#include "modes/traits.hpp"
#include "support/modes_test.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr Mode kAegis[] = {Mode::aegis128l, Mode::aegis256, Mode::aegis128x2, Mode::aegis128x4};

std::string sha256(const Bytes& bytes) {
    Bytes digest(32);
    if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
        throw std::runtime_error("no SHA-256");
    return to_hex(digest);
}

class AegisVectorsTest : public ModesTest {
  protected:
    void SetUp() override {
        ModesTest::SetUp();
        if (!IsSkipped() && !HasFatalFailure() && !can(Mode::aegis128l, Direction::encrypt))
            GTEST_SKIP() << "no AEGIS";
    }
    // Of a batch, since a device takes nothing else.
    Code run(const Cipher& cipher, const Bytes& raw, Message& message) {
        const KeyRing ring({raw}, cipher);
        Code code = Code::ok;
        const auto done = subject().run(cipher, ring.keys, {&message, 1}, {&code, 1});
        EXPECT_TRUE(done) << done.error().message;
        return done ? code : done.code();
    }
    const AeadVectors& vectors() {
        static const AeadVectors all = load_aead_json("aegis.json");
        return all;
    }
};

TEST_P(AegisVectorsTest, OfTheRfc) {
    ASSERT_EQ(vectors().vectors.size(), 22u);
    for (const AeadVector& v : vectors().vectors)
        for (const Bytes& tag : {v.tag128, v.tag256})
            for (const bool in_place : {false, true}) {
                const std::string what = std::string(name(v.mode)) + ", " + v.name + ", tag of " +
                                         std::to_string(tag.size());
                Bytes data = v.ciphertext, apart(data.size(), Poisoned::kPoison), its_tag = tag;
                Bytes& out = in_place ? data : apart;
                Message message{data.data(),  out.data(),   data.size(),
                                v.aad.data(), v.aad.size(), its_tag.data()};
                aegis::set_start(message, v.mode, v.nonce.data());
                const Code code = run(aegis::opening(v.mode, tag.size()), v.key, message);
                ASSERT_EQ(code, v.refused ? Code::authentication : Code::ok) << what;
                ASSERT_EQ(its_tag, tag) << what;
                if (v.refused) {
                    EXPECT_TRUE(in_place ? out == v.ciphertext
                                         : all_are(out, 0) || all_are(out, Poisoned::kPoison))
                        << what;
                    continue;
                }
                ASSERT_EQ(to_hex(out), to_hex(v.plaintext)) << what;
                data = v.plaintext;
                std::ranges::fill(its_tag, Poisoned::kPoison);
                ASSERT_EQ(run(aegis::sealing(v.mode, tag.size()), v.key, message), Code::ok);
                ASSERT_EQ(to_hex(out), to_hex(v.ciphertext)) << what;
                ASSERT_EQ(to_hex(its_tag), to_hex(tag)) << what;
            }
}

TEST_P(AegisVectorsTest, EveryLengthUpTo2KiB) {
    if (slow() && GetParam().level != Target::Level::backend) GTEST_SKIP() << "slow";
    constexpr std::size_t kMost = 2048;
    for (const Mode mode : kAegis)
        for (const std::size_t tag_size : {16u, 32u}) {
            std::vector<Bytes> raw(256), ins, outs, aads, tags, opened;
            for (std::size_t n = 0; n < raw.size(); ++n)  // a key each, in turn
                for (std::size_t i = 0; i < aegis::key_size(mode); ++i)
                    raw[n].push_back(static_cast<std::uint8_t>(3 * i + n));
            const KeyRing ring(raw, mode);
            std::vector<Message> messages;
            for (std::size_t n = 0; n <= kMost; ++n) {
                const auto made = [n](std::size_t size, std::size_t factor) {
                    Bytes bytes(size);
                    for (std::size_t i = 0; i < size; ++i)
                        bytes[i] = static_cast<std::uint8_t>(factor * i + n);
                    return bytes;
                };
                Bytes nonce(aegis::nonce_size(mode));
                for (std::size_t i = 0; i < nonce.size(); ++i)
                    nonce[i] = static_cast<std::uint8_t>(5 * i + n / 256);
                const Bytes& in = ins.emplace_back(made(n, 7));
                const Bytes& aad = aads.emplace_back(made(n % 67, 11));
                Bytes& out = outs.emplace_back(n);
                Bytes& tag = tags.emplace_back(tag_size);
                Message& m = messages.emplace_back(
                    Message{in.data(), out.data(), n, aad.data(), aad.size(), tag.data()});
                aegis::set_start(m, mode, nonce.data());
                m.key = static_cast<std::uint32_t>(n % 256);
            }
            std::vector<Code> codes(messages.size(), Code::internal);
            const auto run = [&](const Cipher& cipher) {
                std::ranges::fill(codes, Code::ok);
                const auto done = subject().run(cipher, ring.keys, messages, codes);
                ASSERT_TRUE(done) << done.error().message;
                ASSERT_EQ(std::ranges::count(codes, Code::ok),
                          static_cast<std::ptrdiff_t>(codes.size()));
            };
            run(aegis::sealing(mode, tag_size));
            if (HasFatalFailure()) return;
            Bytes all;
            for (std::size_t n = 0; n <= kMost; ++n) {
                all.insert(all.end(), outs[n].begin(), outs[n].end());
                all.insert(all.end(), tags[n].begin(), tags[n].end());
            }
            EXPECT_EQ(sha256(all), vectors().digests.at(std::string(name(mode)) + " " +
                                                        std::to_string(8 * tag_size)))
                << name(mode);
            for (std::size_t n = 0; n <= kMost; ++n) messages[n].in = outs[n].data();
            run(aegis::opening(mode, tag_size));  // in place
            if (HasFatalFailure()) return;
            EXPECT_EQ(outs, ins) << name(mode);
        }
}

// Tags of 32 bytes, lists of one key and of many, forgeries.
TEST_P(AegisVectorsTest, BatchesAndForgeries) {
    for (const Mode mode : kAegis)
        for (const std::size_t tag_size : {16u, 32u})
            for (const std::size_t keys : {1u, 5u}) {
                const KeyRing keys_of_it = ring(aegis::sealing(mode), keys);
                for (const Cipher& cipher :
                     {aegis::sealing(mode, tag_size), aegis::opening(mode, tag_size)}) {
                    TestBatch batch(random_, keys_of_it, cipher);
                    for (int i = 0; i < (slow() ? 20 : 60); ++i)
                        batch.add(
                            any_shape(cipher, random_.below(i % 7 == 0 ? 3000 : 300), random_));
                    if (!modes::encrypts(cipher))
                        for (std::size_t i = 0; i < batch.size(); i += 3) batch.forge(i);
                    check(batch);
                    if (HasFatalFailure()) return;
                }
            }
}

DAEL_FOR_EVERY_BACKEND(AegisVectorsTest);

// Of the named calls, and keys.
TEST(Aegis, WhatIsRefused) {
    auto engine = Engine::open({.backend = "reference"});
    ASSERT_TRUE(engine);
    Bytes data = pattern(40), nonce = pattern(32), tag(32);
    for (const Mode mode : kAegis) {
        const Key right = *Key::import(pattern(aegis::key_size(mode))),
                  wrong = *Key::import(pattern(48 - aegis::key_size(mode))),
                  other = *Key::import(pattern(24));
        const auto its_nonce = std::span(nonce).first(aegis::nonce_size(mode));
        const auto seal = [&](const Key& key, std::span<const std::uint8_t> its,
                              std::size_t tag_size) {
            return aegis::seal(*engine, mode, key, its, {}, data, data,
                               std::span(tag).first(tag_size));
        };
        for (const Key* key : {&wrong, &other}) {
            const auto refused = seal(*key, its_nonce, 16);
            EXPECT_EQ(refused.code(), Code::invalid_argument);
            EXPECT_NE(
                refused.error().message.find("keys of " + std::to_string(aegis::key_size(mode))),
                std::string::npos)
                << refused.error().message;
        }
        EXPECT_EQ(seal(right, std::span(nonce).first(12), 16).code(), Code::iv_size);
        for (const std::size_t size : {0u, 8u, 12u, 24u})
            EXPECT_EQ(seal(right, its_nonce, size).code(), Code::invalid_argument);
        EXPECT_EQ(data, pattern(40));
        for (const std::size_t size : {16u, 32u}) {
            const auto its_tag = std::span(tag).first(size);
            ASSERT_TRUE(seal(right, its_nonce, size));
            EXPECT_NE(data, pattern(40));
            tag[size - 1] ^= 1;
            EXPECT_EQ(aegis::open(*engine, mode, right, its_nonce, {}, data, data, its_tag).code(),
                      Code::authentication);
            tag[size - 1] ^= 1;
            ASSERT_TRUE(aegis::open(*engine, mode, right, its_nonce, {}, data, data, its_tag));
            EXPECT_EQ(data, pattern(40));
        }
        // A set has keys of the mode's size, also after replace().
        std::vector<Key> list;
        list.push_back(*right.duplicate());
        list.push_back(*wrong.duplicate());
        Message message{data.data(), data.data(), data.size(), nullptr, 0, tag.data()};
        Code code = Code::ok;
        auto mixed = engine->keys(list);
        ASSERT_TRUE(mixed);
        EXPECT_EQ(engine->run(aegis::sealing(mode), *mixed, {&message, 1}, {&code, 1}).code(),
                  Code::invalid_argument);
        ASSERT_TRUE(mixed->replace(1, right));
        EXPECT_TRUE(engine->run(aegis::sealing(mode), *mixed, {&message, 1}, {&code, 1}));
        ASSERT_TRUE(mixed->replace(0, other));
        EXPECT_EQ(engine->run(aegis::sealing(mode), *mixed, {&message, 1}, {&code, 1}).code(),
                  Code::invalid_argument);
        data = pattern(40);
    }
    EXPECT_EQ(aegis::seal(*engine, Mode::gcm, *Key::import(pattern(16)), std::span(nonce).first(16),
                          {}, data, data, tag)
                  .code(),
              Code::invalid_argument);
}

// Nonces of AEGIS-256 differ in any of their 32 bytes.
TEST(Aegis, NoncesOf32Bytes) {
    auto engine = Engine::open({.backend = "reference"});
    ASSERT_TRUE(engine);
    const KeyRing ring({pattern(32)}, Mode::aegis256);
    auto keys = engine->keys(ring.keys);
    ASSERT_TRUE(keys);
    Bytes tags(64);
    std::vector<Message> list(4);
    for (std::size_t i = 0; i < 4; ++i) {
        list[i].tag = tags.data() + 16 * i;
        list[i].start_rest[15] = static_cast<std::uint8_t>(i);
    }
    std::vector<Code> codes(4);
    EXPECT_TRUE(engine->run(aegis::sealing(Mode::aegis256), *keys, list, codes));
    EXPECT_EQ(
        std::set<Bytes>(
            {Bytes(tags.begin(), tags.begin() + 16), Bytes(tags.begin() + 16, tags.begin() + 32),
             Bytes(tags.begin() + 32, tags.begin() + 48), Bytes(tags.begin() + 48, tags.end())})
            .size(),
        4u);
    list[3].start_rest = list[1].start_rest;
    EXPECT_EQ(engine->run(aegis::sealing(Mode::aegis256), *keys, list, codes).code(), Code::limit);
}

}  // namespace
