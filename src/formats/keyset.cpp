// SPDX-License-Identifier: Apache-2.0
#include "formats/keyset.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "formats/base64.hpp"
#include "formats/keyset_json.hpp"
#include "formats/protobuf.hpp"

namespace dael::formats {
namespace {

using Bytes = std::span<const std::uint8_t>;

Error wrong(std::string what) {
    return {Code::bad_format, "the keyset " + std::move(what)};
}

std::optional<Hash> hash_of(std::uint32_t number) {  // Tink's HashType
    if (number == 1) return Hash::sha1;
    if (number == 3) return Hash::sha256;
    if (number == 4) return Hash::sha512;
    return std::nullopt;
}

// AesGcmHkdfStreamingKey: version 1, params 2, key_value 3; its params: ciphertext_segment_size 1,
// derived_key_size 2, hkdf_hash_type 3. Numbers are of 32 bits: what goes beyond is cut off, as
// protobuf does.
Result<StreamKey> parse_key(Bytes message, const std::string& name) {
    StreamKey key;
    std::uint32_t version = 0, hash = 0;
    Bytes value;
    bool damaged = false;
    ProtobufFields fields(message);
    while (fields.next()) {
        if (fields.number_of(1)) version = static_cast<std::uint32_t>(fields.number);
        if (fields.bytes_of(3)) value = fields.payload;
        if (!fields.bytes_of(2)) continue;
        ProtobufFields params(fields.payload);
        while (params.next()) {
            if (params.number_of(1)) key.segment = static_cast<std::uint32_t>(params.number);
            if (params.number_of(2)) key.derived = static_cast<std::uint32_t>(params.number);
            if (params.number_of(3)) hash = static_cast<std::uint32_t>(params.number);
        }
        damaged = damaged || params.damaged();
    }
    if (damaged || fields.damaged())
        return wrong("has " + name + ", whose value is no AesGcmHkdfStreamingKey");
    if (version != 0)
        return Error{Code::unsupported, "the keyset has " + name + " of version " +
                                            std::to_string(version) + "; daelstrom knows 0"};
    const auto known = hash_of(hash);
    if (!known)
        return Error{Code::unsupported, "the keyset has " + name + " with hash type " +
                                            std::to_string(hash) +
                                            "; there are SHA-1 (1), SHA-256 (3) and SHA-512 (4)"};
    key.hash = *known;
    auto copy = SecretBytes::copy(value);
    if (!copy) return std::move(copy).error();
    key.key = std::move(*copy);
    if (const auto fits = check(key); !fits)
        return wrong("has " + name + " with " + fits.error().message);
    return key;
}

Result<StreamKey> enabled_key(const KeysetKey& entry, const std::string& name) {
    if (entry.prefix < 1 || entry.prefix > 4)
        return wrong("has " + name +
                     " with an outputPrefixType that is none; Tink's streaming "
                     "keys have RAW");
    if (entry.data->type != kStreamType)
        return Error{Code::unsupported,
                     "the keyset has " + name +
                         " of another type; sealing takes AesGcmHkdfStreamingKey alone"};
    auto message = decode_base64(entry.data->value);
    if (message) return parse_key(message->bytes(), name);
    if (message.code() != Code::bad_format) return std::move(message).error();
    return wrong("has " + name + ", whose value is not base64");
}

std::uint8_t number_of(Hash hash) {
    return hash == Hash::sha1 ? 1 : hash == Hash::sha256 ? 3 : 4;
}

}  // namespace

Result<StreamKey> stream_key(const KeysetKey& entry) {
    const std::string name = "key " + std::to_string(entry.id);
    if (!entry.data) return wrong("has " + name + " without keyData");
    return enabled_key(entry, name);
}

Result<SecretBytes> stream_key_message(const StreamKey& key) {
    std::vector<std::uint8_t> front, params;  // all but the key itself
    const auto varint = [](std::vector<std::uint8_t>& out, std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
        out.push_back(static_cast<std::uint8_t>(value));
    };
    params.push_back(1 << 3);
    varint(params, key.segment);
    params.push_back(2 << 3);
    varint(params, key.derived);
    params.push_back(3 << 3);
    params.push_back(number_of(key.hash));
    front.push_back(2 << 3 | 2);
    varint(front, params.size());
    front.insert(front.end(), params.begin(), params.end());
    front.push_back(3 << 3 | 2);
    varint(front, key.key.bytes().size());
    auto message = SecretBytes::create(front.size() + key.key.bytes().size());
    if (!message) return message;
    std::ranges::copy(front, message->bytes().begin());
    std::ranges::copy(key.key.bytes(), message->bytes().subspan(front.size()).begin());
    return message;
}

Result<std::vector<StreamKey>> parse_keyset(Bytes text) {
    auto keyset = read_keyset(text);
    if (!keyset) return std::move(keyset).error();
    if (keyset->keys.empty()) return wrong("is not as Tink writes it: it has no key");
    // What Tink asks of every key, whether it is used or not.
    for (const KeysetKey& entry : keyset->keys) {
        if (entry.status == kDestroyed) continue;
        const std::string name = "key " + std::to_string(entry.id);
        if (!entry.data) return wrong("has " + name + " without keyData");
        if (entry.prefix == 0) return wrong("has " + name + " without an outputPrefixType");
        if (entry.status == 0) return wrong("has " + name + " without a status");
    }
    std::vector<StreamKey> keys;
    bool found = false;
    for (const KeysetKey& entry : keyset->keys) {
        if (entry.status != kEnabled) continue;
        const std::string name = "key " + std::to_string(entry.id);
        auto key = enabled_key(entry, name);
        if (!key) return std::move(key).error();
        const bool is_primary = entry.id == keyset->primary;
        if (is_primary && found)
            return wrong("has two enabled keys with the number of its primary key, " +
                         std::to_string(entry.id));
        found = found || is_primary;
        keys.insert(is_primary ? keys.begin() : keys.end(), std::move(*key));
    }
    if (!found) return wrong("has no enabled key with the number that it calls its primary key");
    return keys;
}

}  // namespace dael::formats
