// SPDX-License-Identifier: Apache-2.0
// Cipher feedback, CFB-128 (NIST SP 800-38A 6.3): any length. Encryption is sequential within a
// message, decryption is parallel.
//
// Safety: the IV must be unpredictable, and never repeat under one key. Does not authenticate.
#pragma once

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>

namespace dael::cfb {

// Errors: as Engine::run.
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, const Block& iv, HostIn in,
                             HostOut out);

}  // namespace dael::cfb
