// SPDX-License-Identifier: Apache-2.0
// libcrypto's handles that free themselves.
#pragma once

#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <memory>

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
    void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
template <class Handle>
using Owned = std::unique_ptr<Handle, Free>;

}  // namespace dael::formats
