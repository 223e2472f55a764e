// SPDX-License-Identifier: Apache-2.0
// The texts of recipients and identities, as age has them.
#include <array>

#include "formats/envelopes.hpp"

namespace dael::test {
namespace {

using sealed::Identities, sealed::Recipients;

// Pairs of age's own documentation and tests.
constexpr const char* kIdentity =
    "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU";
constexpr const char* kRecipient = "age1cy0su9fwf3gf9mw868g5yut09p6nytfmmnktexz2ya5uqg9vl9sss4euqm";
constexpr const char* kIdentity42 =
    "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
constexpr const char* kRecipient42 =
    "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";

Result<std::string> recipients_of(std::string_view identities) {
    DAEL_LET(parsed, Identities::parse(words(identities)));
    return parsed.recipients();
}

// Bech32 by the book (BIP 173), of digits of 5 bits.
std::string bech32(const std::string& prefix, const std::vector<unsigned>& digits) {
    const std::string letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const std::array<std::uint32_t, 5> generator{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd,
                                                 0x2a1462b3};
    std::vector<unsigned> values;
    for (const char c : prefix) values.push_back(static_cast<unsigned>(c) >> 5);
    values.push_back(0);
    for (const char c : prefix) values.push_back(static_cast<unsigned>(c) & 31);
    values.insert(values.end(), digits.begin(), digits.end());
    values.insert(values.end(), 6, 0);
    std::uint32_t sum = 1;
    for (const unsigned value : values) {
        const std::uint32_t top = sum >> 25;
        sum = (sum & 0x1ffffff) << 5 ^ value;
        for (unsigned i = 0; i < 5; ++i)
            if (top >> i & 1) sum ^= generator[i];
    }
    sum ^= 1;
    std::string text = prefix + "1";
    for (const unsigned digit : digits) text += letters[digit];
    for (unsigned i = 0; i < 6; ++i) text += letters[sum >> (5 * (5 - i)) & 31];
    return text;
}
std::string capitals(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return static_cast<char>(toupper(c)); });
    return text;
}

TEST(Recipients, OfPublishedIdentities) {
    EXPECT_EQ(must(recipients_of(kIdentity)), std::string(kRecipient) + '\n');
    EXPECT_EQ(must(recipients_of(kIdentity42)), std::string(kRecipient42) + '\n');
    for (const char* text : {kRecipient, kRecipient42})
        EXPECT_TRUE(Recipients::parse(text)) << text;
}

TEST(Recipients, AsFilesHaveThem) {
    const std::string a = kRecipient, b = kRecipient42;
    const std::size_t two = must(Recipients::parse(a + '\n' + b)).envelope_size();
    for (const std::string& text :
         {"# friends\n" + a + "\n\n# others\n" + b + "\n", a + "\r\n" + b + "\r\n",
          "\n \t\n  " + a + " \n\t" + b, "#" + a + "\n" + a + "\n#\n" + b}) {
        const auto parsed = Recipients::parse(text);
        ASSERT_TRUE(parsed) << text << parsed.error().message;
        EXPECT_EQ(parsed->envelope_size(), two) << text;
    }
    const std::string x = kIdentity, y = kIdentity42;
    EXPECT_EQ(must(recipients_of("# created: today\n# public key: age1...\n" + x + "\r\n\n" + y)),
              a + '\n' + b + '\n');
}

TEST(Recipients, WhatIsNone) {
    const std::string a = kRecipient;
    const auto refused = [](const std::string& text, Code code, const std::string& says) {
        expect_error(Recipients::parse(text), code, says);
    };
    for (const char* nothing : {"", "\n\n", "# age1\n"})
        refused(nothing, Code::bad_format, "there is no recipient");
    refused(a + "\n\nx\n", Code::bad_format, "line 3: no recipient; one is age1 and 58");
    refused(a + ' ' + a, Code::unsupported, "line 1: ");
    refused(a + "q", Code::bad_format,
            "line 1: this recipient was copied wrongly: it has 63 characters, not 62");
    refused(a.substr(0, 61), Code::bad_format, "copied wrongly");
    refused(capitals(a), Code::bad_format, "a recipient in capitals");
    refused(std::string("age1C") + (kRecipient + 5), Code::bad_format,
            "its checksum does not match");
    refused("age1yubikey1qwertyuiop", Code::unsupported, "age's plugins");
    refused("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI", Code::unsupported, "an SSH key");
    refused(kIdentity, Code::bad_format, "a secret key stands where its recipient belongs");
    refused(bech32("age", std::vector<unsigned>(52, 0)), Code::bad_format, "low order");
    refused(std::string("age1\0", 5) + (kRecipient + 5), Code::bad_format, "copied wrongly");
}

// No message may hold a secret, not even one that was copied wrongly.
TEST(Recipients, WhatIsNoIdentity) {
    const std::string a = kIdentity;
    const auto refused = [](const std::string& text, Code code, const std::string& says) {
        const auto parsed = Identities::parse(words(text));
        expect_error(parsed, code, says);
        EXPECT_EQ(parsed.error().message.find("184JMZ"), std::string::npos)
            << parsed.error().message;
    };
    for (const char* nothing : {"", "\n\n", "# AGE-SECRET-KEY-1\n"})
        refused(nothing, Code::bad_format, "there is no secret key");
    refused("#\n" + a + "Q", Code::bad_format, "line 2: this secret key was copied wrongly");
    refused(a.substr(0, 73), Code::bad_format, "copied wrongly");
    refused(a + a, Code::bad_format, "copied wrongly");
    refused("secret: " + a, Code::bad_format, "no secret key; one is AGE-SECRET-KEY-1 and 58");
    std::string small = a;
    std::ranges::transform(small, small.begin(),
                           [](char c) { return static_cast<char>(tolower(c)); });
    refused(small, Code::bad_format, "small letters");
    refused(a.substr(0, 20) + small.substr(20), Code::bad_format, "copied wrongly");
    refused(kRecipient, Code::bad_format, "a recipient stands where its secret key belongs");
    refused("AGE-PLUGIN-YUBIKEY-1QWERTY", Code::unsupported, "age's plugins");
    refused("-----BEGIN OPENSSH PRIVATE KEY-----\n", Code::unsupported, "another kind");
    refused("age-encryption.org/v1\n-> scrypt x\n", Code::unsupported, "age -d decrypts them");
    refused("-----BEGIN AGE ENCRYPTED FILE-----\n", Code::unsupported, "age -d decrypts them");
}

// UTF-8 with its mark, UTF-16 in either order, and identities of kinds that others make up for.
TEST(Recipients, WrittenByOtherPrograms) {
    const std::string x = kIdentity, text = "# \xc3\xbc\n" + x + "\r\n";
    const auto utf16 = [](const std::string& ascii, bool big) {
        std::string out = big ? "\xfe\xff" : "\xff\xfe";
        for (const char c : ascii) out += big ? std::string{'\0', c} : std::string{c, '\0'};
        return out;
    };
    const std::string plugin = "AGE-PLUGIN-YUBIKEY-1QWERTY\n";
    for (const std::string& spelt :
         {"\xef\xbb\xbf" + text, utf16(x + "\r\n", false), utf16("#\n" + x, true), plugin + x,
          x + "\n" + plugin + plugin})
        EXPECT_EQ(must(recipients_of(spelt)), std::string(kRecipient) + '\n');
    for (const bool big : {false, true}) EXPECT_TRUE(Recipients::parse(utf16(kRecipient, big)));
    EXPECT_TRUE(Recipients::parse("\xef\xbb\xbf" + std::string(kRecipient)));
    expect_error(Identities::parse(words(utf16("", false))), Code::bad_format, "no secret key");
    expect_error(Identities::parse(words(utf16(x, false) + "x")), Code::bad_format, "");
    expect_error(Identities::parse(words(plugin + plugin)), Code::unsupported, "age's plugins");
}

// Identities are added whole or not at all.
TEST(Recipients, WhatIsRefusedAddsNothing) {
    std::string many, one = std::string(kRecipient) + '\n';
    for (int i = 0; i < 600; ++i) many += one;
    auto all = must(Recipients::parse(many));
    const auto size = all.envelope_size();
    expect_error(all.add(all), Code::limit, "more than 1000");
    EXPECT_EQ(all.envelope_size(), size);
    auto keys = must(Identities::parse(words(kIdentity)));
    ASSERT_TRUE(keys.add(keys));
    EXPECT_EQ(must(keys.recipients()), one + one);
    expect_error(keys.add(must(Identities::of_passphrase(words("x"), 10))), Code::invalid_argument,
                 "always alone");
    EXPECT_EQ(must(keys.recipients()), one + one);
}

// The checksum finds every one; so nobody seals for a slip of the pen.
TEST(Recipients, EveryOtherLetterIsRefused) {
    const std::string letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const std::string recipient = kRecipient, identity = kIdentity;
    for (std::size_t at = 4; at < recipient.size(); ++at)
        for (const char letter : letters + "1bio-#\xff") {
            std::string other = recipient;
            other[at] = letter;
            EXPECT_EQ(static_cast<bool>(Recipients::parse(other)), other == recipient) << other;
        }
    for (std::size_t at = 16; at < identity.size(); ++at)
        for (const char letter : capitals(letters) + "1BIO-\xff") {
            std::string other = identity;
            other[at] = letter;
            EXPECT_EQ(static_cast<bool>(Identities::parse(words(other))), other == identity)
                << other;
        }
}

// 52 digits are 260 bits: the last four must be zeros, or a key could be written in 16 ways.
TEST(Recipients, BitsToSpareAreZeros) {
    std::vector<unsigned> digits(52, 9);
    for (unsigned last = 0; last < 32; ++last) {
        digits.back() = last;
        const bool good = last == 0 || last == 16;
        EXPECT_EQ(static_cast<bool>(Recipients::parse(bech32("age", digits))), good) << last;
        EXPECT_EQ(static_cast<bool>(
                      Identities::parse(words(capitals(bech32("age-secret-key-", digits))))),
                  good)
            << last;
        // Right for another word in front is wrong for this one.
        EXPECT_FALSE(Recipients::parse("age" + bech32("agf", digits).substr(3)));
    }
}

TEST(Recipients, NewIdentities) {
    const Person a = person(), b = person();
    EXPECT_NE(a.identity, b.identity);
    EXPECT_NE(a.recipient, b.recipient);
    EXPECT_EQ(a.recipient.size(), sealed::kRecipientSize + 1);
    EXPECT_EQ(must(recipients_of(a.identity + '\n' + b.identity)), a.recipient + b.recipient);
    EXPECT_TRUE(Recipients::parse(a.recipient));
    Bytes room(sealed::kIdentitySize + 10, 0xa5);
    EXPECT_EQ(sealed::make_identity(HostOut(room).first(73)).code(), Code::invalid_argument);
    must(sealed::make_identity(room));
    EXPECT_TRUE(all_are(std::span(room).subspan(sealed::kIdentitySize), 0xa5));
}

TEST(Recipients, PassphrasesStandAlone) {
    expect_error(Recipients::of_passphrase({}), Code::invalid_argument, "passphrase is empty");
    expect_error(Identities::of_passphrase({}), Code::invalid_argument, "passphrase is empty");
    for (const int work : {-1, 0, 21, 64}) {
        expect_error(Recipients::of_passphrase(words("pw"), work), Code::invalid_argument,
                     "1 to 20");
        expect_error(Identities::of_passphrase(words("pw"), work), Code::invalid_argument,
                     "1 to 20");
    }
    auto recipients = person().address(), passphrase = for_passphrase("pw");
    expect_error(recipients.add(passphrase), Code::invalid_argument, "always alone");
    expect_error(passphrase.add(recipients), Code::invalid_argument, "always alone");
    expect_error(passphrase.add(for_passphrase("pw")), Code::invalid_argument, "always alone");
    auto identities = person().key(), by = by_passphrase("pw");
    expect_error(identities.add(by), Code::invalid_argument, "always alone");
    expect_error(by.add(identities), Code::invalid_argument, "always alone");
    EXPECT_EQ(must(by.recipients()), "");
}

TEST(Recipients, AThousandAndNoMore) {
    std::string recipients, identities;
    for (int i = 0; i < 1000; ++i) {
        recipients += std::string(kRecipient) + '\n';
        identities += std::string(kIdentity) + '\n';
    }
    auto all = must(Recipients::parse(recipients));
    expect_error(all.add(all), Code::limit, "more than 1000 recipients");
    expect_error(Recipients::parse(recipients + kRecipient), Code::limit,
                 "line 1001: more than 1000 recipients");
    auto keys = must(Identities::parse(words(identities)));
    expect_error(keys.add(keys), Code::limit, "more than 1000 identities");
    expect_error(Identities::parse(words(identities + kIdentity)), Code::limit,
                 "line 1001: more than 1000 identities");
    auto one = must(Identities::parse(words(kIdentity)));
    must(one.add(one));
    EXPECT_EQ(must(one.recipients()), std::string(kRecipient) + '\n' + kRecipient + '\n');
}

}  // namespace
}  // namespace dael::test
