// SPDX-License-Identifier: Apache-2.0
// The default provider as our foundation: loaded into a library context of its own, which reads no
// configuration and so cannot lead back to us, and called by the functions that it publishes
// (provider-cipher(7)), without EVP in between.
#pragma once

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/provider.h>

#include <atomic>
#include <cstddef>

namespace dael::provider {

enum class Kind { ecb, cbc, cfb, ctr, gcm, siv, as_it_is };

// A cipher's functions there. Those that a version of OpenSSL lacks are null.
struct Basis {
    OSSL_FUNC_cipher_newctx_fn* newctx;
    OSSL_FUNC_cipher_freectx_fn* freectx;
    OSSL_FUNC_cipher_dupctx_fn* dupctx;
    OSSL_FUNC_cipher_encrypt_init_fn* encrypt_init;
    OSSL_FUNC_cipher_decrypt_init_fn* decrypt_init;
    OSSL_FUNC_cipher_update_fn* update;
    OSSL_FUNC_cipher_final_fn* final;
    OSSL_FUNC_cipher_cipher_fn* cipher;
    OSSL_FUNC_cipher_get_ctx_params_fn* get_ctx_params;
    OSSL_FUNC_cipher_set_ctx_params_fn* set_ctx_params;
    OSSL_FUNC_cipher_gettable_ctx_params_fn* gettable_ctx_params;
    OSSL_FUNC_cipher_settable_ctx_params_fn* settable_ctx_params;
    void* provider_context;  // for newctx
    Kind kind;
    std::size_t key_bytes;

    bool complete() const noexcept {
        if (kind == Kind::as_it_is) return newctx;
        return newctx && freectx && encrypt_init && decrypt_init && update && final && cipher &&
               get_ctx_params && set_ctx_params;
    }
};

// What we offer, and by which name the default provider has it first.
struct Offer {
    const char* name;
    Kind kind;
    std::size_t key_bytes;
};
inline constexpr Offer kOffers[] = {
    {"AES-128-ECB", Kind::ecb, 16},
    {"AES-192-ECB", Kind::ecb, 24},
    {"AES-256-ECB", Kind::ecb, 32},
    {"AES-128-CBC", Kind::cbc, 16},
    {"AES-192-CBC", Kind::cbc, 24},
    {"AES-256-CBC", Kind::cbc, 32},
    {"AES-128-CFB", Kind::cfb, 16},
    {"AES-192-CFB", Kind::cfb, 24},
    {"AES-256-CFB", Kind::cfb, 32},
    {"AES-128-CTR", Kind::ctr, 16},
    {"AES-192-CTR", Kind::ctr, 24},
    {"AES-256-CTR", Kind::ctr, 32},
    {"AES-128-GCM", Kind::gcm, 16},
    {"AES-192-GCM", Kind::gcm, 24},
    {"AES-256-GCM", Kind::gcm, 32},
    {"AES-128-OFB", Kind::as_it_is, 16},
    {"AES-192-OFB", Kind::as_it_is, 24},
    {"AES-256-OFB", Kind::as_it_is, 32},
    {"AES-128-XTS", Kind::as_it_is, 32},
    {"AES-256-XTS", Kind::as_it_is, 64},
    {"AES-128-CBC-CTS", Kind::as_it_is, 16},
    {"AES-192-CBC-CTS", Kind::as_it_is, 24},
    {"AES-256-CBC-CTS", Kind::as_it_is, 32},
    // For their keys alone: one that is held by reference goes with ciphers of its own provider.
    {"AES-128-CFB1", Kind::as_it_is, 16},
    {"AES-128-CFB8", Kind::as_it_is, 16},
    {"AES-128-CCM", Kind::as_it_is, 16},
    {"AES-128-OCB", Kind::as_it_is, 16},
    {"AES-128-WRAP", Kind::as_it_is, 16},
    {"AES-128-WRAP-PAD", Kind::as_it_is, 16},
    {"AES-128-WRAP-INV", Kind::as_it_is, 16},
    {"AES-128-WRAP-PAD-INV", Kind::as_it_is, 16},
    {"AES-128-GCM-SIV", Kind::siv, 16},
    {"AES-128-SIV", Kind::as_it_is, 32},
    {"AES-192-CFB1", Kind::as_it_is, 24},
    {"AES-192-CFB8", Kind::as_it_is, 24},
    {"AES-192-CCM", Kind::as_it_is, 24},
    {"AES-192-OCB", Kind::as_it_is, 24},
    {"AES-192-WRAP", Kind::as_it_is, 24},
    {"AES-192-WRAP-PAD", Kind::as_it_is, 24},
    {"AES-192-WRAP-INV", Kind::as_it_is, 24},
    {"AES-192-WRAP-PAD-INV", Kind::as_it_is, 24},
    {"AES-192-GCM-SIV", Kind::as_it_is, 24},
    {"AES-192-SIV", Kind::as_it_is, 48},
    {"AES-256-CFB1", Kind::as_it_is, 32},
    {"AES-256-CFB8", Kind::as_it_is, 32},
    {"AES-256-CCM", Kind::as_it_is, 32},
    {"AES-256-OCB", Kind::as_it_is, 32},
    {"AES-256-WRAP", Kind::as_it_is, 32},
    {"AES-256-WRAP-PAD", Kind::as_it_is, 32},
    {"AES-256-WRAP-INV", Kind::as_it_is, 32},
    {"AES-256-WRAP-PAD-INV", Kind::as_it_is, 32},
    {"AES-256-GCM-SIV", Kind::siv, 32},
    {"AES-256-SIV", Kind::as_it_is, 64},
};
inline constexpr std::size_t kOfferCount = sizeof kOffers / sizeof *kOffers;
inline constexpr std::size_t kMaxFunctions = 40;  // of a cipher, of which OpenSSL 3.5 has 26

// Keys by reference (OpenSSL 3.5, EVP_SKEY): the default provider's, its functions by their
// numbers. A cipher takes such a key from its own provider alone, so ours has to have them too.
inline constexpr int kOperationKeys = 15;
struct KeyManagement {
    void* (*import)(void* provider, int selection, const OSSL_PARAM* params);
    void* (*generate)(void* provider, const OSSL_PARAM* params);
    const OSSL_PARAM* (*import_settable)(void* provider);
    const OSSL_PARAM* (*generate_settable)(void* provider);
    OSSL_DISPATCH functions[8];
    OSSL_ALGORITHM algorithms[2];
};

// What we offer, over what the default provider has, which is the process's and stays when this
// goes.
struct Tables {
    OSSL_LIB_CTX* library = nullptr;
    OSSL_PROVIDER* default_provider = nullptr;
    void* default_context = nullptr;
    Basis basis[kOfferCount] = {};
    OSSL_DISPATCH functions[kOfferCount][kMaxFunctions] = {};
    OSSL_ALGORITHM algorithms[kOfferCount + 1] = {};
    KeyManagement keys = {};
};

// What stands behind one loading of the provider.
struct Provider {
    Provider() = default;
    Provider(const Provider&) = delete;
    Provider& operator=(const Provider&) = delete;
    ~Provider() { delete made.load(); }

    const OSSL_CORE_HANDLE* handle = nullptr;
    std::atomic<const Tables*> made{nullptr};  // whole, and then as they are to the end

    // Once they were made: before anybody has a cipher of ours.
    const Tables& tables() const noexcept { return *made.load(std::memory_order_acquire); }
};

// Loads the default provider and makes the tables of what it has, once. Null where that cannot be;
// errors are on OpenSSL's queue, and the next call tries again. Any thread; no lock, since to load
// takes as long as it takes: of threads that come meanwhile each makes its own, and the first one's
// stay, so that nobody waits, nor does a child of fork().
const Tables* make_ready(Provider& provider) noexcept;

// Our own functions, written over the default provider's in a table of `Kind`.
void offer_blocks(OSSL_DISPATCH* functions, Kind kind) noexcept;
void offer_gcm(OSSL_DISPATCH* functions) noexcept;
void offer_siv(OSSL_DISPATCH* functions) noexcept;
// newctx for offer number i, since it alone is not told of which cipher it is.
void* new_blocks(const Provider& provider, std::size_t offer) noexcept;
void* new_gcm(const Provider& provider, std::size_t offer) noexcept;
void* new_siv(const Provider& provider, std::size_t offer) noexcept;

// Puts `function` in the place of `id`, if the default provider has that.
template <class Function>
void replace(OSSL_DISPATCH* functions, int id, Function* function) noexcept {
    for (; functions->function_id != 0; ++functions)
        if (functions->function_id == id)
            functions->function = reinterpret_cast<void (*)()>(function);
}
// Puts `function` behind the last.
template <class Function>
void add(OSSL_DISPATCH* functions, int id, Function* function) noexcept {
    OSSL_DISPATCH* at = functions;
    while (at->function_id != 0) ++at;
    if (at + 1 >= functions + kMaxFunctions) return;
    *at++ = {id, reinterpret_cast<void (*)()>(function)};
    *at = {0, nullptr};
}

}  // namespace dael::provider
