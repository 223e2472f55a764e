// SPDX-License-Identifier: Apache-2.0
// Noise IK and IKpsk2 against an independent implementation's messages (noise_vectors.py), byte for
// byte and on both sides; every byte of them changed; and keys that must not work.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/bytes.hpp"
#include "support/thorough.hpp"
#include "support/vectors.hpp"
#include "vpn/handshake/noise.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using namespace dael::vpn;

struct NoiseVector {
    Pattern pattern;
    Bytes prologue, payloads[2], messages[2], hash;
    SecretKey psk, static_keys[2], ephemerals[2], to_responder, to_initiator;
};

SecretKey secret(const nlohmann::json& hex) {
    const Bytes bytes = from_hex(hex.get<std::string>());
    SecretKey key;
    if (!bytes.empty()) std::copy_n(bytes.begin(), kKeySize, key.data());
    return key;
}

const std::vector<NoiseVector>& noise_vectors() {
    static const std::vector<NoiseVector> all = [] {
        std::ifstream file(vectors_folder() / "vpn/noise.json");
        std::vector<NoiseVector> out;
        const nlohmann::json parsed = nlohmann::json::parse(file);
        for (const auto& from : parsed.at("vectors")) {
            NoiseVector vector;
            vector.pattern = from.at("pattern") == "IK" ? Pattern::ik : Pattern::ik_psk2;
            vector.prologue = from_hex(from.at("prologue").get<std::string>());
            vector.hash = from_hex(from.at("hash").get<std::string>());
            for (std::size_t i = 0; i < 2; ++i) {
                vector.payloads[i] = from_hex(from.at("payloads").at(i).get<std::string>());
                vector.messages[i] = from_hex(from.at("messages").at(i).get<std::string>());
            }
            vector.psk = secret(from.at("psk"));
            vector.static_keys[0] = secret(from.at("initiator_static"));
            vector.static_keys[1] = secret(from.at("responder_static"));
            vector.ephemerals[0] = secret(from.at("initiator_ephemeral"));
            vector.ephemerals[1] = secret(from.at("responder_ephemeral"));
            vector.to_responder = secret(from.at("to_responder"));
            vector.to_initiator = secret(from.at("to_initiator"));
            out.push_back(vector);
        }
        return out;
    }();
    return all;
}

class NoiseTest : public testing::Test {
  protected:
    NoiseTest() : opened_(Crypto::open()), crypto_(*opened_) {}

    // Both sides of one vector, before the first message.
    struct Sides {
        KeyPair static_keys[2], ephemerals[2];
        SecretKey agreed;
        Noise initiator, responder;
    };
    void begin(const NoiseVector& vector, Sides& sides) {
        for (std::size_t i = 0; i < 2; ++i) {
            ASSERT_TRUE(sides.static_keys[i].set(vector.static_keys[i]));
            ASSERT_TRUE(sides.ephemerals[i].set(vector.ephemerals[i]));
        }
        const PublicKey& responder = sides.static_keys[1].public_key();
        ASSERT_TRUE(crypto_.agree(sides.static_keys[0], responder, sides.agreed));
        for (Noise* const side : {&sides.initiator, &sides.responder})
            ASSERT_TRUE(side->begin(crypto_, vector.pattern, vector.prologue, responder));
    }
    bool read_first(Noise& responder, const Sides& sides, BytesIn message, Bytes& payload,
                    PublicKey& initiator) {
        if (message.size() < Noise::kFirst) return false;
        payload.assign(message.size() - Noise::kFirst, 0);
        return responder.read_first_key(crypto_, sides.static_keys[1], message, initiator) &&
               responder.read_first_payload(crypto_, sides.agreed, message, payload);
    }
    bool read_second(Noise& initiator, const Sides& sides, const SecretKey& psk, BytesIn message,
                     Bytes& payload) {
        if (message.size() < Noise::kSecond) return false;
        payload.assign(message.size() - Noise::kSecond, 0);
        return initiator.read_second(crypto_, sides.static_keys[0], sides.ephemerals[0], psk,
                                     message, payload);
    }

    Result<Crypto> opened_;
    const Crypto& crypto_;
};

TEST_F(NoiseTest, WritesAndReadsWhatAnotherImplementationDoes) {
    ASSERT_EQ(noise_vectors().size(), 12u);
    for (const NoiseVector& vector : noise_vectors()) {
        Sides sides;
        begin(vector, sides);
        Bytes first(Noise::kFirst + vector.payloads[0].size());
        ASSERT_TRUE(sides.initiator.write_first(crypto_, sides.static_keys[0],
                                                sides.static_keys[1].public_key(), sides.agreed,
                                                sides.ephemerals[0], vector.payloads[0], first));
        EXPECT_EQ(difference(vector.messages[0], first), "");
        Bytes payload;
        PublicKey initiator;
        ASSERT_TRUE(read_first(sides.responder, sides, first, payload, initiator));
        EXPECT_EQ(difference(vector.payloads[0], payload), "");
        EXPECT_EQ(initiator, sides.static_keys[0].public_key());

        Bytes second(Noise::kSecond + vector.payloads[1].size());
        ASSERT_TRUE(sides.responder.write_second(crypto_, initiator, sides.ephemerals[1],
                                                 vector.psk, vector.payloads[1], second));
        EXPECT_EQ(difference(vector.messages[1], second), "");
        ASSERT_TRUE(read_second(sides.initiator, sides, vector.psk, second, payload));
        EXPECT_EQ(difference(vector.payloads[1], payload), "");

        for (Noise* const side : {&sides.initiator, &sides.responder}) {
            EXPECT_EQ(difference(vector.hash, side->handshake_hash().span()), "");
            SecretKey to_responder, to_initiator;
            ASSERT_TRUE(side->split(crypto_, to_responder, to_initiator));
            EXPECT_EQ(difference(vector.to_responder.span(), to_responder.span()), "");
            EXPECT_EQ(difference(vector.to_initiator.span(), to_initiator.span()), "");
        }
    }
}

TEST_F(NoiseTest, RefusesEveryChangeAndEveryLength) {
    for (const NoiseVector& vector : noise_vectors()) {
        if (vector.payloads[0].size() > 64) continue;
        Sides sides;
        begin(vector, sides);
        Bytes out(Noise::kFirst + vector.payloads[0].size()), payload;
        ASSERT_TRUE(sides.initiator.write_first(crypto_, sides.static_keys[0],
                                                sides.static_keys[1].public_key(), sides.agreed,
                                                sides.ephemerals[0], vector.payloads[0], out));
        PublicKey initiator;
        Bytes first = vector.messages[0], second = vector.messages[1];
        const std::size_t step = thorough<std::size_t>(1, 7);
        for (std::size_t at = 0; at < first.size(); at += step) {
            const auto bit = static_cast<std::uint8_t>(1u << at % 8);
            // The highest bit of a public key means nothing (RFC 7748 5), but is hashed.
            first[at] ^= bit;
            Noise responder = sides.responder;
            EXPECT_FALSE(read_first(responder, sides, first, payload, initiator)) << at;
            EXPECT_TRUE(all_are(payload, 0)) << at;
            first[at] ^= bit;
            Noise shorter = sides.responder;
            EXPECT_FALSE(read_first(shorter, sides, BytesIn(first).first(at), payload, initiator));
        }
        for (std::size_t at = 0; at < second.size(); at += step) {
            const auto bit = static_cast<std::uint8_t>(1u << at % 8);
            second[at] ^= bit;
            Noise side = sides.initiator;
            EXPECT_FALSE(read_second(side, sides, vector.psk, second, payload)) << at;
            EXPECT_TRUE(all_are(payload, 0)) << at;
            second[at] ^= bit;
            Noise shorter = sides.initiator;
            EXPECT_FALSE(
                read_second(shorter, sides, vector.psk, BytesIn(second).first(at), payload));
        }
        Noise right = sides.initiator;
        EXPECT_TRUE(read_second(right, sides, vector.psk, second, payload));
        if (vector.pattern == Pattern::ik_psk2) {
            Noise wrong = sides.initiator;
            EXPECT_FALSE(read_second(wrong, sides, SecretKey{}, second, payload));
        }
    }
}

TEST_F(NoiseTest, RefusesOtherPrologueKeyOrPattern) {
    for (const NoiseVector& vector : noise_vectors()) {
        Sides sides;
        begin(vector, sides);
        Bytes payload;
        PublicKey initiator;
        const PublicKey responder = sides.static_keys[1].public_key();
        const auto refused = [&](Pattern pattern, BytesIn prologue, const PublicKey& key) {
            Noise noise;
            EXPECT_TRUE(noise.begin(crypto_, pattern, prologue, key));
            return !read_first(noise, sides, vector.messages[0], payload, initiator);
        };
        const Pattern other = vector.pattern == Pattern::ik ? Pattern::ik_psk2 : Pattern::ik;
        EXPECT_TRUE(refused(other, vector.prologue, responder));
        EXPECT_TRUE(refused(vector.pattern, pattern(7), responder));
        EXPECT_TRUE(refused(vector.pattern, vector.prologue, sides.static_keys[0].public_key()));
        EXPECT_FALSE(refused(vector.pattern, vector.prologue, responder));
        Noise noise = sides.responder;  // of somebody else who knows the public keys
        sides.agreed.clear();
        EXPECT_FALSE(read_first(noise, sides, vector.messages[0], payload, initiator));
        EXPECT_EQ(initiator, sides.static_keys[0].public_key());
    }
}

// RFC 7748 7: with these the result is the same whoever has which key.
TEST_F(NoiseTest, RefusesPointsOfLowOrder) {
    KeyPair pair;
    ASSERT_TRUE(pair.set(noise_vectors()[0].static_keys[0]));
    const char* const low[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    };
    for (const char* const hex : low) {
        const Bytes bytes = from_hex(hex);
        PublicKey key;
        std::copy(bytes.begin(), bytes.end(), key.begin());
        SecretKey out;
        EXPECT_FALSE(crypto_.agree(pair, key, out)) << hex;
    }
}

// RFC 5869, appendix A.1 and A.3; RFC 4231, 4.2 and 4.3.
TEST_F(NoiseTest, HkdfAndHmacGiveKnownAnswers) {
    Bytes out(42);
    ASSERT_TRUE(crypto_.hkdf(from_hex("000102030405060708090a0b0c"), Bytes(22, 0x0b),
                             from_hex("f0f1f2f3f4f5f6f7f8f9"), out));
    EXPECT_EQ(
        to_hex(out),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    ASSERT_TRUE(crypto_.hkdf(Bytes(32), Bytes(22, 0x0b), {}, out));
    EXPECT_EQ(
        to_hex(out),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
    Hash mac;
    const Bytes key(20, 0x0b), jefe = from_hex("4a656665");
    ASSERT_TRUE(crypto_.hmac(key, {from_hex("4869205468657265")}, mac));
    EXPECT_EQ(to_hex(mac.span()),
              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    const Bytes words = from_hex("7768617420646f2079612077616e7420666f72206e6f7468696e673f");
    ASSERT_TRUE(crypto_.hmac(jefe, {BytesIn(words).first(5), BytesIn(words).subspan(5)}, mac));
    EXPECT_EQ(to_hex(mac.span()),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    // The same by a context that is used again.
    KeyedMac again;
    SecretKey long_key;
    ASSERT_TRUE(again.open(crypto_, long_key.span()));
    for (std::size_t size = 0; size < 200; ++size) {
        Hash one, other;
        ASSERT_TRUE(again(pattern(size), one));
        ASSERT_TRUE(crypto_.hmac(long_key.span(), {pattern(size)}, other));
        EXPECT_EQ(difference(other.span(), one.span()), "");
    }
}

}  // namespace
