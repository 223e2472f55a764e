// SPDX-License-Identifier: Apache-2.0
// Keysets as Tink writes them, made here, and what the tests of sealed data share.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <string>

#include <daelstrom/sealed.hpp>

#include "support/bytes.hpp"
#include "support/must.hpp"

namespace dael::test {

inline Engine engine(const std::string& backend = "openssl") {
    return must(Engine::open({.backend = backend, .threads = 2}));
}

struct KeyShape {
    Bytes key;
    std::uint64_t segment = 64, derived = 16, hash = 3;  // Tink's number: SHA-256
    std::uint64_t version = 0;
    std::string status = "ENABLED";
};

inline void put_varint(Bytes& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
    out.push_back(static_cast<std::uint8_t>(value));
}
inline void put_number(Bytes& out, int field, std::uint64_t value) {
    put_varint(out, static_cast<std::uint64_t>(field) << 3);
    put_varint(out, value);
}
inline void put_bytes(Bytes& out, int field, const Bytes& bytes) {
    put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
    put_varint(out, bytes.size());
    out.insert(out.end(), bytes.begin(), bytes.end());
}

inline Bytes key_message(const KeyShape& shape) {
    Bytes params, message;
    put_number(params, 1, shape.segment);
    put_number(params, 2, shape.derived);
    put_number(params, 3, shape.hash);
    if (shape.version != 0) put_number(message, 1, shape.version);
    put_bytes(message, 2, params);
    put_bytes(message, 3, shape.key);
    return message;
}

inline std::string base64(const Bytes& bytes) {
    std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
    text.resize(
        static_cast<std::size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                 bytes.data(), static_cast<int>(bytes.size()))));
    return text;
}

inline std::string key_json(const std::string& value, int id, const std::string& status = "ENABLED",
                            const std::string& type = "AesGcmHkdfStreamingKey") {
    return R"({"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.)" + type +
           R"(","value":")" + value + R"(","keyMaterialType":"SYMMETRIC"},"status":")" + status +
           R"(","keyId":)" + std::to_string(id) + R"(,"outputPrefixType":"RAW"})";
}

// The first key is the primary one, number 1000.
inline std::string keyset_json(const std::vector<KeyShape>& shapes, int primary = 1000) {
    std::string keys;
    for (std::size_t i = 0; i < shapes.size(); ++i)
        keys += (i ? "," : "") + key_json(base64(key_message(shapes[i])),
                                          1000 + static_cast<int>(i), shapes[i].status);
    return R"({"primaryKeyId":)" + std::to_string(primary) + R"(,"key":[)" + keys + "]}";
}

inline HostIn bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline sealed::Keys keys_of(const std::vector<KeyShape>& shapes) {
    return must(sealed::Keys::from_keyset(bytes_of(keyset_json(shapes))));
}

// Segments of 64 bytes: 48 of plaintext, 24 in the first.
inline sealed::Keys small_keys(std::uint8_t fill = 7) {
    return keys_of({{.key = Bytes(16, fill)}});
}

inline Bytes seal(Engine& engine, const sealed::Keys& keys, HostIn plain, HostIn aad = {}) {
    Bytes out(must(sealed::sealed_size(keys, plain.size())));
    must(sealed::seal(engine, keys, aad, plain, out));
    return out;
}

// What opening makes of it, or its error; checks that a forgery leaves nothing in the output, and
// that what is refused unread leaves the output alone.
inline Result<Bytes> open(Engine& engine, const sealed::Keys& keys, HostIn sealed,
                          HostIn aad = {}) {
    Bytes out(sealed.size(), 0xa5);
    auto done = sealed::open(engine, keys, aad, sealed, out);
    if (!done) {
        const bool forged = done.code() == Code::authentication;
        EXPECT_EQ(out, Bytes(out.size(), forged ? 0 : 0xa5)) << done.error().message;
        return std::move(done).error();
    }
    out.resize(done->size);
    return out;
}

}  // namespace dael::test
