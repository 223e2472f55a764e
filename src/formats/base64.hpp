// SPDX-License-Identifier: Apache-2.0
// Base64 (RFC 4648) of secrets.
#pragma once

#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>

#include "formats/secret_bytes.hpp"

namespace dael::formats {

// Of a string as it stands in JSON, with or without escapes; either alphabet, padding or none,
// white space anywhere. No branch and no index depends on which letter or digit stands where.
// Errors: bad_format, out_of_memory.
Result<SecretBytes> decode_base64(std::span<const std::uint8_t> string);
// In the usual alphabet, with padding, as careful. Errors: out_of_memory.
Result<SecretBytes> encode_base64(std::span<const std::uint8_t> bytes);

}  // namespace dael::formats
