// SPDX-License-Identifier: Apache-2.0
// Keysets as Tink writes them in JSON, unencrypted, with keys of the type AesGcmHkdfStreamingKey.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "formats/keys.hpp"

namespace dael::formats {

// Every enabled key, the primary one first. Errors: bad_format, unsupported, out_of_memory; no
// message holds anything of a key.
Result<std::vector<StreamKey>> parse_keyset(std::span<const std::uint8_t> json);

// The text with the values of its keys taken out (keyset_text.cpp): what parses it keeps copies
// that nobody wipes, so it must not see them. The `value` of key i becomes "i".
struct KeysetText {
    std::string text;
    std::vector<SecretBytes> values;  // decoded from base64
};
Result<KeysetText> take_values_out(std::span<const std::uint8_t> json);

// Base64 (RFC 4648, either alphabet, padding optional) without a branch or an index that depends on
// what it says. Errors: bad_format.
Result<SecretBytes> decode_base64(std::span<const std::uint8_t> text);

}  // namespace dael::formats
