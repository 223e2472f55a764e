// SPDX-License-Identifier: Apache-2.0
#include "formats/hybrid_kem.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "formats/age_crypto.hpp"
#include "formats/hkdf.hpp"
#include "formats/owned.hpp"
#include "formats/secret_bytes.hpp"

namespace dael::formats {
namespace {

constexpr const char* kKem = "ML-KEM-768";
constexpr std::size_t kKemSeed = 64, kKemPublic = 1184, kKemShare = 1088, kKemSecret = 32;

// FIPS 202, of the parts one after another; `shake`: as many bytes as `out` has.
Result<> sha3(bool shake, std::initializer_list<HostIn> parts, HostOut out) {
    const core::LibcryptoNotes notes;
    const Owned<EVP_MD> hash(
        EVP_MD_fetch(core::libcrypto(), shake ? "SHAKE256" : "SHA3-256", nullptr));
    const Owned<EVP_MD_CTX> context(hash ? EVP_MD_CTX_new() : nullptr);
    bool good = context && EVP_DigestInit_ex2(context.get(), hash.get(), nullptr) == 1;
    for (const HostIn part : parts)
        good = good && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
    unsigned size = 0;
    good = good && (shake ? EVP_DigestFinalXOF(context.get(), out.data(), out.size()) == 1
                          : EVP_DigestFinal_ex(context.get(), out.data(), &size) == 1);
    if (good) return {};
    return notes.failure("SHA-3");
}

// X-Wing's two secret keys of one seed.
struct Halves {
    SecretBytes memory;
    static Result<Halves> of(HostIn seed) {
        DAEL_LET(memory, SecretBytes::create(kKemSeed + kCurveSize));
        DAEL_TRY(sha3(true, {seed}, memory.bytes()));
        return Halves{std::move(memory)};
    }
    HostOut kem() { return memory.bytes().first(kKemSeed); }
    HostOut curve() { return memory.bytes().subspan(kKemSeed); }
};

Result<Owned<EVP_PKEY>> kem_key(HostOut seed) {
    const core::LibcryptoNotes notes;
    const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(core::libcrypto(), kKem, nullptr));
    EVP_PKEY* key = nullptr;
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_octet_string("seed", seed.data(), seed.size()),
                               OSSL_PARAM_construct_end()};
    if (context && EVP_PKEY_fromdata_init(context.get()) == 1 &&
        EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters) == 1)
        return Owned<EVP_PKEY>(key);
    return notes.failure(kKem);
}

// The shared secret of both (X-Wing's combiner): SHA3-256 of the two secrets, X25519's share and
// recipient, and a label.
Result<> combine(HostIn kem_secret, HostIn curve_secret, HostIn curve_share, HostIn curve_public,
                 HostOut out) {
    static constexpr std::string_view kLabel = "\\.//^\\";
    return sha3(false,
                {kem_secret, curve_secret, curve_share, curve_public, core::bytes_of(kLabel)}, out);
}

// RFC 9180 4 and 5.1, for this suite, the base mode and one message. Both hashes below are
// HMAC-SHA-256, and nothing that is expanded is longer than one of them.
constexpr std::array<std::uint8_t, 10> kSuite{'H',  'P',  'K',  'E',  0x64,
                                              0x7a, 0x00, 0x01, 0x00, 0x03};
constexpr std::string_view kVersion = "HPKE-v1";

Result<> labeled_extract(HostIn salt, std::string_view label, HostIn key, Digest& out) {
    return hmac(Hash::sha256, salt, {core::bytes_of(kVersion), kSuite, core::bytes_of(label), key},
                out);
}
Result<> labeled_expand(const Digest& key, std::string_view label, HostIn info, HostOut out) {
    const std::array<std::uint8_t, 2> size{0, static_cast<std::uint8_t>(out.size())};
    constexpr std::array<std::uint8_t, 1> kFirst{1};  // block of HKDF's expansion
    Digest block;
    DAEL_TRY(hmac(Hash::sha256, key.view(),
                  {size, core::bytes_of(kVersion), kSuite, core::bytes_of(label), info, kFirst},
                  block));
    std::copy_n(block.bytes.begin(), out.size(), out.begin());
    return {};
}

Result<> key_schedule(HostIn shared, HostIn info, HostOut key, ChaChaNonce& nonce) {
    Digest psk_hash, info_hash, secret;
    DAEL_TRY(labeled_extract({}, "psk_id_hash", {}, psk_hash));
    DAEL_TRY(labeled_extract({}, "info_hash", info, info_hash));
    std::array<std::uint8_t, 1 + 32 + 32> context{};  // mode 0, base
    std::copy_n(info_hash.bytes.begin(), 32,
                std::copy_n(psk_hash.bytes.begin(), 32, context.begin() + 1));
    DAEL_TRY(labeled_extract(shared, "secret", {}, secret));
    DAEL_TRY(labeled_expand(secret, "key", context, key));
    return labeled_expand(secret, "base_nonce", context, nonce);
}

HostIn curve_of(const HybridPublic& recipient) {
    return HostIn(recipient).subspan(kKemPublic);
}

// Secrets of one call.
struct Scratch {
    SecretBytes memory;
    static Result<Scratch> create() {
        DAEL_LET(memory, SecretBytes::create(5 * 32));
        return Scratch{std::move(memory)};
    }
    HostOut kem_secret() { return memory.bytes().first(32); }
    HostOut curve_secret() { return memory.bytes().subspan(32, 32); }
    HostOut shared() { return memory.bytes().subspan(64, 32); }
    HostOut key() { return memory.bytes().subspan(96, 32); }
    HostOut ephemeral() { return memory.bytes().subspan(128, 32); }
};

Result<Owned<EVP_PKEY>> kem_public(const HybridPublic& recipient) {
    DAEL_TRY(check_hybrid());
    const core::LibcryptoNotes notes;
    Owned<EVP_PKEY> key(EVP_PKEY_new_raw_public_key_ex(core::libcrypto(), kKem, nullptr,
                                                       recipient.data(), kKemPublic));
    if (key) return key;
    if (notes.lacked_memory()) return core::LibcryptoNotes::no_memory();
    return Error{Code::bad_format, "a post-quantum recipient that is no key of ML-KEM-768"};
}

}  // namespace

Result<> check_hybrid() {
    const core::LibcryptoNotes notes;
    const auto found = [] {
        return Owned<EVP_KEYMGMT>(EVP_KEYMGMT_fetch(core::libcrypto(), kKem, nullptr)) != nullptr;
    };
    if (found()) return {};
    return notes.absence(
        found, {Code::unsupported,
                std::string("age's post-quantum keys need OpenSSL 3.5, which has ML-KEM; this is "
                            "OpenSSL ") +
                    OpenSSL_version(OPENSSL_VERSION_STRING)});
}

Result<HybridPublic> hybrid_public(HostIn seed) {
    DAEL_TRY(check_hybrid());
    DAEL_LET(halves, Halves::of(seed));
    DAEL_LET(key, kem_key(halves.kem()));
    HybridPublic out{};
    std::size_t size = kKemPublic;
    const core::LibcryptoNotes notes;
    if (EVP_PKEY_get_raw_public_key(key.get(), out.data(), &size) != 1 || size != kKemPublic)
        return notes.failure(kKem);
    DAEL_LET(point, x25519_public(halves.curve()));
    std::ranges::copy(point, out.begin() + kKemPublic);
    return out;
}

Result<> check_hybrid_public(const HybridPublic& recipient) {
    DAEL_TRY(kem_public(recipient));
    CurvePoint any{}, shared{};
    any[0] = 8;
    return x25519(any, curve_of(recipient), shared);
}

Result<> hybrid_seal(const HybridPublic& recipient, HostIn info, HostIn plain, HybridShare& share,
                     HostOut sealed) {
    DAEL_LET(theirs, kem_public(recipient));
    DAEL_LET(scratch, Scratch::create());
    {
        const core::LibcryptoNotes notes;
        const Owned<EVP_PKEY_CTX> context(
            EVP_PKEY_CTX_new_from_pkey(core::libcrypto(), theirs.get(), nullptr));
        std::size_t share_size = kKemShare, secret_size = kKemSecret;
        if (!context || EVP_PKEY_encapsulate_init(context.get(), nullptr) != 1 ||
            EVP_PKEY_encapsulate(context.get(), share.data(), &share_size,
                                 scratch.kem_secret().data(), &secret_size) != 1 ||
            share_size != kKemShare || secret_size != kKemSecret)
            return notes.failure(kKem);
    }
    DAEL_TRY(core::fill_random(scratch.ephemeral()));
    DAEL_LET(point, x25519_public(scratch.ephemeral()));
    DAEL_TRY(x25519(scratch.ephemeral(), curve_of(recipient), scratch.curve_secret()));
    std::ranges::copy(point, share.begin() + kKemShare);
    DAEL_TRY(combine(scratch.kem_secret(), scratch.curve_secret(), point, curve_of(recipient),
                     scratch.shared()));
    ChaChaNonce nonce{};
    DAEL_TRY(key_schedule(scratch.shared(), info, scratch.key(), nonce));
    return chacha_seal(scratch.key(), nonce, plain, sealed);
}

Result<> hybrid_open(HostIn seed, const HybridShare& share, HostIn info, HostIn sealed,
                     HostOut plain) {
    std::ranges::fill(plain, std::uint8_t{0});
    DAEL_TRY(check_hybrid());
    DAEL_LET(halves, Halves::of(seed));
    DAEL_LET(ours, kem_key(halves.kem()));
    DAEL_LET(scratch, Scratch::create());
    {
        const core::LibcryptoNotes notes;
        const Owned<EVP_PKEY_CTX> context(
            EVP_PKEY_CTX_new_from_pkey(core::libcrypto(), ours.get(), nullptr));
        std::size_t size = kKemSecret;
        if (!context || EVP_PKEY_decapsulate_init(context.get(), nullptr) != 1 ||
            EVP_PKEY_decapsulate(context.get(), scratch.kem_secret().data(), &size, share.data(),
                                 kKemShare) != 1 ||
            size != kKemSecret)
            return notes.failure(kKem);
    }
    const HostIn point = HostIn(share).subspan(kKemShare);
    DAEL_LET(recipient, x25519_public(halves.curve()));
    DAEL_TRY(x25519(halves.curve(), point, scratch.curve_secret()));
    DAEL_TRY(
        combine(scratch.kem_secret(), scratch.curve_secret(), point, recipient, scratch.shared()));
    ChaChaNonce nonce{};
    DAEL_TRY(key_schedule(scratch.shared(), info, scratch.key(), nonce));
    return chacha_open(scratch.key(), nonce, sealed, plain);
}

}  // namespace dael::formats
