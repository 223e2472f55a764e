// SPDX-License-Identifier: Apache-2.0
// HKDF (RFC 5869).
#pragma once

#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>

namespace dael::formats {

enum class Hash { sha1, sha256, sha512 };

// Fills `out`, at most 255 digests of it. `info` may be of any length.
Result<> hkdf(Hash hash, std::span<const std::uint8_t> key, std::span<const std::uint8_t> salt,
              std::span<const std::uint8_t> info, std::span<std::uint8_t> out);

}  // namespace dael::formats
