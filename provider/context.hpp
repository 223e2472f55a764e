// SPDX-License-Identifier: Apache-2.0
// What the contexts of blocks.cpp and of gcm.cpp have in common: the default provider's context
// behind ours, made when something must be done by it, and how OpenSSL reaches the functions of a
// class by a table.
#pragma once

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "basis.hpp"

namespace dael::provider {

// The default provider's context. It is told what it lacks before it is to do something.
struct Inner {
    const Basis* basis;
    void* provider_context;
    void* context = nullptr;

    Inner(const Provider& provider, std::size_t offer) noexcept
        : basis(&provider.tables().basis[offer]),
          provider_context(provider.tables().default_context) {}
    bool make() noexcept {
        if (!context) context = basis->newctx(provider_context);
        return context != nullptr;
    }
    void drop() noexcept {
        if (context) basis->freectx(context);
        context = nullptr;
    }
    bool init(bool encrypts, const unsigned char* key, std::size_t key_size,
              const unsigned char* iv, std::size_t iv_size, const OSSL_PARAM* params) noexcept {
        return (encrypts ? basis->encrypt_init : basis->decrypt_init)(context, key, key_size, iv,
                                                                      iv_size, params) == 1;
    }
    // What it says leaves nothing on the queue: from 3.2 on a default provider that tries one type
    // of a parameter after the other leaves the first one's error, though it succeeds.
    bool get(OSSL_PARAM* params) noexcept {
        ERR_set_mark();
        const bool ok = basis->get_ctx_params(context, params) == 1;
        ok ? ERR_pop_to_mark() : ERR_clear_last_mark();
        return ok;
    }
};

inline int fault(int reason, const char* why) noexcept {
    ERR_raise_data(ERR_LIB_PROV, reason, "daelstrom: %s", why);
    return 0;
}
inline bool is(const OSSL_PARAM* p, const char* name) noexcept {
    return *p->key == *name && std::strcmp(p->key, name) == 0;
}

// Bytes for who asks for a copy or for a pointer. By type: newer versions put an error on the queue
// for the other.
inline bool give(OSSL_PARAM* p, const void* bytes, std::size_t size) noexcept {
    return (p->data_type == OSSL_PARAM_OCTET_PTR
                ? OSSL_PARAM_set_octet_ptr(p, bytes, size)
                : OSSL_PARAM_set_octet_string(p, bytes, size)) == 1;
}

// Whether input and output are neither the same nor apart, as OpenSSL itself never asks. `behind`:
// by how much the output may lag.
inline bool entangled(const unsigned char* in, const unsigned char* out, std::size_t size,
                      std::size_t behind) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(in);
    const auto to = reinterpret_cast<std::uintptr_t>(out);
    return in != out && (from < to ? to - from : from - to) < size + behind;
}

// The functions of a context's class by OpenSSL's table. The class has a constructor from Provider
// and the number of an offer, which may fail (whole() says so); before_copy() and after_copy() make
// of a plain copy a context of its own, or fail, and leave alone the one that is copied, as other
// threads may copy it too (openssl-threads(7)); it wipes what is secret when it goes, and throws
// nothing.
template <class Context>
struct Dispatch {
    static void* make(const Provider& provider, std::size_t offer) noexcept {
        void* const memory = OPENSSL_malloc(sizeof(Context));
        if (!memory) return nullptr;
        auto* const made = new (memory) Context(provider, offer);
        if (made->whole()) return made;
        free(made);
        return nullptr;
    }
    static void* duplicate(void* context) noexcept {
        const Context& original = of(context);
        if (!original.before_copy()) return nullptr;
        void* const memory = OPENSSL_malloc(sizeof(Context));
        if (!memory) return nullptr;
        auto* const copy = new (memory) Context(original);
        if (copy->after_copy()) return copy;
        free(copy);
        return nullptr;
    }
    static void free(void* context) noexcept {
        if (!context) return;
        of(context).~Context();
        OPENSSL_free(context);
    }
    static int encrypt_init(void* context, const unsigned char* key, std::size_t key_size,
                            const unsigned char* iv, std::size_t iv_size,
                            const OSSL_PARAM* params) noexcept {
        return of(context).init(true, key, key_size, iv, iv_size, params);
    }
    static int decrypt_init(void* context, const unsigned char* key, std::size_t key_size,
                            const unsigned char* iv, std::size_t iv_size,
                            const OSSL_PARAM* params) noexcept {
        return of(context).init(false, key, key_size, iv, iv_size, params);
    }
    static int update(void* context, unsigned char* out, std::size_t* written, std::size_t room,
                      const unsigned char* in, std::size_t size) noexcept {
        return of(context).update(out, written, room, in, size);
    }
    static int final(void* context, unsigned char* out, std::size_t* written,
                     std::size_t room) noexcept {
        return of(context).final(out, written, room);
    }
    static int cipher(void* context, unsigned char* out, std::size_t* written, std::size_t room,
                      const unsigned char* in, std::size_t size) noexcept {
        return of(context).cipher(out, written, room, in, size);
    }
    static int get(void* context, OSSL_PARAM* params) noexcept { return of(context).get(params); }
    static int set(void* context, const OSSL_PARAM* params) noexcept {
        return of(context).set(params);
    }
    static void offer(OSSL_DISPATCH* functions) noexcept {
        replace(functions, OSSL_FUNC_CIPHER_FREECTX, &free);
        replace(functions, OSSL_FUNC_CIPHER_DUPCTX, &duplicate);
        replace(functions, OSSL_FUNC_CIPHER_ENCRYPT_INIT, &encrypt_init);
        replace(functions, OSSL_FUNC_CIPHER_DECRYPT_INIT, &decrypt_init);
        replace(functions, OSSL_FUNC_CIPHER_UPDATE, &update);
        replace(functions, OSSL_FUNC_CIPHER_FINAL, &final);
        replace(functions, OSSL_FUNC_CIPHER_CIPHER, &cipher);
        replace(functions, OSSL_FUNC_CIPHER_GET_CTX_PARAMS, &get);
        replace(functions, OSSL_FUNC_CIPHER_SET_CTX_PARAMS, &set);
    }

  private:
    static Context& of(void* context) noexcept { return *static_cast<Context*>(context); }
};

}  // namespace dael::provider
