// SPDX-License-Identifier: Apache-2.0
// XTS through EVP, which takes one sector at a time.
#pragma once

#include <span>

#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>

#include "backends/openssl/evp.hpp"

namespace dael::openssl {

class Xts {
  public:
    Result<> open();
    Result<> run(const Cipher& cipher, std::span<const Key> keys,
                 std::span<const Message> messages) const;

  private:
    Algorithm aes128_, aes256_;  // read only once open
};

}  // namespace dael::openssl
