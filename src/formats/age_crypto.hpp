// SPDX-License-Identifier: Apache-2.0
// What age v1 files are made of besides HMAC and HKDF: X25519, ChaCha20-Poly1305 and scrypt, of
// libcrypto. Sizes are the caller's to keep.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael::formats {

inline constexpr std::size_t kCurveSize = 32;  // bytes of a point, a scalar, a shared secret
inline constexpr std::size_t kChaChaKey = 32, kChaChaTag = 16;
using ChaChaNonce = std::array<std::uint8_t, 12>;
using CurvePoint = std::array<std::uint8_t, kCurveSize>;

// The public half of a secret one (RFC 7748 6.1).
Result<CurvePoint> x25519_public(HostIn secret);
// What two share. Errors: bad_format for a point of low order, with which all share zeros.
Result<> x25519(HostIn secret, HostIn point, HostOut shared);

// RFC 8439 2.8, without associated data: `sealed` is `plain` and a tag.
Result<> chacha_seal(HostIn key, const ChaChaNonce& nonce, HostIn plain, HostOut sealed);
// Errors: authentication; then `plain` is zeros.
Result<> chacha_open(HostIn key, const ChaChaNonce& nonce, HostIn sealed, HostOut plain);

// RFC 7914 with N = 2^work, r = 8 and p = 1. Errors: out_of_memory.
Result<> scrypt(HostIn passphrase, HostIn salt, int work, HostOut out);

}  // namespace dael::formats
