// SPDX-License-Identifier: Apache-2.0
// libcrypto's handles that free themselves, and its failures.
#pragma once

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <memory>
#include <string>

#include <daelstrom/error.hpp>

namespace dael::formats {

struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
    void operator()(EVP_MD* hash) const { EVP_MD_free(hash); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    void operator()(EVP_KEYMGMT* keys) const { EVP_KEYMGMT_free(keys); }
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
    void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
    void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};
template <class Handle>
using Owned = std::unique_ptr<Handle, Free>;

// What libcrypto notes of a failure in this thread is ours to tell, and would be taken for a
// failure of the caller's own next call.
struct NoNotes {
    NoNotes() { ERR_set_mark(); }
    NoNotes(const NoNotes&) = delete;
    NoNotes& operator=(const NoNotes&) = delete;
    ~NoNotes() { ERR_pop_to_mark(); }
};

inline Error failed_in_libcrypto(const char* what) {
    return {Code::internal, std::string(what) + " of libcrypto failed"};
}

}  // namespace dael::formats
