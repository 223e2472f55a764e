// SPDX-License-Identifier: Apache-2.0
// Output feedback (NIST SP 800-38A 6.4): any length, both ways the same, sequential within a
// message.
//
// Safety: an IV must never repeat under one key: the XOR of the two messages would be known. Does
// not authenticate.
#pragma once

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>

namespace dael::ofb {

// Errors: as Engine::run.
DAEL_API Result<Ran> crypt(Engine& engine, const Key& key, const Block& iv, HostIn in, HostOut out);

}  // namespace dael::ofb
