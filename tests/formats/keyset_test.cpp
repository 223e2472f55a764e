// SPDX-License-Identifier: Apache-2.0
// Tink's keysets: what is taken, and what is refused with which words.
#include "formats/keyset.hpp"

#include "formats/keysets.hpp"

namespace dael::test {
namespace {

const KeyShape kGood{.key = Bytes(16, 0x42)};

void refused(const std::string& json, Code code, const std::string& says) {
    const auto keys = sealed::Keys::from_keyset(bytes_of(json));
    ASSERT_FALSE(keys) << json;
    EXPECT_EQ(keys.code(), code) << keys.error().message;
    EXPECT_NE(keys.error().message.find(says), std::string::npos) << keys.error().message;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const auto at = text.find(what);
    if (at == text.npos) throw std::runtime_error("no " + what + " in " + text);
    return text.replace(at, what.size(), by);
}

TEST(Keyset, ThePrimaryKeySealsAndEveryEnabledOneOpens) {
    auto e = engine();
    const KeyShape one{.key = Bytes(16, 1)}, two{.key = Bytes(32, 2), .derived = 32},
        off{.key = Bytes(16, 3), .status = "DISABLED"};
    const auto keys = must(sealed::Keys::from_keyset(bytes_of(keyset_json({one, two, off}, 1001))));
    const Bytes made = seal(e, keys, pattern(100));
    EXPECT_EQ(must(open(e, keys_of({two}), made)), pattern(100));
    EXPECT_FALSE(open(e, keys_of({one}), made));
    EXPECT_EQ(must(open(e, keys, seal(e, keys_of({one}), pattern(99)))), pattern(99));
    EXPECT_FALSE(open(e, keys, seal(e, keys_of({KeyShape{.key = Bytes(16, 3)}}), pattern(99))));
}

TEST(Keyset, AsDifferentWritersWriteIt) {
    auto e = engine();
    const KeyShape shape{.key = Bytes(16, 0xff)};  // gives + and / in base64
    const Bytes made = seal(e, keys_of({shape}), pattern(50));
    const std::string value = base64(key_message(shape)), plain = keyset_json({shape});
    std::string escaped, url = value, bare = value;
    for (const char c : value)
        escaped += c == '='   ? "\\u003d"
                   : c == '/' ? "\\/"
                   : c == '+' ? "\\u002B"
                              : std::string(1, c);
    ASSERT_NE(escaped, value);
    std::ranges::replace(url, '+', '-');
    std::ranges::replace(url, '/', '_');
    while (bare.back() == '=') bare.pop_back();
    for (const auto& other : {escaped, url, bare}) {
        const auto keys = sealed::Keys::from_keyset(bytes_of(replaced(plain, value, other)));
        ASSERT_TRUE(keys) << other;
        EXPECT_EQ(must(open(e, *keys, made)), pattern(50));
    }
    const auto spaced = sealed::Keys::from_keyset(
        bytes_of(replaced("\n" + plain + "\n", "\"value\":", "\"value\" \t:\r\n ")));
    ASSERT_TRUE(spaced);
    EXPECT_EQ(must(open(e, *spaced, made)), pattern(50));
}

TEST(Keyset, TextThatIsNone) {
    refused("", Code::bad_format, "not JSON");
    refused("{", Code::bad_format, "not JSON");
    refused("[]", Code::bad_format, "not as Tink writes it");
    refused("{}", Code::bad_format, "not as Tink writes it");
    refused("\"", Code::bad_format, "string does not end");
    refused("\"\\", Code::bad_format, "string does not end");
    refused("{\"value\":\"", Code::bad_format, "string does not end");
    const std::string good = keyset_json({kGood});
    for (std::size_t size = 0; size < good.size(); ++size)
        EXPECT_FALSE(sealed::Keys::from_keyset(bytes_of(good.substr(0, size)))) << size;
    refused(replaced(good, "\"keyId\":1000", "\"keyId\":\"1000\""), Code::bad_format,
            "not as Tink");
    refused(replaced(good, "\"keyId\":1000", "\"keyId\":-1000"), Code::bad_format, "not as Tink");
    refused(replaced(good, "\"value\"", "\"valve\""), Code::bad_format, "not as Tink");
    refused(replaced(good, "\"status\":\"ENABLED\"", "\"status\":1"), Code::bad_format,
            "not as Tink");
}

TEST(Keyset, KeysThatCannotBeUsed) {
    const std::string good = keyset_json({kGood});
    refused(R"({"encryptedKeyset":"AAAA","keysetInfo":{}})", Code::unsupported, "encrypted");
    refused(replaced(good, "AesGcmHkdfStreamingKey", "AesCtrHmacStreamingKey"), Code::unsupported,
            "key 1000 of another type");
    refused(keyset_json({kGood}, 7), Code::bad_format, "primary");
    refused(keyset_json({}), Code::bad_format, "primary");
    refused(keyset_json({KeyShape{.key = Bytes(16), .status = "DISABLED"}}), Code::bad_format,
            "primary");
    const auto shape = [](KeyShape s) { return keyset_json({s}); };
    refused(shape({.key = Bytes(15)}), Code::bad_format, "a key of 15 bytes");
    refused(shape({.key = Bytes(31), .derived = 32}), Code::bad_format, "a key of 31 bytes");
    refused(shape({.key = Bytes(32), .derived = 24}), Code::bad_format, "derived key of 24");
    refused(shape({.key = Bytes(32), .derived = 1ull << 60}), Code::bad_format, "derived key of");
    refused(shape({.key = Bytes(16), .segment = 40}), Code::bad_format, "segments of 40 bytes");
    refused(shape({.key = Bytes(16), .segment = 1ull << 40}), Code::bad_format, "at most");
    refused(shape({.key = Bytes(16), .segment = (64ull << 20) + 1}), Code::bad_format, "at most");
    refused(shape({.key = Bytes(16), .hash = 0}), Code::unsupported, "hash type 0");
    refused(shape({.key = Bytes(16), .hash = 2}), Code::unsupported, "hash type 2");
    refused(shape({.key = Bytes(16), .version = 1}), Code::unsupported, "version 1");
    EXPECT_TRUE(sealed::Keys::from_keyset(bytes_of(shape({.key = Bytes(16), .segment = 41}))));
}

TEST(Keyset, ValuesThatAreNoKey) {
    const Bytes message = key_message(kGood);
    const auto with = [](const std::string& value) {
        return R"({"primaryKeyId":1000,"key":[)" + key_json(value, 1000) + "]}";
    };
    for (const char* value :
         {"!", "A", "AAAAA", "AA=A", "A===", "AAA\\n", "AAA\\u00e9", "AAA\\u", "\\"})
        EXPECT_FALSE(sealed::Keys::from_keyset(bytes_of(with(value)))) << value;
    refused(with("AAA*"), Code::bad_format, "not base64");
    refused(with(""), Code::unsupported, "hash type 0");  // an empty message is one, without fields
    for (std::size_t size = 1; size < message.size(); ++size)  // cut anywhere
        EXPECT_FALSE(sealed::Keys::from_keyset(bytes_of(with(
            base64(Bytes(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size)))))))
            << size;
    Bytes endless = message;
    endless.insert(endless.end(), 11, 0xff);  // a varint without an end
    refused(with(base64(endless)), Code::bad_format, "no AesGcmHkdfStreamingKey");
}

// What parses the text keeps copies that nobody wipes, so no key may be in it.
TEST(Keyset, TheParserNeverSeesAKey) {
    const std::string value = base64(key_message(kGood));
    const auto taken = must(formats::take_values_out(bytes_of(keyset_json({kGood, kGood}))));
    EXPECT_EQ(taken.text.find(value), taken.text.npos);
    EXPECT_NE(taken.text.find("\"value\":\"1\""), taken.text.npos);
    ASSERT_EQ(taken.values.size(), 2u);
    EXPECT_EQ(Bytes(taken.values[1].bytes().begin(), taken.values[1].bytes().end()),
              key_message(kGood));
}

TEST(Keyset, Base64AgainstOpenSSL) {
    for (std::size_t size = 0; size < 200; ++size) {
        const Bytes bytes = random_bytes(size, static_cast<std::uint32_t>(size));
        const auto decoded = must(formats::decode_base64(bytes_of(base64(bytes))));
        EXPECT_EQ(Bytes(decoded.bytes().begin(), decoded.bytes().end()), bytes);
    }
    int good = 0;
    for (int c = 0; c < 256; ++c) {
        const std::string text = "AAA" + std::string(1, static_cast<char>(c));
        good += static_cast<bool>(formats::decode_base64(bytes_of(text)));
    }
    EXPECT_EQ(good, 64 + 2 + 1);  // the alphabet, the other alphabet's two, and padding
}

}  // namespace
}  // namespace dael::test
