// SPDX-License-Identifier: Apache-2.0
#include "vpn/handshake/crypto.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

namespace dael::vpn {
namespace {

using MdContext = std::unique_ptr<EVP_MD_CTX, FreeBy<EVP_MD_CTX_free>>;
using MacContext = std::unique_ptr<EVP_MAC_CTX, FreeBy<EVP_MAC_CTX_free>>;
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeBy<EVP_CIPHER_CTX_free>>;
using PkeyContext = std::unique_ptr<EVP_PKEY_CTX, FreeBy<EVP_PKEY_CTX_free>>;

// What strangers send makes libcrypto queue errors that nobody would take.
bool answer(bool good) noexcept {
    if (!good) ERR_clear_error();
    return good;
}

bool begin_mac(EVP_MAC_CTX* context, BytesIn key) noexcept {
    char name[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
        OSSL_PARAM_construct_end()};
    return EVP_MAC_init(context, key.data(), key.size(), parameters) == 1;
}

bool end_mac(EVP_MAC_CTX* context, Hash& out) noexcept {
    std::size_t size = 0;
    return EVP_MAC_final(context, out.data(), &size, out.size()) == 1 && size == out.size();
}

std::array<std::uint8_t, 12> nonce_of(std::uint64_t number) noexcept {
    std::array<std::uint8_t, 12> nonce{};
    for (std::size_t i = 0; i < 8; ++i)
        nonce[4 + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
    return nonce;
}

}  // namespace

bool Randomness::operator()(std::span<std::uint8_t> bytes) const noexcept {
    if (fill) return fill(context, bytes);
    // With what the kernel has now: a machine that was copied while it ran, this process and its
    // generator in it, must not give the copy the same ephemeral keys.
    EVP_RAND_CTX* const generator = RAND_get0_private(nullptr);
    if (generator &&
        EVP_RAND_generate(generator, bytes.data(), bytes.size(), 0, 1, nullptr, 0) == 1)
        return true;
    return answer(RAND_priv_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
}

bool KeyPair::set(const SecretKey& secret) noexcept {
    pkey_.reset(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, secret.data(), kKeySize));
    std::size_t size = kKeySize;
    return answer(pkey_ && EVP_PKEY_get_raw_public_key(pkey_.get(), public_.data(), &size) == 1 &&
                  size == kKeySize);
}

Result<Crypto> Crypto::open() {
    Crypto crypto;
    crypto.sha256_.reset(EVP_MD_fetch(nullptr, "SHA256", nullptr));
    crypto.hmac_.reset(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    crypto.gcm_.reset(EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr));
    if (!answer(crypto.sha256_ && crypto.hmac_ && crypto.gcm_))
        return Error{Code::internal, "OpenSSL has no SHA256, HMAC or AES-256-GCM"};
    return crypto;
}

bool Crypto::hash(std::initializer_list<BytesIn> parts, Hash& out) const noexcept {
    const MdContext context(EVP_MD_CTX_new());
    bool good = context && EVP_DigestInit_ex2(context.get(), sha256_.get(), nullptr) == 1;
    for (const BytesIn part : parts)
        good = good && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
    return answer(good && EVP_DigestFinal_ex(context.get(), out.data(), nullptr) == 1);
}

bool Crypto::hmac(BytesIn key, std::initializer_list<BytesIn> parts, Hash& out) const noexcept {
    const MacContext context(EVP_MAC_CTX_new(hmac_.get()));
    bool good = context && begin_mac(context.get(), key);
    for (const BytesIn part : parts)
        good = good && EVP_MAC_update(context.get(), part.data(), part.size()) == 1;
    return answer(good && end_mac(context.get(), out));
}

bool Crypto::hkdf(BytesIn salt, BytesIn secret, BytesIn info, BytesOut out) const noexcept {
    Hash extracted, block;
    if (!hmac(salt, {secret}, extracted)) return false;
    std::uint8_t count = 0;
    for (std::size_t at = 0; at < out.size(); at += kHashSize) {
        const BytesIn before = count == 0 ? BytesIn{} : BytesIn(block.span());
        ++count;
        Hash next;
        if (!hmac(extracted.span(), {before, info, {&count, 1}}, next)) return false;
        block = next;
        std::memcpy(out.data() + at, block.data(), std::min(kHashSize, out.size() - at));
    }
    return true;
}

bool Crypto::seal(const SecretKey& key, std::uint64_t number, BytesIn ad, BytesIn plain,
                  BytesOut out) const noexcept {
    if (out.size() != plain.size() + kTagSize) return false;
    const auto nonce = nonce_of(number);
    const CipherContext context(EVP_CIPHER_CTX_new());
    int size = 0;
    return answer(
        context &&
        EVP_EncryptInit_ex2(context.get(), gcm_.get(), key.data(), nonce.data(), nullptr) == 1 &&
        EVP_EncryptUpdate(context.get(), nullptr, &size, ad.data(), static_cast<int>(ad.size())) ==
            1 &&
        (plain.empty() || EVP_EncryptUpdate(context.get(), out.data(), &size, plain.data(),
                                            static_cast<int>(plain.size())) == 1) &&
        EVP_EncryptFinal_ex(context.get(), out.data() + plain.size(), &size) == 1 &&
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize,
                            out.data() + plain.size()) == 1);
}

bool Crypto::open(const SecretKey& key, std::uint64_t number, BytesIn ad, BytesIn sealed,
                  BytesOut out) const noexcept {
    if (sealed.size() != out.size() + kTagSize) return false;
    const auto nonce = nonce_of(number);
    std::array<std::uint8_t, kTagSize> tag;
    std::copy_n(sealed.data() + out.size(), kTagSize, tag.begin());
    const CipherContext context(EVP_CIPHER_CTX_new());
    int size = 0;
    const bool good = answer(
        context &&
        EVP_DecryptInit_ex2(context.get(), gcm_.get(), key.data(), nonce.data(), nullptr) == 1 &&
        EVP_DecryptUpdate(context.get(), nullptr, &size, ad.data(), static_cast<int>(ad.size())) ==
            1 &&
        (out.empty() || EVP_DecryptUpdate(context.get(), out.data(), &size, sealed.data(),
                                          static_cast<int>(out.size())) == 1) &&
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTagSize, tag.data()) == 1 &&
        EVP_DecryptFinal_ex(context.get(), tag.data(), &size) == 1);
    if (!good) wipe(out.data(), out.size());
    return good;
}

bool Crypto::agree(const KeyPair& own, const PublicKey& other, SecretKey& out) const noexcept {
    const PkeyPointer peer(
        EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, other.data(), other.size()));
    if (!answer(own.get() && peer)) return false;
    const PkeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, own.get(), nullptr));
    std::size_t size = kKeySize;
    return answer(context && EVP_PKEY_derive_init(context.get()) == 1 &&
                  EVP_PKEY_derive_set_peer(context.get(), peer.get()) == 1 &&
                  EVP_PKEY_derive(context.get(), out.data(), &size) == 1 && size == kKeySize);
}

bool KeyedMac::open(const Crypto& crypto, BytesIn key) noexcept {
    if (key.size() != key_.size()) return false;
    std::copy(key.begin(), key.end(), key_.data());
    context_.reset(EVP_MAC_CTX_new(crypto.hmac_.get()));
    return answer(context_ && begin_mac(context_.get(), key));
}

bool KeyedMac::operator()(BytesIn data, Hash& out) noexcept {
    return answer(EVP_MAC_init(context_.get(), key_.data(), key_.size(), nullptr) == 1 &&
                  EVP_MAC_update(context_.get(), data.data(), data.size()) == 1 &&
                  end_mac(context_.get(), out));
}

bool same(BytesIn a, BytesIn b) noexcept {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<SecretKey> generate_key(const Randomness& random) {
    SecretKey key;
    if (!random(key.span())) return Error{Code::internal, "OpenSSL has no random bytes"};
    return key;
}

Result<PublicKey> public_key(const SecretKey& key) {
    KeyPair pair;
    if (!pair.set(key)) return Error{Code::internal, "OpenSSL cannot compute X25519"};
    return pair.public_key();
}

}  // namespace dael::vpn
