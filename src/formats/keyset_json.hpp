// SPDX-License-Identifier: Apache-2.0
// What a keyset's JSON says: protobuf's mapping of google.crypto.tink.Keyset, with all that Tink's
// reader takes (numbers as strings, enumerations by name or number, fields in either spelling, null
// for what is not there) and refuses (members that are unknown or stand twice).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::formats {

// More keys than this are refused: an opener might have to try every one.
inline constexpr std::size_t kMaxKeys = 1000;

struct KeysetKeyData {
    std::string type;
    std::int32_t material = 0;
    std::span<const std::uint8_t> value;  // in base64, where it stands in the text: it is secret
};
struct KeysetKey {
    using Data = KeysetKeyData;
    std::uint32_t id = 0;
    std::int32_t status = 0, prefix = 0;
    std::optional<Data> data;
};
inline constexpr std::int32_t kEnabled = 1, kDisabled = 2, kDestroyed = 3;  // of KeyStatusType
inline constexpr std::int32_t kSymmetric = 1;                               // of KeyMaterialType
inline constexpr std::int32_t kRaw = 3;                                     // of OutputPrefixType

struct KeysetJson {
    std::uint32_t primary = 0;
    std::vector<KeysetKey> keys;
};

// Errors: bad_format; unsupported for a keyset that is encrypted; limit.
Result<KeysetJson> read_keyset(std::span<const std::uint8_t> text);

// The text again, which read_keyset() reads as the same. Returns how long it is; with `out`, which
// then has that many bytes, writes it. Values are copied as they stand, without a look at them.
std::size_t write_keyset(const KeysetJson& keyset, std::uint8_t* out);

}  // namespace dael::formats
