// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV (RFC 8452) through EVP, where libcrypto has it: from OpenSSL 3.2 on.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "backends/openssl/evp.hpp"
#include "core/backend.hpp"

namespace dael::openssl {

class Siv {
  public:
    // Asks libcrypto for the ciphers, and for answers that are known. Errors: of memory alone.
    Result<> open();
    // Why it is not there; empty where it is.
    std::string_view why() const noexcept { return why_; }
    // Errors besides EVP's: unsupported (data or AAD of 2^31 bytes or more, which EVP does not take
    // at once).
    Result<> run(const Notes& notes, const Cipher& cipher, std::span<const Key> keys,
                 std::span<const Message> messages, std::span<Code> codes) const;

  private:
    std::array<Algorithm, 2> algorithms_;  // of keys of 16 and 32 bytes
    std::string_view why_;
};

}  // namespace dael::openssl
