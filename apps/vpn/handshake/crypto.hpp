// SPDX-License-Identifier: Apache-2.0
// The primitives of the handshake, by OpenSSL: SHA-256, HMAC (RFC 2104), HKDF (RFC 5869),
// AES-256-GCM, X25519 (RFC 7748). Each says whether it succeeded; what is written is to be used
// only then. Contexts with secrets are freed, and so wiped, with each call.
//
// Threads: any may use one at once, but for KeyedMac.
#pragma once

#include <openssl/evp.h>

#include <initializer_list>
#include <memory>
#include <span>

#include "vpn/handshake/keys.hpp"

namespace dael::vpn {

using BytesIn = std::span<const std::uint8_t>;
using BytesOut = std::span<std::uint8_t>;
inline constexpr std::size_t kHashSize = 32, kTagSize = 16;
using Hash = Wiped<kHashSize>;

template <auto Free>
struct FreeBy {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using PkeyPointer = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;

// A private key of X25519, ready for use, and its public one.
class KeyPair {
  public:
    bool set(const SecretKey& secret) noexcept;
    const PublicKey& public_key() const noexcept { return public_; }
    EVP_PKEY* get() const noexcept { return pkey_.get(); }

  private:
    PkeyPointer pkey_;
    PublicKey public_{};
};

class Crypto {
  public:
    static Result<Crypto> open();

    bool hash(std::initializer_list<BytesIn> parts, Hash& out) const noexcept;
    bool hmac(BytesIn key, std::initializer_list<BytesIn> parts, Hash& out) const noexcept;
    // RFC 5869: `out` of at most 255 * 32 bytes.
    bool hkdf(BytesIn salt, BytesIn secret, BytesIn info, BytesOut out) const noexcept;
    // The nonce is 4 bytes of 0 and the number, as Noise (12.4) has it. `out`: the plaintext's size
    // and kTagSize more; and the other way round.
    bool seal(const SecretKey& key, std::uint64_t number, BytesIn ad, BytesIn plain,
              BytesOut out) const noexcept;
    bool open(const SecretKey& key, std::uint64_t number, BytesIn ad, BytesIn sealed,
              BytesOut out) const noexcept;
    // False also for points of low order, whose result would be 0 whatever our key is.
    bool agree(const KeyPair& own, const PublicKey& other, SecretKey& out) const noexcept;

  private:
    friend class KeyedMac;
    std::unique_ptr<EVP_MD, FreeBy<EVP_MD_free>> sha256_;
    std::unique_ptr<EVP_MAC, FreeBy<EVP_MAC_free>> hmac_;
    std::unique_ptr<EVP_CIPHER, FreeBy<EVP_CIPHER_free>> gcm_;
};

// HMAC-SHA256 under one key that is no secret, many times: without an allocation.
class KeyedMac {
  public:
    bool open(const Crypto& crypto, BytesIn key) noexcept;
    bool operator()(BytesIn data, Hash& out) noexcept;

  private:
    Hash key_;
    std::unique_ptr<EVP_MAC_CTX, FreeBy<EVP_MAC_CTX_free>> context_;
};

// Whether they are equal, in a time that does not say where they differ.
bool same(BytesIn a, BytesIn b) noexcept;

}  // namespace dael::vpn
