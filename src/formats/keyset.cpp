// SPDX-License-Identifier: Apache-2.0
#include "formats/keyset.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

namespace dael::formats {
namespace {

using nlohmann::json;
using Bytes = std::span<const std::uint8_t>;

constexpr std::string_view kType = "type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey";

Error wrong(std::string what) {
    return {Code::bad_format, "the keyset " + std::move(what)};
}

// A message in protobuf's encoding, field by field. What it branches on are tags, lengths and
// numbers, never the bytes of a key.
class Fields {
  public:
    explicit Fields(Bytes bytes) : bytes_(bytes) {}

    // The next field; false at the end, or where the encoding is none (then damaged() is true).
    bool next() {
        number = 0;
        payload = {};
        std::uint64_t tag = 0;
        if (bytes_.empty() || !read(tag)) return false;
        field = tag >> 3;
        if ((tag & 7) == 0) return read(number);
        if ((tag & 7) != 2 || !read(number)) return fail();
        if (number > bytes_.size()) return fail();
        payload = bytes_.first(number);
        bytes_ = bytes_.subspan(number);
        return true;
    }
    bool damaged() const { return damaged_; }

    std::uint64_t field = 0, number = 0;
    Bytes payload;

  private:
    bool fail() {
        damaged_ = true;
        return false;
    }
    bool read(std::uint64_t& value) {  // a varint
        value = 0;
        for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
            const std::uint8_t byte = bytes_[0];
            bytes_ = bytes_.subspan(1);
            value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return true;
        }
        return fail();
    }

    Bytes bytes_;
    bool damaged_ = false;
};

std::optional<Hash> hash_of(std::uint64_t number) {  // Tink's HashType
    if (number == 1) return Hash::sha1;
    if (number == 3) return Hash::sha256;
    if (number == 4) return Hash::sha512;
    return std::nullopt;
}

std::uint32_t saturated(std::uint64_t number) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, 0xffffffff));
}

// AesGcmHkdfStreamingKey: version 1, params 2, key_value 3; its params: ciphertext_segment_size 1,
// derived_key_size 2, hkdf_hash_type 3.
Result<StreamKey> parse_key(Bytes message, const std::string& name) {
    StreamKey key;
    std::uint64_t version = 0, hash = 0;
    Fields fields(message);
    bool damaged = false;
    while (fields.next()) {
        if (fields.field == 1) version = fields.number;
        if (fields.field == 2) {
            Fields params(fields.payload);
            while (params.next()) {
                if (params.field == 1) key.segment = saturated(params.number);
                if (params.field == 2) key.derived = saturated(params.number);
                if (params.field == 3) hash = params.number;
            }
            damaged = damaged || params.damaged();
        }
        if (fields.field == 3) {
            auto copy = SecretBytes::copy(fields.payload);
            if (!copy) return std::move(copy).error();
            key.key = std::move(*copy);
        }
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
    if (const auto fits = check(key); !fits)
        return wrong("has " + name + " with " + fits.error().message);
    return key;
}

// Throws what json throws for other kinds.
std::uint32_t id_at(const json& object, const char* field) {
    const json& id = object.at(field);
    if (!id.is_number_unsigned()) throw std::invalid_argument(field);
    return saturated(id.get<std::uint64_t>());
}

Result<std::vector<StreamKey>> parse(const KeysetText& taken) {
    const json document = json::parse(taken.text);
    if (document.contains("encryptedKeyset"))
        return Error{Code::unsupported,
                     "the keyset is encrypted; write it in the clear with Tink's tool (tinkey "
                     "convert-keyset) into a file that only you can read"};
    const auto primary = id_at(document, "primaryKeyId");
    std::vector<StreamKey> keys;
    bool found = false;
    for (const json& object : document.at("key")) {
        const auto id = id_at(object, "keyId");
        const std::string name = "key " + std::to_string(id);
        if (object.at("status").get<std::string>() != "ENABLED") continue;
        const json& data = object.at("keyData");
        if (data.at("typeUrl").get<std::string>() != kType)
            return Error{Code::unsupported,
                         "the keyset has " + name +
                             " of another type; sealing takes AesGcmHkdfStreamingKey alone"};
        const std::size_t index = std::stoul(data.at("value").get<std::string>());
        auto key = parse_key(taken.values.at(index).bytes(), name);
        if (!key) return std::move(key).error();
        const bool first = id == primary && !found;
        found = found || first;
        keys.insert(first ? keys.begin() : keys.end(), std::move(*key));
    }
    if (!found) return wrong("has no enabled key with the number that it calls its primary key");
    return keys;
}

}  // namespace

Result<std::vector<StreamKey>> parse_keyset(Bytes text) {
    auto taken = take_values_out(text);
    if (!taken) return std::move(taken).error();
    // The parser's own messages are left out: they repeat what they stumble over.
    try {
        return parse(*taken);
    } catch (const json::parse_error&) {
        return wrong("is not JSON");
    } catch (const json::exception&) {
        return wrong("is not as Tink writes it: a field is missing or of another kind");
    } catch (const std::logic_error&) {  // a value that was none of those taken out
        return wrong("is not as Tink writes it: a field is missing or of another kind");
    }
}

}  // namespace dael::formats
