// SPDX-License-Identifier: Apache-2.0
#include "vpn/handshake/noise.hpp"

#include <string_view>

namespace dael::vpn {
namespace {

PublicKey key_at(BytesIn message, std::size_t at) noexcept {
    PublicKey key;
    std::copy_n(message.data() + at, kKeySize, key.begin());
    return key;
}

constexpr std::size_t kStatic = kKeySize;  // where the initiator's sealed key lies
constexpr std::size_t kPayload = kStatic + kKeySize + kTagSize;

}  // namespace

bool Noise::begin(const Crypto& crypto, Pattern pattern, BytesIn prologue,
                  const PublicKey& responder) noexcept {
    clear();
    pattern_ = pattern;
    const std::string_view name = pattern == Pattern::ik ? "Noise_IK_25519_AESGCM_SHA256"
                                                         : "Noise_IKpsk2_25519_AESGCM_SHA256";
    static_assert(sizeof "Noise_IKpsk2_25519_AESGCM_SHA256" - 1 <= kHashSize);  // so: as it is
    std::copy(name.begin(), name.end(), hash_.data());
    chaining_ = hash_;
    return mix_hash(crypto, prologue) && mix_hash(crypto, responder);
}

bool Noise::write_first(const Crypto& crypto, const KeyPair& own, const PublicKey& responder,
                        const SecretKey& static_agreed, const KeyPair& ephemeral, BytesIn payload,
                        BytesOut message) noexcept {
    if (message.size() != kFirst + payload.size()) return false;
    std::copy_n(ephemeral.public_key().begin(), kKeySize, message.begin());
    return mix_ephemeral(crypto, message.first(kKeySize)) &&
           mix_agreed(crypto, ephemeral, responder) &&
           encrypt_and_hash(crypto, own.public_key(),
                            message.subspan(kStatic, kKeySize + kTagSize)) &&
           mix_key(crypto, static_agreed.span()) &&
           encrypt_and_hash(crypto, payload, message.subspan(kPayload));
}

bool Noise::read_first_key(const Crypto& crypto, const KeyPair& own, BytesIn message,
                           PublicKey& initiator) noexcept {
    if (message.size() < kFirst) return false;
    remote_ephemeral_ = key_at(message, 0);
    return mix_ephemeral(crypto, remote_ephemeral_) && mix_agreed(crypto, own, remote_ephemeral_) &&
           decrypt_and_hash(crypto, message.subspan(kStatic, kKeySize + kTagSize), initiator);
}

bool Noise::read_first_payload(const Crypto& crypto, const SecretKey& static_agreed,
                               BytesIn message, BytesOut payload) noexcept {
    if (message.size() != kFirst + payload.size()) return false;
    return mix_key(crypto, static_agreed.span()) &&
           decrypt_and_hash(crypto, message.subspan(kPayload), payload);
}

bool Noise::write_second(const Crypto& crypto, const PublicKey& initiator, const KeyPair& ephemeral,
                         const SecretKey& shared, BytesIn payload, BytesOut message) noexcept {
    if (message.size() != kSecond + payload.size()) return false;
    std::copy_n(ephemeral.public_key().begin(), kKeySize, message.begin());
    return mix_ephemeral(crypto, message.first(kKeySize)) &&
           mix_agreed(crypto, ephemeral, remote_ephemeral_) &&
           mix_agreed(crypto, ephemeral, initiator) &&
           (pattern_ == Pattern::ik || mix_key_and_hash(crypto, shared.span())) &&
           encrypt_and_hash(crypto, payload, message.subspan(kKeySize));
}

bool Noise::read_second(const Crypto& crypto, const KeyPair& own, const KeyPair& ephemeral,
                        const SecretKey& shared, BytesIn message, BytesOut payload) noexcept {
    if (message.size() != kSecond + payload.size()) return false;
    remote_ephemeral_ = key_at(message, 0);
    return mix_ephemeral(crypto, remote_ephemeral_) &&
           mix_agreed(crypto, ephemeral, remote_ephemeral_) &&
           mix_agreed(crypto, own, remote_ephemeral_) &&
           (pattern_ == Pattern::ik || mix_key_and_hash(crypto, shared.span())) &&
           decrypt_and_hash(crypto, message.subspan(kKeySize), payload);
}

bool Noise::split(const Crypto& crypto, SecretKey& to_responder, SecretKey& to_initiator) noexcept {
    Wiped<2 * kHashSize> both;
    if (!crypto.hkdf(chaining_.span(), {}, {}, both.span())) return false;
    to_responder = SecretKey(both.span().first<kKeySize>());
    to_initiator = SecretKey(both.span().last<kKeySize>());
    return true;
}

void Noise::clear() noexcept {
    chaining_.clear();
    hash_.clear();
    key_.clear();
    number_ = 0;
    remote_ephemeral_ = {};
}

// 5.2. With 32 bytes of hash no key is cut short.
bool Noise::mix_hash(const Crypto& crypto, BytesIn data) noexcept {
    Hash mixed;
    if (!crypto.hash({hash_.span(), data}, mixed)) return false;
    hash_ = mixed;
    return true;
}

bool Noise::mix_key(const Crypto& crypto, BytesIn secret) noexcept {
    Wiped<2 * kHashSize> mixed;
    if (!crypto.hkdf(chaining_.span(), secret, {}, mixed.span())) return false;
    chaining_ = Hash(mixed.span().first<kHashSize>());
    key_ = SecretKey(mixed.span().last<kKeySize>());
    number_ = 0;
    return true;
}

bool Noise::mix_key_and_hash(const Crypto& crypto, BytesIn secret) noexcept {
    Wiped<3 * kHashSize> mixed;
    if (!crypto.hkdf(chaining_.span(), secret, {}, mixed.span())) return false;
    chaining_ = Hash(mixed.span().first<kHashSize>());
    key_ = SecretKey(mixed.span().last<kKeySize>());
    number_ = 0;
    return mix_hash(crypto, mixed.span().subspan<kHashSize, kHashSize>());
}

bool Noise::mix_agreed(const Crypto& crypto, const KeyPair& own, const PublicKey& other) noexcept {
    SecretKey agreed;
    return crypto.agree(own, other, agreed) && mix_key(crypto, agreed.span());
}

// Token "e"; where there is a pre-shared secret, ephemeral keys go into the key as well (9.2).
bool Noise::mix_ephemeral(const Crypto& crypto, BytesIn key) noexcept {
    return mix_hash(crypto, key) && (pattern_ == Pattern::ik || mix_key(crypto, key));
}

bool Noise::encrypt_and_hash(const Crypto& crypto, BytesIn plain, BytesOut out) noexcept {
    return crypto.seal(key_, number_++, hash_.span(), plain, out) && mix_hash(crypto, out);
}

bool Noise::decrypt_and_hash(const Crypto& crypto, BytesIn sealed, BytesOut out) noexcept {
    return crypto.open(key_, number_++, hash_.span(), sealed, out) && mix_hash(crypto, sealed);
}

}  // namespace dael::vpn
