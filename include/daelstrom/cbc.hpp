// SPDX-License-Identifier: Apache-2.0
// Cipher block chaining (NIST SP 800-38A 6.2): whole blocks. Encryption is sequential within a
// message, so give many at once (Engine::run with a key set); decryption is parallel.
//
// Safety: the IV must be unpredictable. Does not authenticate; padding on top of it, checked where
// an attacker can see whether it failed, gives the plaintext away.
#pragma once

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>

namespace dael::cbc {

// Errors: as Engine::run.
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);

}  // namespace dael::cbc
