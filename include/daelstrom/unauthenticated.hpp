// SPDX-License-Identifier: Apache-2.0
// The modes of NIST SP 800-38A but CTR, and padding: they keep secrets and authenticate nothing.
// For what must talk to others that use them; data is better off in gcm.hpp.
#pragma once

#include <cstddef>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

// The electronic codebook mode (NIST SP 800-38A 6.1): each block by itself, whole blocks only.
//
// Safety: shows which blocks are equal, and does not authenticate. A building block for other
// things; data is better off in gcm.hpp.

namespace dael::ecb {

// Errors: as Engine::run.
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, HostIn in, HostOut out);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, HostIn in, HostOut out);

}  // namespace dael::ecb

// Cipher block chaining (NIST SP 800-38A 6.2): whole blocks. Encryption is sequential within a
// message, so give many at once (Engine::run with a key set); decryption is parallel.
//
// Safety: the IV must be unpredictable. Does not authenticate; padding on top of it, checked where
// an attacker can see whether it failed, gives the plaintext away.

namespace dael::cbc {

// Errors: as Engine::run.
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);

}  // namespace dael::cbc

// Cipher feedback, CFB-128 (NIST SP 800-38A 6.3): any length. Encryption is sequential within a
// message, decryption is parallel.
//
// Safety: the IV must be unpredictable, and never repeat under one key. Does not authenticate.

namespace dael::cfb {

// Errors: as Engine::run.
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);

}  // namespace dael::cfb

// Output feedback (NIST SP 800-38A 6.4): any length, both ways the same, sequential within a
// message.
//
// Safety: an IV must never repeat under one key: the XOR of the two messages would be known. Does
// not authenticate.

namespace dael::ofb {

// Errors: as Engine::run.
DAEL_API Result<Ran> crypt(Engine& engine, const Key& key, const Block& iv, HostIn in, HostOut out);

}  // namespace dael::ofb

// PKCS#7 padding (RFC 5652 6.3) to the AES block, 1 to 16 bytes, each their count: for ECB and CBC,
// which take whole blocks.
//
// Safety: where an attacker can see whether padding was right, CBC without authentication gives the
// plaintext away, however the padding is checked.

namespace dael {

// Bytes that padding adds to `size` bytes: 1 to 16.
constexpr std::size_t padding_for(std::size_t size) noexcept {
    return kBlockSize - size % kBlockSize;
}

// The last block of a padded message: `tail` is its last size % 16 bytes.
DAEL_API Block pad(std::span<const std::uint8_t> tail) noexcept;

// How many of the 16 bytes of a decrypted last block are data. Looks at every byte whatever it
// finds, without a branch on data before the one verdict; every fault is the same
// Code::bad_padding. This hides where the fault is, not that there is one: unauthenticated CBC
// remains open to padding oracles wherever an attacker can see that decryption failed.
DAEL_API Result<std::size_t> unpad(const Block& last) noexcept;

}  // namespace dael
