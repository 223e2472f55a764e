// SPDX-License-Identifier: Apache-2.0
// Keysets that are made and changed: what comes out is what went in but for the change, and can be
// sealed with. Stock Tink reads the same in tests/tink/interop_test.py.
#include <array>
#include <set>

#include <daelstrom/sealed_keys.hpp>

#include "formats/base64.hpp"
#include "formats/keysets.hpp"

namespace dael::test {
namespace {

using sealed::Keyset;
using Status = Keyset::Status;

std::string text_of(const Keyset& keyset) {
    std::string text(keyset.json_size(), '\0');
    must(keyset.write_json({reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
    return text;
}

sealed::Keys usable(const Keyset& keyset) {
    return must(sealed::Keys::from_keyset(bytes_of(text_of(keyset))));
}

Keyset parsed(const std::string& json) {
    return must(Keyset::parse(bytes_of(json)));
}

void refused(const Result<>& done, const std::string& says) {
    ASSERT_FALSE(done) << says;
    EXPECT_EQ(done.code(), Code::invalid_argument);
    EXPECT_NE(done.error().message.find(says), std::string::npos) << done.error().message;
}

TEST(KeysetEdit, ANewKeyOfEachTemplate) {
    auto e = engine();
    constexpr std::array<std::uint32_t, 4> kSegments{1 << 20, 4096, 1 << 20, 4096};
    for (std::size_t i = 0; i < sealed::kTemplates.size(); ++i) {
        Keyset keyset;
        EXPECT_TRUE(keyset.entries().empty());
        const std::uint32_t id = must(keyset.add(sealed::kTemplates[i]));
        const auto entries = keyset.entries();
        ASSERT_EQ(entries.size(), 1u);
        EXPECT_EQ(entries[0].id, id);
        EXPECT_EQ(entries[0].status, Status::enabled);
        EXPECT_TRUE(entries[0].primary);
        EXPECT_EQ(entries[0].type, "AesGcmHkdfStreamingKey");
        EXPECT_EQ(entries[0].shape, sealed::kTemplates[i]);
        const auto keys = usable(keyset);
        EXPECT_EQ(keys.segment(), kSegments[i]);
        const Bytes made = seal(e, keys, pattern(5000));
        EXPECT_EQ(made[0], i < 2 ? 40 : 24);
        EXPECT_EQ(must(open(e, keys, made)), pattern(5000));
        EXPECT_FALSE(open(e, usable([] {
                              Keyset other;
                              must(other.add());
                              return other;
                          }()),
                          made));
    }
    Keyset keyset;
    const auto none = keyset.add("AES192_GCM_HKDF_1MB");
    EXPECT_EQ(none.code(), Code::invalid_argument);
    EXPECT_NE(none.error().message.find("there are AES256_GCM_HKDF_1MB"), std::string::npos);
    EXPECT_TRUE(keyset.entries().empty());
}

TEST(KeysetEdit, Rotation) {
    auto e = engine();
    Keyset keyset;
    const std::uint32_t old = must(keyset.add());
    const Bytes before = seal(e, usable(keyset), pattern(99));
    const std::uint32_t next = must(keyset.add("AES128_GCM_HKDF_4KB"));
    EXPECT_NE(old, next);
    EXPECT_EQ(seal(e, usable(keyset), pattern(9))[0], 40);  // still the old one
    must(keyset.promote(next));
    keyset = parsed(text_of(keyset));
    const Bytes after = seal(e, usable(keyset), pattern(98));
    EXPECT_EQ(after[0], 24);
    EXPECT_EQ(must(open(e, usable(keyset), before)), pattern(99));
    must(keyset.disable(old));
    must(keyset.disable(old));
    keyset = parsed(text_of(keyset));
    EXPECT_FALSE(open(e, usable(keyset), before));
    EXPECT_EQ(must(open(e, usable(keyset), after)), pattern(98));
    must(keyset.enable(old));
    EXPECT_EQ(must(open(e, usable(keyset), before)), pattern(99));
    must(keyset.remove(old));
    EXPECT_EQ(keyset.entries().size(), 1u);
    EXPECT_FALSE(open(e, usable(keyset), before));
}

TEST(KeysetEdit, WhatIsRefusedChangesNothing) {
    Keyset keyset;
    const std::uint32_t primary = must(keyset.add()), other = must(keyset.add());
    must(keyset.disable(other));
    const std::string before = text_of(keyset);
    const std::string number = "key " + std::to_string(primary);
    refused(keyset.disable(primary), number + " is the primary one");
    refused(keyset.remove(primary), "promote another one first");
    refused(keyset.promote(other), "is not enabled");
    std::uint32_t absent = 1;
    while (absent == primary || absent == other) ++absent;
    for (auto change : {&Keyset::promote, &Keyset::enable, &Keyset::disable, &Keyset::remove})
        refused((keyset.*change)(absent), "has no key " + std::to_string(absent));
    EXPECT_EQ(text_of(keyset), before);
    std::string small(before.size() - 1, '\0');
    EXPECT_EQ(
        keyset.write_json({reinterpret_cast<std::uint8_t*>(small.data()), small.size()}).code(),
        Code::invalid_argument);
}

TEST(KeysetEdit, ANumberThatTwoKeysHave) {
    std::string two = keyset_json({{.key = Bytes(16, 1)},
                                   {.key = Bytes(16, 2)},
                                   {.key = Bytes(16, 3), .status = "DISABLED"}});
    two.replace(two.rfind("1002"), 4, "1001");
    Keyset keyset = parsed(two);
    refused(keyset.enable(1001), "two keys with the number 1001");
    must(keyset.promote(1000));
}

// What is not the change stays as it is: keys of other types, later states, escapes in values.
TEST(KeysetEdit, WhatIsNotUnderstoodIsTakenAlong) {
    const std::string value = base64(key_message({.key = Bytes(16, 0xff)}));
    std::string escaped;
    for (const char c : value)
        escaped += c == '/' ? "\\/" : c == '+' ? "\\u002B" : std::string(1, c);
    const std::string json =
        R"({"primary_key_id":"1","key":[)" + key_json(escaped, 1) + "," +
        R"({"keyId":2,"status":17,"outputPrefixType":9,"keyData":{"typeUrl":"a\"b\\c\u0001\u00e9",)"
        R"("keyMaterialType":4}},{"keyId":3,"status":"DESTROYED"},)" +
        key_json("AAAA", 4, "DISABLED", "AesGcmKey") + "]}";
    Keyset keyset = parsed(json);
    const std::string text = text_of(keyset);
    EXPECT_EQ(text_of(parsed(text)), text);
    EXPECT_NE(text.find("\"" + escaped + "\""), std::string::npos) << text;
    EXPECT_NE(text.find(R"("typeUrl": "a\"b\\c\u0001)"
                        "\xc3\xa9\""),
              std::string::npos)
        << text;
    for (const char* part : {"\"status\": 17", "\"outputPrefixType\": 9", "\"REMOTE\"",
                             "\"DESTROYED\"", "\"primaryKeyId\": 1,"})
        EXPECT_NE(text.find(part), std::string::npos) << part;
    const auto entries = keyset.entries();
    ASSERT_EQ(entries.size(), 4u);
    EXPECT_EQ(entries[0].shape, "AES128_GCM_HKDF, SHA256, a key of 16 bytes, segments of 64");
    EXPECT_EQ(static_cast<int>(entries[1].status), 17);
    EXPECT_EQ(entries[1].shape, "");
    EXPECT_EQ(entries[2].type, "");
    EXPECT_EQ(entries[3].type, "AesGcmKey");
    refused(keyset.enable(3), "was destroyed");
    refused(keyset.disable(3), "was destroyed");
    must(keyset.remove(3));
    EXPECT_EQ(keyset.entries().size(), 3u);
}

TEST(KeysetEdit, ABrokenPrimaryKeyCanBeMended) {
    Keyset keyset = parsed(keyset_json({{.key = Bytes(16, 1)}}, 7));
    EXPECT_FALSE(sealed::Keys::from_keyset(bytes_of(text_of(keyset))));
    must(keyset.promote(1000));
    usable(keyset);
    keyset = parsed(keyset_json({{.key = Bytes(16, 1), .status = "DISABLED"}}));
    const std::uint32_t added = must(keyset.add());
    EXPECT_TRUE(keyset.entries()[1].primary);
    EXPECT_EQ(keyset.entries()[1].id, added);
    usable(keyset);
}

TEST(KeysetEdit, TextThatIsNone) {
    for (const char* text : {"", "{", "[]", "{}", R"({"primaryKeyId":1})", R"({"key":[]})"})
        EXPECT_EQ(Keyset::parse(bytes_of(text)).code(), Code::bad_format) << text;
    EXPECT_EQ(Keyset::parse(bytes_of(R"({"encryptedKeyset":"AA=="})")).code(), Code::unsupported);
}

TEST(KeysetEdit, AThousandKeysAndNoMore) {
    Keyset keyset;
    std::set<std::uint32_t> ids;
    for (int i = 0; i < 1000; ++i) ids.insert(must(keyset.add()));
    EXPECT_EQ(ids.size(), 1000u);
    EXPECT_FALSE(ids.contains(0));
    EXPECT_EQ(keyset.add().code(), Code::limit);
}

TEST(KeysetEdit, Base64AgainstOpenSSL) {
    for (std::size_t size = 0; size < 200; ++size) {
        const Bytes bytes = random_bytes(size, static_cast<std::uint32_t>(size));
        const auto encoded = must(formats::encode_base64(bytes));
        EXPECT_EQ(std::string(encoded.bytes().begin(), encoded.bytes().end()), base64(bytes));
    }
    Bytes all(48);  // every digit
    for (std::size_t i = 0; i < 16; ++i) {
        const unsigned quad =
            static_cast<unsigned>(4 * i) << 18 | static_cast<unsigned>(4 * i + 1) << 12 |
            static_cast<unsigned>(4 * i + 2) << 6 | static_cast<unsigned>(4 * i + 3);
        for (std::size_t j = 0; j < 3; ++j)
            all[3 * i + j] = static_cast<std::uint8_t>(quad >> (16 - 8 * j));
    }
    const auto digits = must(formats::encode_base64(all));
    EXPECT_EQ(std::string(digits.bytes().begin(), digits.bytes().end()),
              "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
}

}  // namespace
}  // namespace dael::test
