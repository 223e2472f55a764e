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
inline constexpr std::size_t kMostKeys = 1000;

struct KeysetKey {
    std::uint32_t id = 0;
    std::int32_t status = 0, prefix = 0;
    struct Data {
        std::string type;
        std::span<const std::uint8_t>
            value;  // in base64, where it stands in the text: it is secret
    };
    std::optional<Data> data;
};
inline constexpr std::int32_t kEnabled = 1, kDestroyed = 3;  // of KeyStatusType

struct KeysetJson {
    std::uint32_t primary = 0;
    std::vector<KeysetKey> keys;
};

// Errors: bad_format; unsupported for a keyset that is encrypted; limit.
Result<KeysetJson> read_keyset(std::span<const std::uint8_t> text);

}  // namespace dael::formats
