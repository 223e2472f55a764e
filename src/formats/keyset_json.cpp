// SPDX-License-Identifier: Apache-2.0
#include "formats/keyset_json.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "formats/json.hpp"

namespace dael::formats {
namespace {

using Bytes = std::span<const std::uint8_t>;
using Kind = JsonReader::Kind;

Error not_tinks() {
    return {Code::bad_format,
            "the keyset is not as Tink writes it: a field is missing, repeated, unknown or of "
            "another kind"};
}

// A number of `Integer`'s range, in whatever form JSON's mapping to protobuf has it.
template <class Integer>
Result<Integer> to_integer(std::string_view text) {
    double value = 0;  // which holds every integer of 32 bits
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool good = read.ec == std::errc{} && read.ptr == end &&
                      value >= static_cast<double>(std::numeric_limits<Integer>::min()) &&
                      value <= static_cast<double>(std::numeric_limits<Integer>::max()) &&
                      value == static_cast<double>(static_cast<std::int64_t>(value));
    if (!good) return not_tinks();
    return static_cast<Integer>(value);
}

// The names of enumerations' values, by number.
constexpr std::string_view kMaterials[] = {"UNKNOWN_KEYMATERIAL", "SYMMETRIC", "ASYMMETRIC_PRIVATE",
                                           "ASYMMETRIC_PUBLIC", "REMOTE"};
constexpr std::string_view kStatuses[] = {"UNKNOWN_STATUS", "ENABLED", "DISABLED", "DESTROYED"};
constexpr std::string_view kPrefixes[] = {"UNKNOWN_PREFIX",     "TINK", "LEGACY", "RAW", "CRUNCHY",
                                          "WITH_ID_REQUIREMENT"};

// Fields, each of which may also be null, and is then as if it were not there.

Result<Bytes> read_string(JsonReader& json) {
    const auto null = json.took_null();
    if (!null) return null.error();
    if (*null) return Bytes();
    if (*json.kind() != Kind::string) return not_tinks();
    return json.string();
}

Result<std::string> read_text(JsonReader& json) {
    const auto string = read_string(json);
    if (!string) return string.error();
    return json_text(*string);
}

// As a number, or as a string that holds one.
Result<std::uint32_t> read_id(JsonReader& json) {
    const auto null = json.took_null();
    if (!null) return null.error();
    if (*null) return std::uint32_t{0};
    if (*json.kind() == Kind::number) {
        const auto number = json.number();
        if (!number) return number.error();
        return to_integer<std::uint32_t>(*number);
    }
    auto text = read_text(json);
    if (!text) return std::move(text).error();
    const bool is_number = text->find_first_not_of("0123456789.eE+-") == text->npos;
    if (!is_number) return not_tinks();  // from_chars knows infinity too
    return to_integer<std::uint32_t>(*text);
}

// By name or by number. Numbers that have no name may come from a later Tink.
Result<std::int32_t> read_enum(JsonReader& json, std::span<const std::string_view> names) {
    const auto null = json.took_null();
    if (!null) return null.error();
    if (*null) return 0;
    if (*json.kind() == Kind::number) {
        const auto number = json.number();
        if (!number) return number.error();
        return to_integer<std::int32_t>(*number);
    }
    auto text = read_text(json);
    if (!text) return std::move(text).error();
    const auto found = std::ranges::find(names, *text);
    if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
    const bool is_number = text->find_first_not_of("-0123456789") == text->npos;
    if (!is_number) return not_tinks();
    return to_integer<std::int32_t>(*text);
}

// The names of a message's fields, in both ways that protobuf spells them.
struct Field {
    std::string_view name, other_name;
};

// Calls read(i), which reads field i's value, for each member. A member that is unknown or stands
// twice is an error; a field in both spellings is not.
template <class Read>
Result<> read_message(JsonReader& json, std::span<const Field> fields, Read read) {
    const auto kind = json.kind();
    if (!kind) return kind.error();
    if (*kind != Kind::object) return not_tinks();
    std::uint32_t seen = 0;  // a bit for each spelling
    return json.object([&](Bytes raw) -> Result<> {
        const std::string name = json_text(raw);
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const bool is_first = name == fields[i].name;
            if (!is_first && name != fields[i].other_name) continue;
            const std::uint32_t spelling = (is_first ? 1u : 2u) << (2 * i);
            if (seen & spelling) return not_tinks();
            seen |= spelling;
            return read(i);
        }
        return not_tinks();
    });
}

template <class T>
Result<> keep(Result<T> read, T& where) {
    if (!read) return std::move(read).error();
    where = std::move(*read);
    return {};
}

Result<> read_data(JsonReader& json, std::optional<KeysetKey::Data>& data) {
    static constexpr Field kFields[] = {
        {"typeUrl", "type_url"}, {"value", "value"}, {"keyMaterialType", "key_material_type"}};
    const auto null = json.took_null();
    if (!null) return null.error();
    if (*null) return data.reset(), Result<>();
    if (!data) data.emplace();
    return read_message(json, kFields, [&](std::size_t i) -> Result<> {
        if (i == 0) return keep(read_text(json), data->type);
        if (i == 1) return keep(read_string(json), data->value);
        // Says nothing of keys of our type, but must be a name or number.
        return keep(read_enum(json, kMaterials), data->material);
    });
}

Result<> read_key(JsonReader& json, KeysetKey& key) {
    static constexpr Field kFields[] = {{"keyData", "key_data"},
                                        {"status", "status"},
                                        {"keyId", "key_id"},
                                        {"outputPrefixType", "output_prefix_type"}};
    return read_message(json, kFields, [&](std::size_t i) -> Result<> {
        if (i == 0) return read_data(json, key.data);
        if (i == 1) return keep(read_enum(json, kStatuses), key.status);
        if (i == 2) return keep(read_id(json), key.id);
        return keep(read_enum(json, kPrefixes), key.prefix);
    });
}

Result<> read_keys(JsonReader& json, std::vector<KeysetKey>& keys) {
    const auto null = json.took_null();
    if (!null) return null.error();
    if (*null) return {};
    if (*json.kind() != Kind::array) return not_tinks();
    return json.array([&]() -> Result<> {
        if (keys.size() == kMaxKeys)
            return Error{Code::limit, "the keyset has more than " + std::to_string(kMaxKeys) +
                                          " keys, each of which an opener might have to try"};
        return read_key(json, keys.emplace_back());
    });
}

// Puts text together, or only counts it.
class Writer {
  public:
    explicit Writer(std::uint8_t* out) : out_(out) {}

    void text(std::string_view text) { bytes(std::as_bytes(std::span(text))); }
    void bytes(std::span<const std::byte> bytes) {
        if (out_ && !bytes.empty()) std::memcpy(out_ + size_, bytes.data(), bytes.size());
        size_ += bytes.size();
    }
    void number(std::int64_t number) { text(std::to_string(number)); }
    // By name, where it has one.
    void value(std::int32_t value, std::span<const std::string_view> names) {
        if (value < 0 || static_cast<std::size_t>(value) >= names.size()) return number(value);
        text("\"");
        text(names[static_cast<std::size_t>(value)]);
        text("\"");
    }
    std::size_t size() const { return size_; }

  private:
    std::uint8_t* out_;
    std::size_t size_ = 0;
};

void write_key(Writer& writer, const KeysetKey& key) {
    writer.text("    {\n");
    if (key.data) {
        writer.text("      \"keyData\": {\n        \"typeUrl\": ");
        writer.text(json_quoted(key.data->type));
        writer.text(",\n        \"value\": \"");
        writer.bytes(std::as_bytes(key.data->value));
        writer.text("\"");
        if (key.data->material != 0) {
            writer.text(",\n        \"keyMaterialType\": ");
            writer.value(key.data->material, kMaterials);
        }
        writer.text("\n      },\n");
    }
    // As protobuf has it, what is 0 is not written.
    if (key.status != 0) {
        writer.text("      \"status\": ");
        writer.value(key.status, kStatuses);
        writer.text(",\n");
    }
    if (key.prefix != 0) {
        writer.text("      \"outputPrefixType\": ");
        writer.value(key.prefix, kPrefixes);
        writer.text(",\n");
    }
    writer.text("      \"keyId\": ");
    writer.number(key.id);
    writer.text("\n    }");
}

}  // namespace

std::size_t write_keyset(const KeysetJson& keyset, std::uint8_t* out) {
    Writer writer(out);
    writer.text("{\n  \"primaryKeyId\": ");
    writer.number(keyset.primary);
    writer.text(",\n  \"key\": [");
    for (const KeysetKey& key : keyset.keys) {
        writer.text(&key == keyset.keys.data() ? "\n" : ",\n");
        write_key(writer, key);
    }
    writer.text("\n  ]\n}\n");
    return writer.size();
}

Result<KeysetJson> read_keyset(Bytes text) {
    static constexpr Field kFields[] = {{"primaryKeyId", "primary_key_id"},
                                        {"key", "key"},
                                        {"encryptedKeyset", "encrypted_keyset"},
                                        {"keysetInfo", "keyset_info"}};
    JsonReader json(text, "the keyset");
    KeysetJson keyset;
    DAEL_TRY(read_message(json, kFields, [&](std::size_t i) -> Result<> {
        if (i == 0) return keep(read_id(json), keyset.primary);
        if (i == 1) return read_keys(json, keyset.keys);
        return Error{Code::unsupported,
                     "the keyset is encrypted; write it in the clear with Tink's tool (tinkey "
                     "convert-keyset) into a file that only you can read"};
    }));
    DAEL_TRY(json.end());
    return keyset;
}

}  // namespace dael::formats
