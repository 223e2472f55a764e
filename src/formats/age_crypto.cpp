// SPDX-License-Identifier: Apache-2.0
#include "formats/age_crypto.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <memory>
#include <string>

#include <daelstrom/key.hpp>

#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"
#include "formats/owned.hpp"

namespace dael::formats {
namespace {

// What something cannot be made without, or there was no memory for it.
template <class Find>
Error lacks(const core::LibcryptoNotes& notes, const char* what, Find&& find) {
    return notes.absence(find,
                         {Code::unsupported, std::string("libcrypto has no ") + what + " here"});
}
Owned<EVP_PKEY> curve_secret(HostIn secret) {
    return Owned<EVP_PKEY>(EVP_PKEY_new_raw_private_key_ex(core::libcrypto(), "X25519", nullptr,
                                                           secret.data(), secret.size()));
}

struct ChaChaPoly {
    Owned<EVP_CIPHER> algorithm{EVP_CIPHER_fetch(core::libcrypto(), "ChaCha20-Poly1305", nullptr)};
    Owned<EVP_CIPHER_CTX> context{algorithm ? EVP_CIPHER_CTX_new() : nullptr};

    bool start(HostIn key, const ChaChaNonce& nonce, bool seals) const {
        return EVP_CipherInit_ex2(context.get(), algorithm.get(), key.data(), nonce.data(), seals,
                                  nullptr) == 1;
    }
    bool update(HostIn in, std::uint8_t* out) const {
        int size = 0;
        return EVP_CipherUpdate(context.get(), out, &size, in.data(),
                                static_cast<int>(in.size())) == 1 &&
               size == static_cast<int>(in.size());
    }
    bool finish() const {
        std::array<std::uint8_t, 16> nothing{};
        int size = 0;
        return EVP_CipherFinal_ex(context.get(), nothing.data(), &size) == 1;
    }
};

bool has_chacha() {
    return ChaChaPoly().algorithm != nullptr;
}

}  // namespace

Result<CurvePoint> x25519_public(HostIn secret) {
    const core::LibcryptoNotes notes;
    const auto key = curve_secret(secret);
    if (!key) return lacks(notes, "X25519", [&] { return curve_secret(secret) != nullptr; });
    CurvePoint point{};
    std::size_t size = point.size();
    if (EVP_PKEY_get_raw_public_key(key.get(), point.data(), &size) != 1 || size != point.size())
        return notes.failure("X25519");
    return point;
}

Result<> x25519(HostIn secret, HostIn point, HostOut shared) {
    const core::LibcryptoNotes notes;
    const auto ours = curve_secret(secret);
    const Owned<EVP_PKEY> theirs(EVP_PKEY_new_raw_public_key_ex(
        core::libcrypto(), "X25519", nullptr, point.data(), point.size()));
    const Owned<EVP_PKEY_CTX> context(
        ours ? EVP_PKEY_CTX_new_from_pkey(core::libcrypto(), ours.get(), nullptr) : nullptr);
    if (!context || !theirs)
        return lacks(notes, "X25519", [&] { return curve_secret(secret) != nullptr; });
    if (EVP_PKEY_derive_init(context.get()) != 1 ||
        EVP_PKEY_derive_set_peer(context.get(), theirs.get()) != 1)
        return notes.failure("X25519");
    std::size_t size = shared.size();
    const bool derived = EVP_PKEY_derive(context.get(), shared.data(), &size) == 1;
    std::uint8_t any = 0;  // RFC 7748 6.1: all zeros came of a point of low order
    for (const std::uint8_t byte : shared) any |= byte;
    if (derived && any != 0 && size == kCurveSize) return {};
    wipe(shared.data(), shared.size());
    // libcrypto itself refuses such a point, and notes that.
    if (!derived && notes.lacked_memory()) return core::LibcryptoNotes::no_memory();
    return Error{Code::bad_format, "a point of low order on Curve25519, which keeps no secret"};
}

Result<> chacha_seal(HostIn key, const ChaChaNonce& nonce, HostIn plain, HostOut sealed) {
    const core::LibcryptoNotes notes;
    const ChaChaPoly cipher;
    if (!cipher.context) return lacks(notes, "ChaCha20-Poly1305", has_chacha);
    if (cipher.start(key, nonce, true) && cipher.update(plain, sealed.data()) && cipher.finish() &&
        EVP_CIPHER_CTX_ctrl(cipher.context.get(), EVP_CTRL_AEAD_GET_TAG, kChaChaTag,
                            sealed.data() + plain.size()) == 1)
        return {};
    return notes.failure("ChaCha20-Poly1305");
}

Result<> chacha_open(HostIn key, const ChaChaNonce& nonce, HostIn sealed, HostOut plain) {
    const core::LibcryptoNotes notes;
    const ChaChaPoly cipher;
    if (!cipher.context) return lacks(notes, "ChaCha20-Poly1305", has_chacha);
    std::array<std::uint8_t, kChaChaTag> tag{};
    std::ranges::copy(sealed.last(kChaChaTag), tag.begin());
    if (!cipher.start(key, nonce, false) ||
        EVP_CIPHER_CTX_ctrl(cipher.context.get(), EVP_CTRL_AEAD_SET_TAG, kChaChaTag, tag.data()) !=
            1 ||
        !cipher.update(sealed.first(plain.size()), plain.data())) {
        wipe(plain.data(), plain.size());
        return notes.failure("ChaCha20-Poly1305");
    }
    if (cipher.finish()) return {};
    wipe(plain.data(), plain.size());
    return Error{Code::authentication, "the tag does not match"};
}

Result<> scrypt(HostIn passphrase, HostIn salt, int work, HostOut out) {
    const core::LibcryptoNotes notes;
    const Owned<EVP_KDF> kdf(EVP_KDF_fetch(core::libcrypto(), "SCRYPT", nullptr));
    const Owned<EVP_KDF_CTX> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
    if (!context)
        return lacks(notes, "scrypt", [] {
            return Owned<EVP_KDF>(EVP_KDF_fetch(core::libcrypto(), "SCRYPT", nullptr)) != nullptr;
        });
    std::uint64_t n = std::uint64_t{1} << work, memory = (n << 10) + (64 << 20);
    std::uint32_t r = 8, p = 1;
    const auto bytes = [](const char* name, HostIn value) {
        return OSSL_PARAM_construct_octet_string(name, const_cast<std::uint8_t*>(value.data()),
                                                 value.size());
    };
    const std::array<OSSL_PARAM, 7> parameters{
        bytes(OSSL_KDF_PARAM_PASSWORD, passphrase),
        bytes(OSSL_KDF_PARAM_SALT, salt),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
        OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
        OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &memory),
        OSSL_PARAM_construct_end()};
    if (EVP_KDF_derive(context.get(), out.data(), out.size(), parameters.data()) == 1) return {};
    return Error{Code::out_of_memory, "scrypt failed: its " + std::to_string(n >> 10) +
                                          " MiB of memory may not be there"};
}

}  // namespace dael::formats
