// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM (C2SP): this backend's AES-256-GCM, under a key that is derived of each message's
// nonce by EVP's AES.
#pragma once

#include <span>

#include "backends/openssl/gcm.hpp"

namespace dael::openssl {

class Xaes {
  public:
    Result<> open() { return fetch(aes_, "AES-256-ECB"); }
    Result<> run(const Gcm& gcm, const Cipher& cipher, std::span<const Key> keys,
                 std::span<const Message> messages, std::span<Code> codes) const;

  private:
    Algorithm aes_;
};

}  // namespace dael::openssl
