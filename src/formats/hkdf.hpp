// SPDX-License-Identifier: Apache-2.0
// HKDF (RFC 5869) and the HMAC (RFC 2104) that it is made of.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>

namespace dael::formats {

enum class Hash { sha1, sha256, sha512 };

// A digest that wipes itself.
struct Digest {
    std::array<std::uint8_t, 64> bytes{};
    std::size_t size = 0;
    ~Digest() { wipe(bytes.data(), bytes.size()); }
    std::span<const std::uint8_t> view() const { return {bytes.data(), size}; }
};

// Of the parts, one after another. Errors: internal.
Result<> hmac(Hash hash, std::span<const std::uint8_t> key,
              std::initializer_list<std::span<const std::uint8_t>> parts, Digest& out);

// Fills `out`, at most 255 digests of it. `info` may be of any length.
Result<> hkdf(Hash hash, std::span<const std::uint8_t> key, std::span<const std::uint8_t> salt,
              std::span<const std::uint8_t> info, std::span<std::uint8_t> out);

}  // namespace dael::formats
