// SPDX-License-Identifier: Apache-2.0
// Counter mode (NIST SP 800-38A 6.5): any length, both ways the same, from any byte on.
//
// Safety: does not authenticate; a changed bit of ciphertext changes that bit of plaintext. No
// counter block may ever be used twice under one key: a message of n blocks uses n of them from its
// first on. The counter is one big-endian number of 128 bits, which wraps.
#pragma once

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>

namespace dael::ctr {

inline constexpr Cipher kCipher{Mode::ctr, Direction::encrypt};

// `offset`: the byte of the keystream at which the data starts. Errors: as Engine::run; limit where
// offset and size pass 2^64.
DAEL_API Result<Ran> crypt(Engine& engine, const Key& key, const Block& counter, HostIn in,
                           HostOut out, std::uint64_t offset = 0);
DAEL_API Result<Ran> crypt(Engine& engine, const Key& key, const Block& counter, DeviceIn in,
                           DeviceOut out, Stream stream, std::uint64_t offset = 0);
// The keystream itself: what zeros would become.
DAEL_API Result<Ran> keystream(Engine& engine, const Key& key, const Block& counter, HostOut out,
                               std::uint64_t offset = 0);
DAEL_API Result<Ran> keystream(Engine& engine, const Key& key, const Block& counter, DeviceOut out,
                               Stream stream, std::uint64_t offset = 0);

}  // namespace dael::ctr
