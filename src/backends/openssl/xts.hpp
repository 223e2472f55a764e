// SPDX-License-Identifier: Apache-2.0
// XTS through EVP, which takes one sector at a time.
#pragma once

#include "backends/openssl/evp.hpp"
#include "core/backend.hpp"

namespace dael::openssl {

class Xts {
  public:
    Result<> open();
    Result<> run(const core::XtsOperation& operation, const core::Segment& segment) const;

  private:
    Cipher aes128_, aes256_;  // read only once open
};

}  // namespace dael::openssl
