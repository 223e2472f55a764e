// SPDX-License-Identifier: Apache-2.0
// Known answers for XAES-256-GCM and AES-GCM-SIV: C2SP's and RFC 8452's vectors, C2SP's 10,000
// messages at random, and every length up to 2 KiB by digests of OpenSSL's answers.
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include <daelstrom/gcm_siv.hpp>
#include <daelstrom/xaes.hpp>

#include "modes/traits.hpp"
#include "support/modes_test.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael;
using namespace dael::test;

Bytes hash(const EVP_MD* algorithm, std::span<const std::uint8_t> bytes, std::size_t size) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                          &EVP_MD_CTX_free);
    Bytes digest(size);
    if (EVP_DigestInit_ex(context.get(), algorithm, nullptr) != 1 ||
        EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
        (EVP_MD_get_flags(algorithm) & EVP_MD_FLAG_XOF
             ? EVP_DigestFinalXOF(context.get(), digest.data(), size)
             : EVP_DigestFinal_ex(context.get(), digest.data(), nullptr)) != 1)
        throw std::runtime_error("OpenSSL does not hash");
    return digest;
}

// A nonce of 12 or 24 bytes.
void set_start(Message& message, std::span<const std::uint8_t> nonce) {
    std::copy_n(nonce.begin(), std::min<std::size_t>(nonce.size(), 16), message.start.begin());
    for (std::size_t i = 16; i < nonce.size(); ++i) message.start_rest[i - 16] = nonce[i];
}

class AeadVectorsTest : public ModesTest {
  protected:
    Code run(const Cipher& cipher, const Bytes& raw, const Message& message) {
        const KeyRing ring({raw}, cipher);
        Code code = Code::ok;
        const auto done = subject().run(cipher, ring.keys, {&message, 1}, {&code, 1});
        EXPECT_TRUE(done) << done.error().message;
        return done ? code : done.code();
    }
    void check_vectors(const std::string& file, std::size_t count) {
        const auto all = load_aead_json(file);
        ASSERT_EQ(all.vectors.size(), count);
        for (const AeadVector& v : all.vectors)
            for (const bool in_place : {false, true}) {
                Bytes data = v.plaintext, apart(data.size(), Poisoned::kPoison), tag(16);
                Bytes& out = in_place ? data : apart;
                Message m{data.data(),  out.data(),   data.size(),
                          v.aad.data(), v.aad.size(), tag.data()};
                set_start(m, v.nonce);
                ASSERT_EQ(run({v.mode}, v.key, m), Code::ok) << v.name;
                ASSERT_EQ(to_hex(out), to_hex(v.ciphertext)) << v.name;
                ASSERT_EQ(to_hex(tag), to_hex(v.tag128)) << v.name;
                data = v.ciphertext;
                tag[3] ^= 4;
                ASSERT_EQ(run({v.mode, Direction::decrypt}, v.key, m), Code::authentication);
                EXPECT_EQ(data, v.ciphertext) << v.name;
                tag[3] ^= 4;
                ASSERT_EQ(run({v.mode, Direction::decrypt}, v.key, m), Code::ok) << v.name;
                ASSERT_EQ(to_hex(out), to_hex(v.plaintext)) << v.name;
            }
    }
    void check_lengths(const std::string& file, Mode mode, std::size_t key_size,
                       std::size_t nonce_size) {
        constexpr std::size_t kMost = 2048;
        std::vector<Bytes> raw(256), ins, outs, aads, tags;
        for (std::size_t n = 0; n < raw.size(); ++n)
            for (std::size_t i = 0; i < key_size; ++i)
                raw[n].push_back(static_cast<std::uint8_t>(3 * i + n));
        const KeyRing ring(raw, mode);
        std::vector<Message> messages;
        for (std::size_t n = 0; n <= kMost; ++n) {
            const auto made = [](std::size_t size, std::size_t factor, std::size_t more) {
                Bytes bytes(size);
                for (std::size_t i = 0; i < size; ++i)
                    bytes[i] = static_cast<std::uint8_t>(factor * i + more);
                return bytes;
            };
            const Bytes& in = ins.emplace_back(made(n, 7, n));
            const Bytes& aad = aads.emplace_back(made(n % 67, 11, n));
            Bytes& out = outs.emplace_back(n);
            Bytes& tag = tags.emplace_back(16);
            Message& m = messages.emplace_back(
                Message{in.data(), out.data(), n, aad.data(), aad.size(), tag.data()});
            set_start(m, made(nonce_size, 5, n / 256));
            m.key = static_cast<std::uint32_t>(n % 256);
        }
        std::vector<Code> codes(messages.size(), Code::ok);
        const auto seal = subject().run({mode}, ring.keys, messages, codes);
        ASSERT_TRUE(seal) << seal.error().message;
        ASSERT_EQ(std::ranges::count(codes, Code::ok), static_cast<std::ptrdiff_t>(codes.size()));
        Bytes all;
        for (std::size_t n = 0; n <= kMost; ++n) {
            all.insert(all.end(), outs[n].begin(), outs[n].end());
            all.insert(all.end(), tags[n].begin(), tags[n].end());
            messages[n].in = outs[n].data();
        }
        EXPECT_EQ(to_hex(hash(EVP_sha256(), all, 32)),
                  load_aead_json(file).digests.at(std::string(name(mode)) + " " +
                                                  std::to_string(key_size)));
        const auto open = subject().run({mode, Direction::decrypt}, ring.keys, messages, codes);
        ASSERT_TRUE(open) << open.error().message;
        ASSERT_EQ(std::ranges::count(codes, Code::ok), static_cast<std::ptrdiff_t>(codes.size()));
        EXPECT_EQ(outs, ins);
    }
    bool skips_lengths() const { return slow() && GetParam().level != Target::Level::backend; }
};

TEST_P(AeadVectorsTest, XaesOfC2sp) {
    if (!can(Mode::xaes256gcm, Direction::encrypt)) GTEST_SKIP() << "no XAES-256-GCM";
    check_vectors("xaes.json", 2);
    if (HasFatalFailure() || skips_lengths()) return;
    check_lengths("xaes.json", Mode::xaes256gcm, 32, 24);
}

// "Accumulated randomized tests".
TEST_P(AeadVectorsTest, XaesOfC2spAtRandom) {
    if (!can(Mode::xaes256gcm, Direction::encrypt)) GTEST_SKIP() << "no XAES-256-GCM";
    if (skips_lengths()) GTEST_SKIP() << "slow";
    constexpr std::size_t kCount = 10000;
    const Bytes stream = hash(EVP_shake128(), {}, kCount * (32 + 24 + 2 + 2 * 255));
    auto next = stream.begin();
    const auto take = [&](std::size_t size) {
        next += static_cast<std::ptrdiff_t>(size);
        return std::span(next - static_cast<std::ptrdiff_t>(size), next);
    };
    std::vector<Bytes> raw, sealed;
    std::vector<Message> messages;
    for (std::size_t i = 0; i < kCount; ++i) {
        const auto key = take(32), nonce = take(24), plain = take(take(1)[0]),
                   aad = take(take(1)[0]);
        raw.emplace_back(key.begin(), key.end());
        Bytes& out = sealed.emplace_back(plain.size() + 16);
        Message& m =
            messages.emplace_back(Message{plain.data(), out.data(), plain.size(), aad.data(),
                                          aad.size(), out.data() + plain.size()});
        set_start(m, nonce);
        m.key = static_cast<std::uint32_t>(i);
    }
    const KeyRing ring(std::move(raw), Mode::xaes256gcm);
    std::vector<Code> codes(kCount, Code::ok);
    const auto done = subject().run({Mode::xaes256gcm}, ring.keys, messages, codes);
    ASSERT_TRUE(done) << done.error().message;
    Bytes all;
    for (const Bytes& one : sealed) all.insert(all.end(), one.begin(), one.end());
    EXPECT_EQ(to_hex(hash(EVP_shake128(), all, 32)),
              "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939");
}

TEST_P(AeadVectorsTest, GcmSivOfTheRfc) {
    if (!can(Mode::gcm_siv, Direction::encrypt)) GTEST_SKIP() << "no GCM-SIV";
    check_vectors("gcm-siv.json", 46);
    for (const std::size_t key_size : {16u, 32u})
        if (!HasFatalFailure() && !skips_lengths())
            check_lengths("gcm-siv.json", Mode::gcm_siv, key_size, 12);
}

DAEL_FOR_EVERY_BACKEND(AeadVectorsTest);

// Nonces of XAES-256-GCM differ in any of their 24 bytes; those of GCM-SIV may repeat.
TEST(Aead, NoncesThatRepeat) {
    auto engine = Engine::open({.backend = "reference"});
    ASSERT_TRUE(engine);
    for (const Mode mode : {Mode::xaes256gcm, Mode::gcm_siv}) {
        const KeyRing ring({pattern(32)}, mode);
        auto keys = engine->keys(ring.keys);
        ASSERT_TRUE(keys);
        Bytes tags(32);
        std::vector<Message> list(2);
        list[0].tag = tags.data();
        list[1].tag = tags.data() + 16;
        std::vector<Code> codes(2);
        if (mode == Mode::xaes256gcm) {
            list[1].start_rest[7] = 1;
            EXPECT_TRUE(engine->run({mode}, *keys, list, codes));
            list[1].start_rest[7] = 0;
        }
        EXPECT_EQ(engine->run({mode}, *keys, list, codes).code(),
                  mode == Mode::gcm_siv ? Code::ok : Code::limit);
    }
}

TEST(Aead, NamedCalls) {
    auto engine = Engine::open({.backend = "reference"});
    ASSERT_TRUE(engine);
    const Key key = *Key::import(pattern(32)), small = *Key::import(pattern(16)),
              other = *Key::import(pattern(24));
    Bytes data = pattern(50), tag(16);
    const Bytes nonce = pattern(24);
    const auto its = [&](std::size_t size) { return std::span(nonce).first(size); };
    ASSERT_TRUE(xaes::seal(*engine, key, its(24), {}, data, data, tag));
    Message m{data.data(), data.data(), data.size(), nullptr, 0, tag.data()};
    xaes::set_start(m, nonce.data());
    ASSERT_TRUE(engine->run(xaes::kOpening, key, m));
    EXPECT_EQ(data, pattern(50));
    EXPECT_EQ(xaes::open(*engine, key, its(24), {}, data, data, tag).code(), Code::authentication);
    EXPECT_EQ(xaes::seal(*engine, key, its(12), {}, data, data, tag).code(), Code::iv_size);
    EXPECT_EQ(xaes::seal(*engine, small, its(24), {}, data, data, tag).code(),
              Code::invalid_argument);
    EXPECT_EQ(xaes::seal(*engine, key, its(24), {}, data, data, std::span(tag).first(12)).code(),
              Code::invalid_argument);
    for (const Key* right : {&key, &small}) {
        ASSERT_TRUE(gcm_siv::seal(*engine, *right, its(12), {}, data, data, tag));
        m.start_rest = {};
        gcm_siv::set_start(m, nonce.data());
        ASSERT_TRUE(engine->run(gcm_siv::kOpening, *right, m));
        EXPECT_EQ(data, pattern(50));
        EXPECT_EQ(gcm_siv::open(*engine, *right, its(12), {}, data, data, tag).code(),
                  Code::authentication);
    }
    EXPECT_EQ(gcm_siv::seal(*engine, other, its(12), {}, data, data, tag).code(),
              Code::invalid_argument);
    EXPECT_EQ(gcm_siv::seal(*engine, key, its(13), {}, data, data, tag).code(), Code::iv_size);
    EXPECT_EQ(data, pattern(50));
}

// The whole message is needed before its first byte comes out.
TEST(Aead, GcmSivHasNoPieces) {
    auto engine = Engine::open({.backend = "reference"});
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->begin({Mode::gcm_siv}, *Key::import(pattern(16)), {}).code(),
              Code::unsupported);
    EXPECT_EQ(engine->begin({Mode::gcm_siv}, *Key::import(pattern(24)), {}).code(),
              Code::invalid_argument);
}

}  // namespace
