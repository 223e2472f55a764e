// SPDX-License-Identifier: Apache-2.0
// GCM through EVP. Contexts are made and keyed once and then kept with their key, so that a message
// costs a new IV and no key expansion.
#pragma once

#include <array>

#include "backends/openssl/evp.hpp"
#include "core/backend.hpp"

namespace dael::openssl {

class Gcm {
  public:
    Result<> open();  // fetches the ciphers; before all else
    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) const;
    Result<> run(Direction direction, const core::PreparedKeys& keys,
                 std::span<const core::GcmSegment> segments, std::span<Code> results) const;
    Result<std::unique_ptr<core::GcmStream>> stream(Direction direction,
                                                    const core::PreparedKeys& keys,
                                                    std::uint32_t key,
                                                    std::span<const std::uint8_t> iv) const;

  private:
    std::array<Cipher, 3> gcm_, ecb_;  // by key size; read only
};

}  // namespace dael::openssl
