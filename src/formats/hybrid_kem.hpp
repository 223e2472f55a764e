// SPDX-License-Identifier: Apache-2.0
// The post-quantum recipients of age 1.3: HPKE (RFC 9180, base mode) with ML-KEM-768 and X25519
// together (X-Wing, the KEM 0x647a), HKDF-SHA-256 and ChaCha20-Poly1305. Both must be broken to get
// at what they hide. ML-KEM is OpenSSL's from 3.5 on, looked for when it is first needed.
#pragma once

#include <array>
#include <cstdint>

#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael::formats {

inline constexpr std::size_t kHybridSeed = 32;      // bytes of an identity
inline constexpr std::size_t kHybridPublic = 1216;  // of a recipient: ML-KEM's 1184, X25519's 32
inline constexpr std::size_t kHybridShare = 1120;   // of what a stanza carries: 1088 and 32
inline constexpr std::size_t kHybridTag = 16;       // that sealing adds

using HybridPublic = std::array<std::uint8_t, kHybridPublic>;
using HybridShare = std::array<std::uint8_t, kHybridShare>;

// Whether this libcrypto has ML-KEM-768. Errors: unsupported, with its version.
Result<> check_hybrid();

// The public half of an identity. Errors: unsupported, internal.
Result<HybridPublic> hybrid_public(HostIn seed);
// That it is a key to share with (FIPS 203 7.2). Errors: bad_format, unsupported.
Result<> check_hybrid_public(const HybridPublic& recipient);

// HPKE's SealBase without associated data; `sealed` is kHybridTag bytes longer than `plain`.
Result<> hybrid_seal(const HybridPublic& recipient, HostIn info, HostIn plain, HybridShare& share,
                     HostOut sealed);
// OpenBase. Errors: authentication; bad_format for a point of low order; unsupported. Then `plain`
// is zeros.
Result<> hybrid_open(HostIn seed, const HybridShare& share, HostIn info, HostIn sealed,
                     HostOut plain);

}  // namespace dael::formats
