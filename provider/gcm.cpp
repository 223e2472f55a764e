// SPDX-License-Identifier: Apache-2.0
// GCM. What a message is done with is chosen when its data comes: the default provider's context
// (the basis), the engine's pieces on the calling thread, or the engine's batches on all cores. The
// basis has the key always, and of the IV hears when it needs it; whatever a program does that is
// not key, IV of 12 bytes, additional data, data and tag, is the basis's.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "basis.hpp"
#include "contest.hpp"
#include "pipelines.hpp"
#include "wide_gcm.hpp"
#include "worker.hpp"

namespace dael::provider {
namespace {

constexpr std::size_t kNonce = 12;
constexpr std::size_t kTag = 16;
constexpr std::size_t kShortAad = 32;  // kept until the data comes
// A message that begins with less is the basis's: OpenSSL's code is as quick there, of any version.
constexpr std::size_t kLeast = 256;
// In thresholds: where two chunks on two threads begin to be quicker than one message on one.
constexpr std::size_t kWideFrom = 8;

enum class Way : unsigned char { none, open, basis, pieces, wide, ended };

struct Gcm {
    const Basis* basis;
    void* inner;
    Way way = Way::none;  // none: no IV of this message is here; open: not chosen yet
    bool encrypts = true, keyed = false, told = false;  // told: the basis knows the direction
    bool iv_known = false;                              // by the basis
    bool made = false;                                  // `tag` is what we made of the last message
    std::size_t iv_size = kNonce;
    unsigned char iv[kNonce] = {};
    unsigned char aad[kShortAad] = {};
    std::size_t aad_size = 0;
    unsigned char tag[kTag] = {};
    std::size_t tag_size = 0;  // that the caller set, or 16 of ours; 0: none
    std::size_t key_bytes;
    dael_pieces* pieces[2] = {};  // by direction
    WideGcm* wide = nullptr;
    Pipes* pipes = nullptr;
    Worker worker;
};

Gcm& gcm_of(void* context) noexcept {
    return *static_cast<Gcm*>(context);
}

int fault(int reason, const char* why) noexcept {
    ERR_raise_data(ERR_LIB_PROV, reason, "daelstrom: %s", why);
    return 0;
}

void drop_wide(Gcm& c) noexcept {
    if (!c.wide) return;
    c.wide->~WideGcm();
    OPENSSL_free(c.wide);
    c.wide = nullptr;
}
void drop_handles(Gcm& c) noexcept {
    for (auto*& pieces : c.pieces) {
        dael_pieces_free(pieces);
        pieces = nullptr;
    }
    drop_wide(c);
}

bool start(Gcm& c, const unsigned char* key, std::size_t key_size, const unsigned char* iv,
           std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    const auto init = c.encrypts ? c.basis->encrypt_init : c.basis->decrypt_init;
    if (init(c.inner, key, key_size, iv, iv_size, params) != 1) return false;
    c.told = true;
    return true;
}
// The basis gets the IV that we kept, if it has not.
bool tell_iv(Gcm& c) noexcept {
    if (c.iv_known || c.way == Way::none || c.way == Way::basis) return true;
    c.iv_known = start(c, nullptr, 0, c.iv, kNonce, nullptr);
    return c.iv_known;
}
bool to_basis(Gcm& c) noexcept {
    if (c.way == Way::open && !tell_iv(c)) return false;
    std::size_t made = 0;
    if (c.way == Way::open && c.aad_size != 0 &&
        c.basis->update(c.inner, nullptr, &made, c.aad_size, c.aad, c.aad_size) != 1)
        return false;
    c.way = Way::basis;
    return true;
}

bool to_wide(Gcm& c) noexcept {
    if (!c.wide) {
        void* const memory = OPENSSL_malloc(sizeof(WideGcm));
        if (!memory) return false;
        c.wide = new (memory) WideGcm;
    }
    if (!c.wide->begin(opened_engine(), c.worker.key, c.encrypts, c.iv)) {
        engine_failed("beginning a wide message");
        return false;
    }
    c.wide->aad(c.aad, c.aad_size);
    c.way = Way::wide;
    return true;
}
bool to_pieces(Gcm& c) noexcept {
    dael_pieces*& pieces = c.pieces[c.encrypts ? 0 : 1];
    unsigned char j0[16];
    if (dael_gcm_start(c.iv, j0) != DAEL_OK) return false;
    dael_status done = DAEL_OK;
    if (pieces) {
        done = dael_pieces_restart(pieces, j0);
    } else {
        const dael_cipher cipher{
            DAEL_GCM, static_cast<std::uint8_t>(c.encrypts ? DAEL_ENCRYPT : DAEL_DECRYPT), kTag, 0,
            0};
        done = dael_begin(opened_engine(), &cipher, c.worker.key, j0, &pieces);
    }
    if (done == DAEL_OK && c.aad_size != 0) done = dael_pieces_aad(pieces, c.aad, c.aad_size);
    if (done != DAEL_OK) {
        engine_failed("beginning a message");
        return false;
    }
    c.way = Way::pieces;
    return true;
}

// The way of a message whose first data, or end, has come.
bool choose(Gcm& c, std::size_t size) noexcept {
    if (size < kLeast || !c.keyed || !c.worker.ready(size)) return to_basis(c);
    if (size >= kWideFrom * settings().threshold && to_wide(c)) return true;
    return (size >= won_from(*c.basis, c.encrypts) && to_pieces(c)) || to_basis(c);
}

int gcm_set(void* context, const OSSL_PARAM* params) noexcept {
    Gcm& c = gcm_of(context);
    bool theirs = false;  // something that is done by the basis from here on
    for (const OSSL_PARAM* p = params; p && p->key; ++p) {
        if (std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_TAG) == 0 ||
            std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_IVLEN) == 0 ||
            std::strcmp(p->key, OSSL_CIPHER_PARAM_KEYLEN) == 0 ||
            std::strcmp(p->key, OSSL_CIPHER_PARAM_PADDING) == 0)
            continue;
        theirs = true;
    }
    // A key, an IV or an AAD by way of TLS goes on from the IV that we kept.
    if (theirs && c.way == Way::open && !to_basis(c)) return 0;
    if (c.pipes && !c.pipes->set(params)) return 0;
    if (c.basis->set_ctx_params(c.inner, params) != 1) return 0;
    if (theirs) {
        c.way = Way::basis;
        c.made = false;
    }
    for (const OSSL_PARAM* p = params; p && p->key; ++p) {
        if (std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_TAG) == 0) {
            c.tag_size = std::min(p->data_size, kTag);
            if (p->data) std::memcpy(c.tag, p->data, c.tag_size);
            if (!c.encrypts) c.made = false;
        } else if (std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_IVLEN) == 0) {
            std::size_t size = 0;
            if (!OSSL_PARAM_get_size_t(p, &size)) return 0;
            // As OpenSSL has it, an IV of another size is needed then.
            if (size != c.iv_size && c.way == Way::open) c.way = Way::none;
            c.iv_size = size;
        }
    }
    return 1;
}

int init(Gcm& c, bool encrypts, const unsigned char* key, std::size_t key_size,
         const unsigned char* iv, std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    const bool same_way = c.told && c.encrypts == encrypts;
    const bool plain =
        (!key || key_size == c.key_bytes) && (!iv || (iv_size == kNonce && c.iv_size == kNonce));
    c.encrypts = encrypts;
    if (!plain) {
        // The basis does all of it, and says what is wrong with it.
        if (c.way == Way::open && !iv && !to_basis(c)) return 0;
        if (!start(c, key, key_size, iv, iv_size, nullptr)) return 0;
        c.way = Way::basis;
        c.made = false;
    } else {
        const bool new_key = key && !(c.keyed && c.worker.same(key, key_size));
        // A new key's first message is most often the basis's: it gets the IV in the same call.
        if ((new_key || !same_way) &&
            !start(c, new_key ? key : nullptr, key_size, iv, iv ? kNonce : 0, nullptr))
            return 0;
        // Only a new IV begins another message; what is under way with the old key is over.
        if (!iv && (new_key || !same_way) && (c.way == Way::pieces || c.way == Way::wide))
            c.way = Way::ended;
        if (iv) {
            std::memcpy(c.iv, iv, kNonce);
            c.way = Way::open;
            c.iv_known = new_key || !same_way;
            c.made = false;
            c.aad_size = 0;
        }
    }
    if (key && key_size == c.key_bytes) {
        if (!c.worker.same(key, key_size)) drop_handles(c);
        c.worker.set(key, key_size);
        c.keyed = true;
    }
    return params ? gcm_set(&c, params) : 1;
}
int gcm_encrypt_init(void* context, const unsigned char* key, std::size_t key_size,
                     const unsigned char* iv, std::size_t iv_size,
                     const OSSL_PARAM* params) noexcept {
    return init(gcm_of(context), true, key, key_size, iv, iv_size, params);
}
int gcm_decrypt_init(void* context, const unsigned char* key, std::size_t key_size,
                     const unsigned char* iv, std::size_t iv_size,
                     const OSSL_PARAM* params) noexcept {
    return init(gcm_of(context), false, key, key_size, iv, iv_size, params);
}

int add_aad(Gcm& c, std::size_t* written, const unsigned char* in, std::size_t size) noexcept {
    *written = size;
    if (c.way == Way::open) {
        if (size <= kShortAad - c.aad_size) {
            std::memcpy(c.aad + c.aad_size, in, size);
            c.aad_size += size;
            return 1;
        }
        const bool engine = c.keyed && c.worker.ready(size) &&
                            size >= won_from(*c.basis, c.encrypts) && to_pieces(c);
        if (!engine && !to_basis(c)) return 0;
        if (c.way == Way::basis) return c.basis->update(c.inner, nullptr, written, size, in, size);
    }
    if (c.way == Way::pieces && dael_pieces_aad(c.pieces[c.encrypts ? 0 : 1], in, size) == DAEL_OK)
        return 1;
    *written = 0;
    return fault(PROV_R_CIPHER_OPERATION_FAILED, "additional data comes before the data");
}

int gcm_update(void* context, unsigned char* out, std::size_t* written, std::size_t room,
               const unsigned char* in, std::size_t size) noexcept {
    Gcm& c = gcm_of(context);
    if (c.way == Way::basis || c.way == Way::none)
        return c.basis->update(c.inner, out, written, room, in, size);
    if (size == 0) {
        *written = 0;
        return 1;
    }
    if (!out) return add_aad(c, written, in, size);
    *written = 0;
    if (room < size) return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
    if (c.way == Way::open) {
        if (!choose(c, size)) return 0;
        if (c.way == Way::basis) return c.basis->update(c.inner, out, written, room, in, size);
    }
    if (c.way == Way::pieces) {
        dael_pieces* const pieces = c.pieces[c.encrypts ? 0 : 1];
        const dael_status done = c.encrypts
                                     ? dael_pieces_update(pieces, in, size, out, size, nullptr)
                                     : dael_pieces_update_unverified(pieces, in, out, size);
        if (done != DAEL_OK) {
            c.way = Way::ended;
            return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
        }
        c.worker.did(size);
    } else if (c.way == Way::wide) {
        if (!thread_may_work() || !c.wide->update(in, out, size)) {
            c.way = Way::ended;
            engine_failed("a wide message");
            return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
        }
        Worker::did_wide(size);
    } else {
        return fault(PROV_R_CIPHER_OPERATION_FAILED, "this message is at its end: set an IV");
    }
    *written = size;
    return 1;
}

int gcm_final(void* context, unsigned char* out, std::size_t* written, std::size_t room) noexcept {
    Gcm& c = gcm_of(context);
    if (c.way == Way::open && !choose(c, 0)) return 0;
    if (c.way == Way::basis || c.way == Way::none)
        return c.basis->final(c.inner, out, written, room);
    *written = 0;
    if (c.way == Way::ended)
        return fault(PROV_R_CIPHER_OPERATION_FAILED, "this message is at its end: set an IV");
    unsigned char tag[kTag] = {};
    dael_pieces* const pieces = c.pieces[c.encrypts ? 0 : 1];
    const bool ok = c.way == Way::wide ? c.wide->tag(tag)
                    : c.encrypts       ? dael_pieces_finish(pieces, tag, kTag, nullptr) == DAEL_OK
                                       : dael_pieces_tag(pieces, tag) == DAEL_OK;
    c.way = Way::ended;
    if (!ok) return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
    if (c.encrypts) {
        std::memcpy(c.tag, tag, kTag);
        c.tag_size = kTag;
        c.made = true;
        return 1;
    }
    // As OpenSSL has it, a failure is not on its queue: the result alone says so.
    const bool right = c.tag_size != 0 && CRYPTO_memcmp(tag, c.tag, c.tag_size) == 0;
    OPENSSL_cleanse(tag, sizeof tag);
    return right ? 1 : 0;
}

// EVP_Cipher(), which libssl uses for records of TLS 1.2: those are the basis's.
int gcm_cipher(void* context, unsigned char* out, std::size_t* written, std::size_t room,
               const unsigned char* in, std::size_t size) noexcept {
    Gcm& c = gcm_of(context);
    if (c.way == Way::basis || c.way == Way::none)
        return c.basis->cipher(c.inner, out, written, room, in, size);
    return in ? gcm_update(context, out, written, room, in, size)
              : gcm_final(context, out, written, room);
}

// What of a message of ours the basis cannot know.
bool get_ours(const Gcm& c, OSSL_PARAM* p) noexcept {
    if (std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_IVLEN) == 0)
        return OSSL_PARAM_set_size_t(p, c.iv_size) == 1;
    if (std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_TAGLEN) == 0 && c.made)
        return OSSL_PARAM_set_size_t(p, kTag) == 1;
    if (std::strcmp(p->key, OSSL_CIPHER_PARAM_AEAD_TAG) == 0 && c.made) {
        if (p->data_size == 0 || p->data_size > kTag || !c.encrypts)
            return fault(PROV_R_INVALID_TAG, "a tag has 1 to 16 bytes, and encryption makes it");
        return OSSL_PARAM_set_octet_string(p, c.tag, p->data_size) == 1;
    }
    if (std::strcmp(p->key, OSSL_CIPHER_PARAM_IV) == 0 ||
        std::strcmp(p->key, OSSL_CIPHER_PARAM_UPDATED_IV) == 0) {
        if (p->data_type == OSSL_PARAM_OCTET_STRING && p->data_size < kNonce)
            return fault(PROV_R_INVALID_IV_LENGTH, "the IV has 12 bytes");
        return OSSL_PARAM_set_octet_string(p, c.iv, kNonce) == 1 ||
               OSSL_PARAM_set_octet_ptr(p, c.iv, kNonce) == 1;
    }
    OSSL_PARAM one[] = {*p, OSSL_PARAM_construct_end()};
    if (c.basis->get_ctx_params(c.inner, one) != 1) return false;
    p->return_size = one[0].return_size;
    return true;
}
int gcm_get(void* context, OSSL_PARAM* params) noexcept {
    Gcm& c = gcm_of(context);
    if (c.pipes && !c.pipes->get(params)) return 0;
    // To ask for an IV that TLS counts is to go its way.
    if (c.way == Way::open && OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN) &&
        !to_basis(c))
        return 0;
    if (c.way == Way::basis || c.way == Way::none) return c.basis->get_ctx_params(c.inner, params);
    for (OSSL_PARAM* p = params; p && p->key; ++p)
        if (!get_ours(c, p)) return 0;
    return 1;
}

void gcm_free(void* context) noexcept {
    if (!context) return;
    Gcm& c = gcm_of(context);
    c.worker.tell();
    drop_handles(c);
    c.worker.drop();
    Pipes::drop(c.pipes);
    c.basis->freectx(c.inner);
    OPENSSL_cleanse(c.worker.bytes, sizeof c.worker.bytes);  // the one secret
    OPENSSL_free(context);
}

void* gcm_duplicate(void* context) noexcept {
    Gcm& c = gcm_of(context);
    if (!c.basis->dupctx || (c.pipes && c.pipes->running())) return nullptr;
    void* const memory = OPENSSL_malloc(sizeof(Gcm));
    if (!memory) return nullptr;
    auto* const copy = new (memory) Gcm(c);
    copy->pieces[0] = copy->pieces[1] = nullptr;
    copy->wide = nullptr;
    copy->pipes = nullptr;
    copy->worker.key = nullptr;
    copy->worker.updates = copy->worker.done = 0;
    copy->inner = c.basis->dupctx(c.inner);
    if (!copy->inner) {
        OPENSSL_clear_free(memory, sizeof(Gcm));
        return nullptr;
    }
    const int direction = c.encrypts ? 0 : 1;
    bool ok = true;
    if (c.way == Way::pieces || c.way == Way::wide) {
        ok = dael_key_duplicate(c.worker.key, &copy->worker.key) == DAEL_OK;
        if (ok && c.way == Way::pieces)
            ok = dael_pieces_clone(c.pieces[direction], &copy->pieces[direction]) == DAEL_OK;
        if (ok && c.way == Way::wide) {
            void* const room = OPENSSL_malloc(sizeof(WideGcm));
            ok = room != nullptr;
            if (ok)
                copy->wide =
                    new (room) WideGcm(c.wide->copy_for(opened_engine(), copy->worker.key));
        }
    }
    if (ok) return copy;
    gcm_free(copy);
    return nullptr;
}

}  // namespace

void* new_gcm(Provider& provider, std::size_t offer) noexcept {
    const Basis& basis = provider.basis[offer];
    void* const memory = OPENSSL_malloc(sizeof(Gcm));
    if (!memory) return nullptr;
    void* const inner = basis.newctx(provider.default_context);
    if (inner)
        return new (memory) Gcm{
            .basis = &basis, .inner = inner, .key_bytes = kOffers[offer].key_bytes, .worker = {}};
    OPENSSL_free(memory);
    return nullptr;
}

void offer_gcm(OSSL_DISPATCH* functions) noexcept {
    replace(functions, OSSL_FUNC_CIPHER_FREECTX, &gcm_free);
    replace(functions, OSSL_FUNC_CIPHER_DUPCTX, &gcm_duplicate);
    replace(functions, OSSL_FUNC_CIPHER_ENCRYPT_INIT, &gcm_encrypt_init);
    replace(functions, OSSL_FUNC_CIPHER_DECRYPT_INIT, &gcm_decrypt_init);
    replace(functions, OSSL_FUNC_CIPHER_UPDATE, &gcm_update);
    replace(functions, OSSL_FUNC_CIPHER_FINAL, &gcm_final);
    replace(functions, OSSL_FUNC_CIPHER_CIPHER, &gcm_cipher);
    replace(functions, OSSL_FUNC_CIPHER_GET_CTX_PARAMS, &gcm_get);
    replace(functions, OSSL_FUNC_CIPHER_SET_CTX_PARAMS, &gcm_set);
    offer_pipelines<Gcm>(functions);
}

}  // namespace dael::provider
