// SPDX-License-Identifier: Apache-2.0
// A provider that encrypts nothing: what comes in goes out as it is, and tags are zeros. So what
// remains of a measurement is OpenSSL's own cost of a call, below which no cipher can come. For
// speed.py and messages.cpp alone; never installed, and useless for anything else.
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <cstdlib>
#include <cstring>

namespace {

struct Cipher {
    std::size_t key_bytes, iv_bytes, block_bytes;
    unsigned mode;
};

template <std::size_t key_bytes, std::size_t iv_bytes, std::size_t block_bytes, unsigned mode>
inline constexpr Cipher kCipher{key_bytes, iv_bytes, block_bytes, mode};

template <const Cipher& cipher>
int get_params(OSSL_PARAM* params) {
    const auto set = [&](const char* name, std::size_t value) {
        OSSL_PARAM* const p = OSSL_PARAM_locate(params, name);
        return !p || OSSL_PARAM_set_size_t(p, value);
    };
    OSSL_PARAM* const mode = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_MODE);
    OSSL_PARAM* const aead = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD);
    return set(OSSL_CIPHER_PARAM_KEYLEN, cipher.key_bytes) &&
           set(OSSL_CIPHER_PARAM_IVLEN, cipher.iv_bytes) &&
           set(OSSL_CIPHER_PARAM_BLOCK_SIZE, cipher.block_bytes) &&
           (!mode || OSSL_PARAM_set_uint(mode, cipher.mode)) &&
           (!aead || OSSL_PARAM_set_int(aead, cipher.mode == EVP_CIPH_GCM_MODE));
}

template <const Cipher& cipher>
int get_ctx_params(void*, OSSL_PARAM* params) {
    for (OSSL_PARAM* p = params; p && p->key; ++p) {
        if (std::strcmp(p->key, OSSL_CIPHER_PARAM_KEYLEN) == 0) {
            if (!OSSL_PARAM_set_size_t(p, cipher.key_bytes)) return 0;
        } else if (std::strcmp(p->key, OSSL_CIPHER_PARAM_IVLEN) == 0) {
            if (!OSSL_PARAM_set_size_t(p, cipher.iv_bytes)) return 0;
        } else if (std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD) == 0) {
            if (!OSSL_PARAM_set_size_t(p, 16)) return 0;
        } else if (p->data && p->data_type == OSSL_PARAM_OCTET_STRING) {
            std::memset(p->data, 0, p->data_size);
            p->return_size = p->data_size;
        }
    }
    return 1;
}
int set_ctx_params(void*, const OSSL_PARAM*) {
    return 1;
}

void* new_context(void*) {
    return std::malloc(1);
}
void free_context(void* context) {
    std::free(context);
}
int init(void*, const unsigned char*, std::size_t, const unsigned char*, std::size_t,
         const OSSL_PARAM*) {
    return 1;
}
int update(void*, unsigned char* out, std::size_t* written, std::size_t room,
           const unsigned char* in, std::size_t size) {
    if (out && room < size) return 0;
    if (out && in && out != in) std::memmove(out, in, size);
    *written = size;
    return 1;
}
int final(void*, unsigned char*, std::size_t* written, std::size_t) {
    *written = 0;
    return 1;
}

const OSSL_PARAM* asked(void*, void*) {
    static const OSSL_PARAM kAll[] = {
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, nullptr),
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD, nullptr),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, nullptr, 0),
        OSSL_PARAM_END};
    return kAll;
}
const OSSL_PARAM* told(void*, void*) {
    static const OSSL_PARAM kAll[] = {
        OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, nullptr),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, nullptr, 0),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, nullptr, 0), OSSL_PARAM_END};
    return kAll;
}

using Function = void (*)();
template <class T>
Function as_function(T* f) {
    return reinterpret_cast<Function>(f);
}
template <const Cipher& cipher>
const OSSL_DISPATCH* functions() {
    static const OSSL_DISPATCH kAll[] = {
        {OSSL_FUNC_CIPHER_NEWCTX, as_function(&new_context)},
        {OSSL_FUNC_CIPHER_FREECTX, as_function(&free_context)},
        {OSSL_FUNC_CIPHER_ENCRYPT_INIT, as_function(&init)},
        {OSSL_FUNC_CIPHER_DECRYPT_INIT, as_function(&init)},
        {OSSL_FUNC_CIPHER_UPDATE, as_function(&update)},
        {OSSL_FUNC_CIPHER_FINAL, as_function(&final)},
        {OSSL_FUNC_CIPHER_CIPHER, as_function(&update)},
        {OSSL_FUNC_CIPHER_GET_PARAMS, as_function(&get_params<cipher>)},
        {OSSL_FUNC_CIPHER_GET_CTX_PARAMS, as_function(&get_ctx_params<cipher>)},
        {OSSL_FUNC_CIPHER_SET_CTX_PARAMS, as_function(&set_ctx_params)},
        {OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, as_function(&asked)},
        {OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, as_function(&told)},
        {0, nullptr}};
    return kAll;
}

#define NULL_CIPHER(bits, mode, iv, block)                                                        \
    {                                                                                             \
        "AES-" #bits "-" #mode, "provider=nothing",                                               \
            functions<kCipher<bits / 8, iv, block, EVP_CIPH_##mode##_MODE>>(), "encrypts nothing" \
    }
#define NULL_MODE(mode, iv, block)                                        \
    NULL_CIPHER(128, mode, iv, block), NULL_CIPHER(192, mode, iv, block), \
        NULL_CIPHER(256, mode, iv, block)

const OSSL_ALGORITHM* query(void*, int operation, int* no_cache) {
    static const OSSL_ALGORITHM kAll[] = {NULL_MODE(ECB, 0, 16),
                                          NULL_MODE(CBC, 16, 16),
                                          NULL_MODE(CFB, 16, 1),
                                          NULL_MODE(OFB, 16, 1),
                                          NULL_MODE(CTR, 16, 1),
                                          NULL_MODE(GCM, 12, 1),
                                          {nullptr, nullptr, nullptr, nullptr}};
    *no_cache = 0;
    return operation == OSSL_OP_CIPHER ? kAll : nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int OSSL_provider_init(
    const OSSL_CORE_HANDLE* handle, const OSSL_DISPATCH*, const OSSL_DISPATCH** out,
    void** context) {
    static const OSSL_DISPATCH kFunctions[] = {
        {OSSL_FUNC_PROVIDER_QUERY_OPERATION, as_function(&query)}, {0, nullptr}};
    *context = const_cast<OSSL_CORE_HANDLE*>(handle);
    *out = kFunctions;
    return 1;
}
