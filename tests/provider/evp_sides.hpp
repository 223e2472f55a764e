// SPDX-License-Identifier: Apache-2.0
// OpenSSL twice in one program, for tests and fuzz targets of the provider: a library context with
// the default provider alone, which is the oracle, and one where daelstrom comes first.
#pragma once

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/xorshift.hpp"

namespace dael::test {

using Bytes = std::vector<std::uint8_t>;

struct Side {
    OSSL_LIB_CTX* library = nullptr;
    OSSL_PROVIDER* daelstrom = nullptr;
    OSSL_PROVIDER* standard = nullptr;
    const char* properties = nullptr;
};

// Everything of the engine at once, and a threshold that small tests reach. What is set wins.
inline void prepare() {
    setenv("DAELSTROM_PROVIDER_WARMUP", "0", 0);
    setenv("DAELSTROM_PROVIDER_THRESHOLD", "65536", 0);
    setenv("DAELSTROM_PROVIDER_THREADS", "3", 0);
}
// After prepare(); by any thread.
inline Side loaded() {
    Side side;
    side.library = OSSL_LIB_CTX_new();
    const char* const folder = std::getenv("DAELSTROM_PROVIDER_FOLDER");
    OSSL_PROVIDER_set_default_search_path(side.library, folder ? folder : DAEL_PROVIDER_FOLDER);
    side.daelstrom = OSSL_PROVIDER_load(side.library, "daelstrom");
    side.standard = OSSL_PROVIDER_load(side.library, "default");
    side.properties = "provider=daelstrom";
    if (!side.daelstrom || !side.standard) ERR_print_errors_fp(stderr);
    return side;
}
inline Side open_ours() {
    prepare();
    return loaded();
}
// Opened at the first call.
inline const Side& ours() {
    static const Side side = open_ours();
    return side;
}
inline const Side& theirs() {
    static const Side side = [] {
        Side made;
        made.library = OSSL_LIB_CTX_new();
        made.standard = OSSL_PROVIDER_load(made.library, "default");
        made.properties = "provider=default";
        return made;
    }();
    return side;
}

struct FreeCipher {
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER, FreeCipher>;
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

inline Cipher fetch(const Side& side, const std::string& name) {
    return Cipher(EVP_CIPHER_fetch(side.library, name.c_str(), side.properties));
}
inline Context context() {
    return Context(EVP_CIPHER_CTX_new());
}

class Numbers : public Xorshift {
  public:
    using Xorshift::Xorshift;
    std::size_t size() {
        static constexpr std::size_t kSizes[] = {
            0,     1,     5,     15,    16,    17,    31,    32,    48,    255,  256,
            257,   1023,  1024,  1040,  2048,  2049,  4095,  4096,  4112,  5000, 8192,
            16384, 28672, 32768, 33000, 65535, 65536, 66000, 70016, 150000};
        return kSizes[below(sizeof kSizes / sizeof *kSizes)];
    }
};

}  // namespace dael::test
