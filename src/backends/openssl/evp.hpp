// SPDX-License-Identifier: Apache-2.0
// What this folder's sources share of OpenSSL's EVP interface: owners of its objects, and errors.
#pragma once

#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>
#include <string>

#include <daelstrom/error.hpp>

#include "core/libcrypto.hpp"

namespace dael::openssl {

// EVP counts bytes in an int. Pieces are shorter still, so that tests go past one.
inline constexpr std::size_t kPiece = std::size_t{16} << 20;

struct Free {
    void operator()(EVP_CIPHER* cipher) const noexcept { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using Algorithm = std::unique_ptr<EVP_CIPHER, Free>;
using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;  // freeing it wipes the key in it

// Of three key sizes: 16, 24 and 32 bytes.
constexpr std::size_t by_size(int key_bytes) noexcept {
    return static_cast<std::size_t>(key_bytes / 8 - 2);
}

// The reason is the first of this thread's error queue, which is left empty. Where memory has run
// out OpenSSL often says so, and else that a context could not be set up: of keys and IVs that are
// right, as ours are, nothing else comes of that.
inline Error failure(const char* call, Code code = Code::internal) {
    char text[256] = "no reason given";
    const auto first = ERR_get_error();
    bool memory = first == 0;
    for (auto reason = first; reason != 0; reason = ERR_get_error())
        memory |= ERR_GET_REASON(reason) == ERR_R_MALLOC_FAILURE ||
                  (ERR_GET_LIB(reason) == ERR_LIB_EVP &&
                   ERR_GET_REASON(reason) == EVP_R_INITIALIZATION_ERROR);
    ERR_clear_error();  // where each was, too, which takes memory
    if (memory) return {Code::out_of_memory, "openssl: no memory"};
    ERR_error_string_n(first, text, sizeof text);
    return {code, std::string("openssl: ") + call + ": " + text};
}

// Fetched once, when the backend is opened: a fetch costs more than encrypting a kilobyte.
inline Result<> fetch(Algorithm& cipher, const std::string& algorithm) {
    cipher.reset(EVP_CIPHER_fetch(core::libcrypto(), algorithm.c_str(), nullptr));
    if (!cipher) return failure(("EVP_CIPHER_fetch " + algorithm).c_str(), Code::backend_absent);
    return {};
}

inline Result<> initialise(EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher,
                           const unsigned char* key, const unsigned char* iv, int encrypt) {
    if (EVP_CipherInit_ex2(context, cipher, key, iv, encrypt, nullptr)) return {};
    return failure("EVP_CipherInit_ex2");
}

inline Result<Context> new_context() {
    Context context(EVP_CIPHER_CTX_new());
    if (!context) return Error{Code::out_of_memory, "openssl: no memory for a cipher context"};
    return context;
}

}  // namespace dael::openssl
