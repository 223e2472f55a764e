// SPDX-License-Identifier: Apache-2.0
// Tink's keysets: what is taken, and what is refused with which words.
#include <fstream>
#include <optional>

#include "formats/base64.hpp"
#include "formats/json.hpp"
#include "formats/keys.hpp"
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

TEST(Keyset, TheKeyThatSealsAlone) {
    auto e = engine();
    const KeyShape one{.key = Bytes(16, 1)},
        two{.key = Bytes(32, 2), .segment = 500, .derived = 32};
    auto all = std::make_optional(
        must(sealed::Keys::from_keyset(bytes_of(keyset_json({one, two}, 1001)))));
    const auto primary = must(all->sealing());
    EXPECT_EQ(primary.segment(), 500u);
    const Bytes by_one = seal(e, keys_of({one}), pattern(999)),
                by_all = seal(e, *all, pattern(999));
    all.reset();  // it has a copy
    EXPECT_EQ(must(open(e, primary, by_all)), pattern(999));
    EXPECT_FALSE(open(e, primary, by_one));
    EXPECT_EQ(must(open(e, keys_of({two}), seal(e, primary, pattern(998)))), pattern(998));
    // Of a bare key, the size of its segments that it seals with.
    const auto bare = must(must(sealed::Keys::from_key(Bytes(32, 5), 4096)).sealing());
    EXPECT_EQ(must(open(e, bare, seal(e, bare, pattern(9000)))), pattern(9000));
    EXPECT_FALSE(open(e, bare, seal(e, must(sealed::Keys::from_key(Bytes(32, 5))), pattern(9000))));
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
    const std::string broken = " " + value.substr(0, 7) + "\\r\\n" + value.substr(7) + "\\t";
    for (const auto& other : {escaped, url, bare, broken}) {
        const auto keys = sealed::Keys::from_keyset(bytes_of(replaced(plain, value, other)));
        ASSERT_TRUE(keys) << other;
        EXPECT_EQ(must(open(e, *keys, made)), pattern(50));
    }
    const auto spaced = sealed::Keys::from_keyset(
        bytes_of(replaced("\n" + plain + "\n", "\"value\":", "\"value\" \t:\r\n ")));
    ASSERT_TRUE(spaced);
    EXPECT_EQ(must(open(e, *spaced, made)), pattern(50));
}

// The same with stock Tink: tests/tink/keysets_test.py.
TEST(Keyset, InEveryFormThatProtobufGivesIt) {
    auto e = engine();
    const std::string plain = keyset_json({kGood});
    const Bytes made = seal(e, keys_of({kGood}), pattern(50));
    for (const auto& [what, by] : std::initializer_list<std::pair<const char*, const char*>>{
             {"\"primaryKeyId\":1000", "\"primaryKeyId\":\"1000\""},
             {"\"primaryKeyId\":1000", "\"primaryKeyId\":1.0e3"},
             {"\"primaryKeyId\":1000", "\"primary_key_id\":1000"},
             {"\"keyId\":1000", "\"key_id\":\"1000\""},
             {"\"ENABLED\"", "1"},
             {"\"SYMMETRIC\"", "\"1\""},
             {"\"RAW\"", "3"},
             {"\"RAW\"", "\"TINK\""},
             {",\"keyMaterialType\":\"SYMMETRIC\"", ""}}) {
        const auto keys = sealed::Keys::from_keyset(bytes_of(replaced(plain, what, by)));
        ASSERT_TRUE(keys) << what << " as " << by << ": " << keys.error().message;
        EXPECT_EQ(must(open(e, *keys, made)), pattern(50));
    }
}

TEST(Keyset, TextThatIsNone) {
    refused("", Code::bad_format, "not JSON");
    refused("{", Code::bad_format, "not JSON");
    refused("[]", Code::bad_format, "not as Tink writes it");
    refused("{}", Code::bad_format, "not as Tink writes it");
    refused("{\"", Code::bad_format, "not JSON");
    refused("{\"\\", Code::bad_format, "not JSON");
    refused("{\"value\":\"", Code::bad_format, "not as Tink");
    const std::string good = keyset_json({kGood});
    refused("\xef\xbb\xbf" + good, Code::bad_format, "not JSON");
    refused(good + "x", Code::bad_format, "not JSON");
    for (std::size_t size = 0; size < good.size(); ++size)
        EXPECT_FALSE(sealed::Keys::from_keyset(bytes_of(good.substr(0, size)))) << size;
    refused(replaced(good, "\"keyId\":1000", "\"keyId\":\"1000x\""), Code::bad_format,
            "not as Tink");
    refused(replaced(good, "\"keyId\":1000", "\"keyId\":4294967296"), Code::bad_format,
            "not as Tink");
    refused(replaced(good, "\"keyId\"", "\"keyId\":1000,\"keyId\""), Code::bad_format, "repeated");
    refused(replaced(good, "\"keyId\"", "\"new\":1000,\"keyId\""), Code::bad_format, "unknown");
    refused(replaced(good, "\"keyId\":1000", "\"keyId\":-1000"), Code::bad_format, "not as Tink");
    refused(replaced(good, "\"value\"", "\"valve\""), Code::bad_format, "not as Tink");
    refused(replaced(good, "\"ENABLED\"", "\"enabled\""), Code::bad_format, "not as Tink");
    refused(replaced(good, "\"SYMMETRIC\"", "\"nonsense\""), Code::bad_format, "not as Tink");
    refused(replaced(good, "\"RAW\"", "\"nonsense\""), Code::bad_format, "not as Tink");
}

TEST(Keyset, KeysThatCannotBeUsed) {
    const std::string good = keyset_json({kGood});
    refused(R"({"encryptedKeyset":"AAAA","keysetInfo":{}})", Code::unsupported, "encrypted");
    refused(replaced(good, "AesGcmHkdfStreamingKey", "AesCtrHmacStreamingKey"), Code::unsupported,
            "key 1000 of another type");
    refused(keyset_json({kGood}, 7), Code::bad_format, "primary");
    refused(keyset_json({}), Code::bad_format, "no key");
    refused(keyset_json({KeyShape{.key = Bytes(16), .status = "DISABLED"}}), Code::bad_format,
            "primary");
    const auto shape = [](KeyShape s) { return keyset_json({s}); };
    refused(shape({.key = Bytes(15)}), Code::bad_format, "a key of 15 bytes");
    refused(shape({.key = Bytes(31), .derived = 32}), Code::bad_format, "a key of 31 bytes");
    refused(shape({.key = Bytes(32), .derived = 24}), Code::bad_format, "derived key of 24");
    refused(shape({.key = Bytes(32), .derived = 1ull << 60}), Code::bad_format, "derived key of");
    refused(shape({.key = Bytes(16), .segment = 40}), Code::bad_format, "segments of 40 bytes");
    refused(shape({.key = Bytes(16), .segment = 1ull << 31}), Code::bad_format, "at most");
    refused(shape({.key = Bytes(16), .segment = (64ull << 20) + 1}), Code::bad_format, "at most");
    refused(shape({.key = Bytes(16), .hash = 0}), Code::unsupported, "hash type 0");
    refused(shape({.key = Bytes(16), .hash = 2}), Code::unsupported, "hash type 2");
    refused(shape({.key = Bytes(16), .version = 1}), Code::unsupported, "version 1");
    refused(replaced(good, ",\"outputPrefixType\":\"RAW\"", ""), Code::bad_format,
            "key 1000 without an outputPrefixType");
    refused(replaced(good, "\"RAW\"", "5"), Code::bad_format, "key 1000 with an outputPrefixType");
    const std::string two = keyset_json({kGood, kGood});
    refused(replaced(two, "\"keyId\":1001", "\"keyId\":1000"), Code::bad_format,
            "two enabled keys");
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

// Bytes of address space that this process has had at the most; 0 where that cannot be known.
std::uint64_t peak() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (std::uint64_t kibi = 0; word == "VmPeak:" && status >> kibi) return kibi << 10;
    return 0;
}

// Secrets lie in locked pages, so that nobody may have them made by the thousand.
TEST(Keyset, ManyValuesCostNoMoreThanTheirText) {
    const std::uint64_t before = peak();
    if (before == 0) GTEST_SKIP() << "no /proc to ask";
    std::string values = "{\"primaryKeyId\":1,\"key\":[";
    for (int i = 0; i < 90'000; ++i) values += "{\"value\":\"\"},";
    refused(values + "{}]}", Code::bad_format, "not as Tink");
    std::string members = "{\"key\":[{\"keyData\":{";
    for (int i = 0; i < 90'000; ++i) members += "\"value\":\"\",";
    refused(members + "\"value\":\"\"}}]}", Code::bad_format, "not as Tink");
    std::string keys = "{\"primaryKeyId\":1,\"key\":[";
    for (int i = 0; i < 10'000; ++i) keys += key_json("AAAA", i) + ",";
    refused(keys + "{}]}", Code::limit, "more than 1000 keys");
    EXPECT_LT(peak() - before, std::uint64_t{32} << 20);
}

TEST(Keyset, AThousandKeysAreTaken) {
    const auto keys = sealed::Keys::from_keyset(
        bytes_of(keyset_json(std::vector<KeyShape>(1000, {.key = Bytes(16, 5)}))));
    ASSERT_TRUE(keys) << keys.error().message;
    EXPECT_EQ(keys->state().keys.size(), 1000u);
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
    EXPECT_EQ(good, 64 + 2 + 1 + 1);  // both alphabets, padding, and a space
}

TEST(Json, CharactersAndTheirEscapes) {
    const auto is = [](const std::string& string, const std::string& text) {
        const std::string quoted = "\"" + string + "\"";
        const auto read = formats::JsonReader(bytes_of(quoted), "it").string();
        ASSERT_TRUE(read) << string;
        EXPECT_EQ(formats::json_text(*read), text);
    };
    is("", "");
    is("plain", "plain");
    is(R"(\"\\\/\b\f\n\r\t)", "\"\\/\b\f\n\r\t");
    is(R"(\u0041\u00e9\u20AC\ud83d\udd11)", "A\u00e9\u20ac\U0001f511");
    is("\u00e9\u20ac\U0001f511", "\u00e9\u20ac\U0001f511");
    for (const char* none :
         {"\"", "\"\\\"", "\"\\x\"", "\"\\u00g0\"", "\"\\u004\"", "\"\\ud800\"", "\"\\ud800x\"",
          "\"\\ud800\\n\"", "\"\\udd11\"", "\"\\ud800\\u0041\"", "\"\n\"", "\"\x80\"",
          "\"\xc0\x80\"", "\"\xe0\x80\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
          "\"\xc3\"", "\"\xe2\x82\"", "\"\xff\""})
        EXPECT_FALSE(formats::JsonReader(bytes_of(none), "it").string()) << none;
}

}  // namespace
}  // namespace dael::test
