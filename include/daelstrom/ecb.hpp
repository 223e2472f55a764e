// SPDX-License-Identifier: Apache-2.0
// The electronic codebook mode (NIST SP 800-38A 6.1): each block by itself, whole blocks only.
//
// Safety: shows which blocks are equal, and does not authenticate. A building block for other
// things; data is better off in gcm.hpp.
#pragma once

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>

namespace dael::ecb {

// Errors: as Engine::run.
DAEL_API Result<Ran> encrypt(Engine& engine, const Key& key, HostIn in, HostOut out);
DAEL_API Result<Ran> decrypt(Engine& engine, const Key& key, HostIn in, HostOut out);

}  // namespace dael::ecb
