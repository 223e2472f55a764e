// SPDX-License-Identifier: Apache-2.0
// Headers of age files that may not be, though a lenient reader would make sense of them.
#include <openssl/err.h>

#include "formats/envelopes.hpp"

namespace dael::test {
namespace {

using sealed::open_envelope, sealed::read_envelope;

const std::string kVersion = "age-encryption.org/v1\n";
const std::string k32(43, 'A');  // 32 bytes of zeros
const std::string kSalt(22, 'A');
const std::string kCurve = "-> X25519 " + k32 + "\n" + k32 + "\n";
const std::string kScrypt = "-> scrypt " + kSalt + " 10\n" + k32 + "\n";
const std::string kEnd = "--- " + k32 + "\n" + std::string(64, '\0');
const std::string kFullLine = std::string(64, 'A') + "\n";

std::size_t stanzas(const std::string& text) {
    const auto says = must(read_envelope(words(text)));
    EXPECT_EQ(says.size, text.size());
    return says.stanzas;
}

TEST(AgeHeader, WhatThereMayBe) {
    EXPECT_EQ(stanzas(kVersion + kCurve + kEnd), 1u);
    EXPECT_EQ(stanzas(kVersion + kCurve + kCurve + kEnd), 2u);
    EXPECT_EQ(stanzas(kVersion + kScrypt + kEnd), 1u);
    // Of kinds that are not known, with bodies of every length.
    EXPECT_EQ(stanzas(kVersion + "-> ssh-ed25519 a b c\n" + k32 + "\n" + kCurve + kEnd), 2u);
    EXPECT_EQ(stanzas(kVersion + "-> x\n\n" + kEnd), 1u);
    EXPECT_EQ(stanzas(kVersion + "-> !\"~\n" + kFullLine + "\n" + kCurve + kEnd), 2u);
    EXPECT_EQ(stanzas(kVersion + "-> x\n" + kFullLine + kFullLine + "AA\n" + kCurve + kEnd), 2u);
}

TEST(AgeHeader, WhatThereMayNotBe) {
    const std::string a42(42, 'A'), a41(41, 'A');
    const std::vector<std::string> all{
        // The lines as such.
        "age-encryption.org/v1\r\n" + kCurve + kEnd, "age-encryption.org/v1 \n" + kCurve + kEnd,
        "\n" + kVersion + kCurve + kEnd, kVersion + kEnd, kVersion + "\n" + kCurve + kEnd,
        kVersion + kCurve + "\n" + kEnd, kVersion + "->X25519 " + k32 + "\n" + k32 + "\n" + kEnd,
        kVersion + "-> \n" + kCurve + kEnd, kVersion + "->\n" + kCurve + kEnd,
        kVersion + "->  X25519 " + k32 + "\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519  " + k32 + "\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519 " + k32 + " \n" + k32 + "\n" + kEnd,
        kVersion + "-> x\ty\n\n" + kCurve + kEnd, kVersion + "-> \xc3\xa4\n\n" + kCurve + kEnd,
        kVersion + "-> x\r\n\n" + kCurve + kEnd,
        // Its end.
        kVersion + kCurve + "---\n" + std::string(64, 'x'),
        kVersion + kCurve + "--- \n" + std::string(64, 'x'),
        kVersion + kCurve + "---  " + k32 + "\n", kVersion + kCurve + "--- " + k32 + " \n",
        kVersion + kCurve + "--- " + k32 + "\r\n", kVersion + kCurve + "--- " + k32 + "=\n",
        kVersion + kCurve + "--- " + a42 + "\n", kVersion + kCurve + "--- " + a42 + "B\n",
        kVersion + kCurve + "---- " + k32 + "\n",
        // Base64 that has bits to spare, padding, other letters or the wrong length.
        kVersion + "-> x\nAB\n" + kEnd, kVersion + "-> x\nAAB\n" + kEnd,
        kVersion + "-> x\nA\n" + kEnd, kVersion + "-> x\nAA==\n" + kEnd,
        kVersion + "-> x\nA-_A\n" + kEnd, kVersion + "-> x\nAA AA\n" + kEnd,
        kVersion + "-> x\n AA\n" + kEnd, kVersion + "-> x\n" + std::string(65, 'A') + "\n" + kEnd,
        kVersion + "-> x\n" + std::string(68, 'A') + "\n\n" + kEnd,
        kVersion + "-> x\n" + kFullLine + kEnd, kVersion + "-> x\n" + kEnd,
        // X25519: one argument and a body, of 32 bytes each.
        kVersion + "-> X25519\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519 " + k32 + " " + k32 + "\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519 " + a42 + "\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519 " + k32 + "A\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519 " + a42 + "B\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519 " + k32 + "=\n" + k32 + "\n" + kEnd,
        kVersion + "-> X25519 " + k32 + "\n" + a42 + "\n" + kEnd,
        kVersion + "-> X25519 " + k32 + "\n" + k32 + "A\n" + kEnd,
        kVersion + "-> X25519 " + k32 + "\n\n" + kEnd,
        // scrypt: alone, with a salt of 16 bytes, a number and a body of 32.
        kVersion + kScrypt + kCurve + kEnd, kVersion + kCurve + kScrypt + kEnd,
        kVersion + kScrypt + kScrypt + kEnd, kVersion + kScrypt + "-> x\n\n" + kEnd,
        kVersion + "-> scrypt " + kSalt + "\n" + k32 + "\n" + kEnd,
        kVersion + "-> scrypt " + kSalt + " 10 1\n" + k32 + "\n" + kEnd,
        kVersion + "-> scrypt " + kSalt + "A 10\n" + k32 + "\n" + kEnd,
        kVersion + "-> scrypt " + kSalt.substr(1) + " 10\n" + k32 + "\n" + kEnd,
        kVersion + "-> scrypt " + kSalt + " 10\n" + a41 + "\n" + kEnd};
    for (const std::string& text : all) {
        const auto says = read_envelope(words(text));
        ASSERT_FALSE(says) << text;
        EXPECT_EQ(says.code(), Code::bad_format) << text << says.error().message;
    }
    for (const char* work : {"010", "+10", "-1", "0", "00", "1e1", "0x1", "64", "99", "100",
                             "18446744073709551626", "1.", "a"})
        expect_error(read_envelope(words(kVersion + "-> scrypt " + kSalt + " " + work + "\n" + k32 +
                                         "\n" + kEnd)),
                     Code::bad_format, "line 3 of the age header: scrypt's work is not 1 to 63");
}

TEST(AgeHeader, OtherVersionsAndOtherFiles) {
    for (const char* other :
         {"age-encryption.org/v2\n", "age-encryption.org/v\n", "age-encryption.org/v10\n"})
        expect_error(read_envelope(words(other)), Code::unsupported, "another version");
    for (const std::string& other : {std::string("DAELSEAL\x01"), std::string("(\0\0", 3),
                                     std::string("-----BEGIN AGE ENCRYPTED FILE-----\n"),
                                     std::string("age-encryption.com/v1\n"), std::string("\0", 1)})
        expect_error(read_envelope(words(other)), Code::bad_format,
                     "does not begin with age-encryption.org/v1");
    EXPECT_EQ(must(read_envelope({})).size, 0u);
}

TEST(AgeHeader, HasItsLimits) {
    std::string many = kVersion;
    for (int i = 0; i < 1000; ++i) many += "-> x\n\n";
    EXPECT_EQ(stanzas(many + kEnd), 1000u);
    expect_error(read_envelope(words(many + "-> x\n\n" + kEnd)), Code::limit, "1000 stanzas");
    // Long, but within the limit; beyond it; and without an end.
    std::string text = kVersion + "-> x\n";
    while (text.size() + 65 + 1 + kEnd.size() <= sealed::kMaxEnvelope) text += kFullLine;
    EXPECT_EQ(stanzas(text + "\n" + kEnd), 1u);
    for (const std::string& longer :
         {text + kFullLine + kFullLine + "\n" + kEnd, kVersion + std::string(200'000, 'x'),
          kVersion + "-> " + std::string(200'000, 'x')})
        expect_error(read_envelope(words(longer)), Code::limit, "longer than");
    EXPECT_EQ(must(read_envelope(words(kVersion + std::string(100'000, 'x')))).size, 0u);
}

// The points of low order (RFC 7748 6.1): what is shared with them is no secret.
TEST(AgeHeader, PointsOfLowOrderAreRefused) {
    const auto identity = person().key();
    const std::string one = "AQ" + std::string(41, 'A');
    const std::string order8 = "4Ot6fDtBuK4WVuP68Z/EatoJjeucMrH9hmIFFl9JuAA";
    for (const std::string& share : {k32, one, order8})
        expect_error(open_envelope(identity, words(kVersion + "-> X25519 " + share + "\n" + k32 +
                                                   "\n" + kEnd)),
                     Code::bad_format, "low order");
}

// Another user of libcrypto in this thread finds its own failures there, and no others.
TEST(AgeHeader, WhatIsRefusedLeavesNoErrorInLibcrypto) {
    ERR_clear_error();
    ERR_raise(ERR_LIB_USER, 7);
    const std::string text = kVersion + "-> X25519 " + k32 + "\n" + k32 + "\n" + kEnd;
    EXPECT_EQ(open_envelope(person().key(), words(text)).code(), Code::bad_format);
    const auto made = must(sealed::make_envelope(person().address()));
    EXPECT_EQ(open_envelope(person().key(), made.envelope).code(), Code::authentication);
    EXPECT_EQ(ERR_GET_REASON(ERR_get_error()), 7);
    EXPECT_EQ(ERR_get_error(), 0u);
}

}  // namespace
}  // namespace dael::test
