// SPDX-License-Identifier: Apache-2.0
// Noise_IK_25519_AESGCM_SHA256 and Noise_IKpsk2_25519_AESGCM_SHA256 (noiseprotocol.org, revision
// 34):
//
//     <- s
//     ...
//     -> e, es, s, ss
//     <- e, ee, se            IKpsk2: and psk
//
// One call for each message and side. What went wrong is told by false, and then the state is of no
// more use: try what strangers sent on a copy.
#pragma once

#include <cstdint>
#include <span>

#include "vpn/handshake/crypto.hpp"

namespace dael::vpn {

enum class Pattern : std::uint8_t { ik, ik_psk2 };

class Noise {
  public:
    // Bytes of a message beside its payload.
    static constexpr std::size_t kFirst = kKeySize + (kKeySize + kTagSize) + kTagSize;
    static constexpr std::size_t kSecond = kKeySize + kTagSize;

    // Both sides: with the responder's static key (5.3, Initialize()).
    bool begin(const Crypto& crypto, Pattern pattern, BytesIn prologue,
               const PublicKey& responder) noexcept;

    // The initiator. `ephemeral` is of this handshake alone; `static_agreed` is the result of
    // X25519 of both static keys.
    bool write_first(const Crypto& crypto, const KeyPair& own, const PublicKey& responder,
                     const SecretKey& static_agreed, const KeyPair& ephemeral, BytesIn payload,
                     BytesOut message) noexcept;
    bool read_second(const Crypto& crypto, const KeyPair& own, const KeyPair& ephemeral,
                     const SecretKey& shared, BytesIn message, BytesOut payload) noexcept;

    // The responder: first whose the message claims to be, then, with what is known of that one,
    // whether it is, and the payload.
    bool read_first_key(const Crypto& crypto, const KeyPair& own, BytesIn message,
                        PublicKey& initiator) noexcept;
    bool read_first_payload(const Crypto& crypto, const SecretKey& static_agreed, BytesIn message,
                            BytesOut payload) noexcept;
    bool write_second(const Crypto& crypto, const PublicKey& initiator, const KeyPair& ephemeral,
                      const SecretKey& shared, BytesIn payload, BytesOut message) noexcept;

    // Afterwards, both sides: a key from the initiator to the responder and one back (5.2,
    // Split()), and the hash of all that was said.
    bool split(const Crypto& crypto, SecretKey& to_responder, SecretKey& to_initiator) noexcept;
    const Hash& handshake_hash() const noexcept { return hash_; }

    void clear() noexcept;

  private:
    bool mix_hash(const Crypto& crypto, BytesIn data) noexcept;
    bool mix_key(const Crypto& crypto, BytesIn secret) noexcept;
    bool mix_key_and_hash(const Crypto& crypto, BytesIn secret) noexcept;
    bool mix_agreed(const Crypto& crypto, const KeyPair& own, const PublicKey& other) noexcept;
    bool mix_ephemeral(const Crypto& crypto, BytesIn key) noexcept;
    bool encrypt_and_hash(const Crypto& crypto, BytesIn plain, BytesOut out) noexcept;
    bool decrypt_and_hash(const Crypto& crypto, BytesIn sealed, BytesOut out) noexcept;

    Hash chaining_, hash_;          // ck, h
    SecretKey key_;                 // k
    std::uint64_t number_ = 0;      // n
    PublicKey remote_ephemeral_{};  // re
    Pattern pattern_ = Pattern::ik;
};

}  // namespace dael::vpn
