// SPDX-License-Identifier: Apache-2.0
// What this folder's sources share of OpenSSL's EVP interface: owners of its objects, and errors.
#pragma once

#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>
#include <new>
#include <string>

#include <daelstrom/error.hpp>

#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"

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

// What libcrypto notes of a failure goes with these, and what the caller's own calls have noted
// stays. One around each call of the backend; what it calls is handed it.
using Notes = core::LibcryptoNotes;

inline Error no_memory() noexcept {
    return {Code::out_of_memory, "no host memory"};  // so short that it takes none
}

// Of the call that has failed just now. Its reason is the last that libcrypto has noted. Does not
// throw, since what is to be wiped after a failure is wiped by whoever hears of it.
inline Error failure(const Notes& notes, const char* call, Code code = Code::internal) noexcept {
    if (notes.lacked_memory()) return no_memory();
    char text[256];
    ERR_error_string_n(notes.last(), text, sizeof text);
    try {
        return {code, std::string("openssl: ") + call + ": " + text};
    } catch (const std::bad_alloc&) {
        return no_memory();
    }
}

// Fetched once, when the backend is opened: a fetch costs more than encrypting a kilobyte.
inline Result<> fetch(Algorithm& cipher, const std::string& algorithm) {
    const Notes notes;
    const auto find = [&] {
        cipher.reset(EVP_CIPHER_fetch(core::libcrypto(), algorithm.c_str(), nullptr));
        return cipher != nullptr;
    };
    if (find()) return {};
    // Of a lack of memory the last note may say that there is no such cipher. If it has passed, the
    // cipher is there.
    notes.forget();
    if (find()) return {};
    return failure(notes, ("EVP_CIPHER_fetch " + algorithm).c_str(), Code::backend_absent);
}

inline Result<> initialise(const Notes& notes, EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher,
                           const unsigned char* key, const unsigned char* iv, int encrypt) {
    if (EVP_CipherInit_ex2(context, cipher, key, iv, encrypt, nullptr)) return {};
    return failure(notes, "EVP_CipherInit_ex2");
}

inline Result<Context> new_context() {
    Context context(EVP_CIPHER_CTX_new());
    if (!context) return no_memory();
    return context;
}

}  // namespace dael::openssl
