// SPDX-License-Identifier: Apache-2.0
// Packets through EVP: keystream that is there is XORed, EVP's counter mode makes what is missing,
// and GMAC hashes.
#pragma once

#include <memory>

#include "backends/openssl/gcm.hpp"
#include "core/packet_cipher.hpp"

namespace dael::openssl {

class PacketCiphers {
  public:
    Result<> open();  // fetches the ciphers; before all else
    Result<std::unique_ptr<core::PacketCipher>> make(const Gcm& gcm, const Key& key) const;

  private:
    Tables::Algorithms counter_mode_;  // read only once open
};

}  // namespace dael::openssl
