// SPDX-License-Identifier: Apache-2.0
// The modes of SP 800-38A through EVP.
#pragma once

#include <array>
#include <span>

#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>

#include "backends/openssl/evp.hpp"

namespace dael::openssl {

class Modes {
  public:
    Result<> open();  // fetches the ciphers; before all else
    Result<> run(const Cipher& cipher, std::span<const Key> keys,
                 std::span<const Message> messages) const;

  private:
    std::array<std::array<Algorithm, 3>, kModes38a.size()> algorithms_;  // by mode and key size
};

}  // namespace dael::openssl
