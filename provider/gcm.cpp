// SPDX-License-Identifier: Apache-2.0
#include "gcm.hpp"

#include <openssl/rand.h>

#include "refusals.hpp"

namespace dael::provider {
namespace {

// OpenSSL counts on eight bytes all the same, beyond it.
constexpr char kShort[] = "an IV that counts records has eight bytes or more";
constexpr char kVoid[] = "the IV is void since another size was set";

}  // namespace

Gcm::Gcm(const Provider& provider, std::size_t offer) noexcept
    : inner_(provider, offer),
      provider_(&provider),
      key_bytes_(static_cast<Bytes>(kOffers[offer].key_bytes)),
      quick_(by_vector_units()) {}
Gcm::~Gcm() {
    engine_key_.tell();
    drop_handles();
    engine_key_.drop();
    Pipes::drop(pipes_);
    inner_.drop();
    OPENSSL_cleanse(static_cast<void*>(this), sizeof *this);
}

bool Gcm::before_copy() const noexcept {
    return !(pipes_ && pipes_->running());
}
bool Gcm::after_copy() noexcept {
    const Handles theirs{engine_key_.key, pieces(), parallel_};
    void* const basis = inner_.context;
    engine_key_.key = nullptr;
    engine_key_.updates = engine_key_.done = 0;
    pieces_[0] = pieces_[1] = nullptr;
    parallel_ = nullptr;
    pipes_ = nullptr;
    inner_.context = nullptr;
    if (way_ == Way::basis) {
        if (inner_.basis->dupctx) inner_.context = inner_.basis->dupctx(basis);
        return inner_.context != nullptr;
    }
    told_ = {};
    return copy_handles(theirs);
}

void Gcm::drop_handles() noexcept {
    for (auto*& pieces : pieces_) {
        if (pieces) dael_pieces_free(pieces);
        pieces = nullptr;
    }
    if (!parallel_) return;
    parallel_->~ParallelGcm();
    OPENSSL_free(parallel_);
    parallel_ = nullptr;
}

// The one place where the key changes, with all that is made of it.
void Gcm::take_key(const unsigned char* key, std::size_t size) noexcept {
    if (keyed_ && engine_key_.same(key, size)) return;
    drop_handles();
    engine_key_.set(key, size);
    keyed_ = true;
    vector_keyed_ = told_.keyed = false;
}
// The one place where a message begins, of the IV in iv_.
void Gcm::begin_message() noexcept {
    way_ = Way::open;
    aad_size_ = 0;
    made_ = aad_over_ = void_ = false;
}
// The tag that the basis made, if it did.
void Gcm::fetch_tag() noexcept {
    OSSL_PARAM made[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag_, kTag),
                         OSSL_PARAM_construct_end()};
    ERR_set_mark();
    if (inner_.basis->get_ctx_params(inner_.context, made) == 1) tag_size_ = kTag;
    ERR_pop_to_mark();
}
// A record's header that is with the basis is still to be followed by the record, wherever.
void Gcm::leave_basis() noexcept {
    if (!header_below_) return;
    record_ = Record::refused;
    header_below_ = false;
    inner_.drop();
    told_ = {};
}
// An IV, given or of its own making.
bool Gcm::has_iv_below() noexcept {
    Bytes iv[128];
    OSSL_PARAM asked[] = {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_IV, iv, sizeof iv),
                          OSSL_PARAM_construct_end()};
    ERR_set_mark();
    const bool has = inner_.basis->get_ctx_params(inner_.context, asked) == 1;
    ERR_pop_to_mark();
    return has;
}

bool Gcm::tell_setting(const char* name, void* data, std::size_t size) noexcept {
    OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string(name, data, size),
                           OSSL_PARAM_construct_end()};
    return inner_.basis->set_ctx_params(inner_.context, params) == 1;
}

// Makes the basis know what it lacks, and the IV if it is given, of 12 bytes.
bool Gcm::tell(const unsigned char* iv) noexcept {
    if (!inner_.make()) return false;
    if (told_.iv_size != iv_size_) {
        OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, &iv_size_),
                               OSSL_PARAM_construct_end()};
        if (inner_.basis->set_ctx_params(inner_.context, params) != 1) return false;
        told_.iv_size = iv_size_;
    }
    const bool with_key = keyed_ && !told_.keyed;
    if (with_key || iv || !told_.directed || told_.encrypts != encrypts_) {
        if (!inner_.init(encrypts_, with_key ? engine_key_.bytes : nullptr,
                         with_key ? engine_key_.size : 0, iv, iv ? kNonce : 0, nullptr))
            return false;
        told_.keyed = told_.keyed || with_key;
        told_.directed = true;
        told_.encrypts = encrypts_;
    }
    return encrypts_ || tag_size_ == 0 || tell_setting(OSSL_CIPHER_PARAM_AEAD_TAG, tag_, tag_size_);
}

bool Gcm::init_below(const unsigned char* key, std::size_t key_size, const unsigned char* iv,
                     std::size_t iv_size) noexcept {
    if (way_ != Way::none && way_ != Way::basis) way_ = Way::ended;  // if it fails
    if (!tell()) return false;
    // That records are counted is known for good, whatever the IV.
    if (iv && generates_ && iv_size == iv_size_ &&
        !tell_setting(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, const_cast<Bytes*>(iv), SIZE_MAX))
        return false;
    if (!inner_.init(encrypts_, key, key_size, iv, iv_size, nullptr)) return false;
    if (iv) {
        iv_size_ = told_.iv_size = iv_size;
        void_ = made_ = false;
    }
    way_ = Way::basis;
    return true;
}

int Gcm::init(bool encrypts, const unsigned char* key, std::size_t key_size,
              const unsigned char* iv, std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    const bool turns = encrypts != encrypts_;
    const bool plain = (!key || key_size == key_bytes_) && (!iv || iv_size == kNonce);
    // What the basis is amid of, it goes on with; and it says what is wrong with what is not plain.
    const bool theirs = !plain || (!iv && way_ == Way::basis);
    if (theirs && !iv && way_ == Way::open && !to_basis()) return 0;
    // As OpenSSL has it, the tag that was made is what the next message is held against.
    if (turns && encrypts_ && way_ == Way::basis) fetch_tag();
    encrypts_ = encrypts;
    if (theirs) {
        if (!init_below(key, key_size, iv, iv_size)) return 0;
    } else if (iv) {
        if (header_below_) leave_basis();
        std::memcpy(iv_, iv, kNonce);
        iv_size_ = kNonce;
        begin_message();
    } else if ((under_way() && (key || turns)) || (key && way_ == Way::open && aad_size_ != 0)) {
        // Only a new IV begins another message. (OpenSSL goes on here, from a counter of zeros.)
        way_ = Way::ended;
    }
    if (key && key_size == key_bytes_) {
        take_key(key, key_size);
        if (theirs) told_.keyed = true;
    }
    return params ? set(params) : 1;
}

// libssl's way with TLS 1.2: of the IV, the part that stays; when encrypting the rest, which counts
// the records, begins with a random number (RFC 5288 3 leaves it to the sender).
bool Gcm::set_fixed_iv(const OSSL_PARAM* p) noexcept {
    if (p->data_size == SIZE_MAX) {  // all of the IV at once
        std::memcpy(iv_, p->data, kNonce);
    } else {
        if (p->data_size != kNonce - kExplicit) return false;
        Bytes random[kExplicit];
        if (encrypts_ && RAND_bytes_ex(provider_->tables().library, random, kExplicit, 0) != 1)
            return false;
        std::memcpy(iv_, p->data, p->data_size);
        if (encrypts_) std::memcpy(iv_ + p->data_size, random, kExplicit);
    }
    begin_message();
    generates_ = true;
    return true;
}
// The length in a record's header is that of what is in the record; GCM's AAD has the data's alone.
// As OpenSSL has it, the header lies where a tag would.
bool Gcm::set_tls_aad(const OSSL_PARAM* p) noexcept {
    if (p->data_size != kTlsAad) return fault(PROV_R_INVALID_AAD, "a record's AAD has 13 bytes");
    std::memcpy(tag_, p->data, kTlsAad);
    made_ = false;
    std::size_t size = std::size_t{tag_[kTlsAad - 2]} << 8 | tag_[kTlsAad - 1];
    const std::size_t around = kExplicit + (encrypts_ ? 0 : kTag);
    if (size < around) {
        record_ = Record::refused;
        return fault(PROV_R_INVALID_AAD, "a record is shorter than it can be");
    }
    size -= around;
    tag_[kTlsAad - 2] = static_cast<unsigned char>(size >> 8);
    tag_[kTlsAad - 1] = static_cast<unsigned char>(size);
    record_ = Record::next;
    headers_ = true;
    return true;
}

// `theirs`: the basis is to be told, and does what comes then.
bool Gcm::set_one(const OSSL_PARAM* p, bool& theirs) noexcept {
    const bool octets = p->data_type == OSSL_PARAM_OCTET_STRING && p->data;
    const bool below = way_ == Way::basis;
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TAG)) {
        const bool fits = octets && p->data_size != 0 && p->data_size <= kTag;
        // As OpenSSL has it, over a tag that was made, also where it is refused: so the made one is
        // not given out any more.
        if (fits) made_ = false;
        if (fits && !(encrypts_ && below)) std::memcpy(tag_, p->data, p->data_size);
        if (encrypts_ && below) {
            theirs = true;
            return true;
        }
        if (!octets || p->data_size > kTag)
            return fault(PROV_R_FAILED_TO_GET_PARAMETER, "a tag has 1 to 16 bytes");
        if (encrypts_) return refuse(*inner_.basis, Refusal::not_needed, "sealing makes the tag");
        if (!fits) return fault(PROV_R_INVALID_TAG, "a tag has 1 to 16 bytes");
        tag_size_ = tag_length_ = static_cast<Bytes>(p->data_size);
        return !below || tell_setting(OSSL_CIPHER_PARAM_AEAD_TAG, tag_, tag_size_);
    }
    if (is(p, OSSL_CIPHER_PARAM_AEAD_IVLEN)) {
        std::size_t size = 0;
        if (!OSSL_PARAM_get_size_t(p, &size)) return false;
        if (size == 0 || size > 128)
            return fault(PROV_R_INVALID_IV_LENGTH, "an IV has 1 to 128 bytes");
        if (size == iv_size_) return true;
        // As OpenSSL has it, an IV that is there is void then.
        if (below && !has_iv_below()) {
            iv_size_ = size;
            return tell();
        }
        iv_size_ = size;
        if (way_ != Way::none) {
            if (below && encrypts_) fetch_tag();
            leave_basis();
            way_ = Way::ended;
            void_ = true;
        }
        return true;
    }
    if (is(p, OSSL_CIPHER_PARAM_KEYLEN)) {
        std::size_t size = 0;
        if (!OSSL_PARAM_get_size_t(p, &size) || size != key_bytes_)
            return fault(PROV_R_INVALID_KEY_LENGTH, "the size of an AES key is its cipher's");
        return true;
    }
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED)) {
        if (!below && octets && iv_size_ == kNonce && !(void_ && !encrypts_))
            return set_fixed_iv(p);
        if (!below && way_ != Way::none && !encrypts_ && p->data_size != SIZE_MAX)
            return fault(PROV_R_INVALID_IV_LENGTH, kVoid);
        // OpenSSL would write beyond its context (its difference of sizes has no sign).
        if (p->data_size != SIZE_MAX && p->data_size + kExplicit > iv_size_) return false;
        theirs = true;
        return true;
    }
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD)) {
        if (iv_size_ < kExplicit) return fault(PROV_R_INVALID_IV_LENGTH, kShort);
        // Records are made here by the vector units alone. They need no more than the IV.
        if (!below && !quick_ && generates_ && iv_size_ == kNonce && !to_basis(true)) return false;
        theirs = way_ == Way::basis;
        if (theirs) header_below_ = true;
        return theirs || (octets && set_tls_aad(p));
    }
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV)) {
        // It begins a message anew from the IV that is there. (OpenSSL would write beyond a
        // shorter one.)
        if (!octets || p->data_size > iv_size_) return false;
        if (!below && (!generates_ || !keyed_ || encrypts_ || !to_basis(true))) return false;
        theirs = true;
        return true;
    }
    if (pipes_ && is(p, kPipelineTag)) return pipes_->set(p);
    if (!knows(inner_.basis->settable_ctx_params
                   ? inner_.basis->settable_ctx_params(nullptr, inner_.provider_context)
                   : nullptr,
               p))
        return true;  // as OpenSSL has it, it says nothing to what it does not know
    if (under_way() || way_ == Way::ended)
        return fault(PROV_R_FAILED_TO_SET_PARAMETER, "this is to be set before a message begins");
    theirs = true;
    return true;
}

bool Gcm::knows(const OSSL_PARAM* list, const OSSL_PARAM* p) const noexcept {
    return list && OSSL_PARAM_locate_const(list, p->key);
}

int Gcm::set(const OSSL_PARAM* params) noexcept {
    for (const OSSL_PARAM* p = params; p && p->key; ++p) {
        bool theirs = false;
        // What EVP sets at every initialisation of a context without padding; GCM has none.
        if (is(p, OSSL_CIPHER_PARAM_PADDING)) continue;
        if (!set_one(p, theirs)) return 0;
        if (!theirs) continue;
        if (way_ == Way::open ? !to_basis() : !tell()) return 0;
        const OSSL_PARAM one[] = {*p, OSSL_PARAM_construct_end()};
        if (inner_.basis->set_ctx_params(inner_.context, one) != 1) return 0;
        if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED)) {
            generates_ = true;
            void_ = false;
        }
        way_ = Way::basis;
        made_ = false;
    }
    return 1;
}

bool Gcm::get_iv(OSSL_PARAM* p) noexcept {
    if (way_ == Way::none) return false;
    if (void_ || iv_size_ != kNonce) return fault(PROV_R_INVALID_IV_LENGTH, kVoid);
    if (p->data_type == OSSL_PARAM_OCTET_STRING && p->data_size < kNonce)
        return fault(PROV_R_INVALID_IV_LENGTH, "there is too little room for the IV");
    return give(p, iv_, kNonce);
}

// It is there from the end of its message to the next IV.
inline bool Gcm::get_tag(OSSL_PARAM* p, bool& theirs) noexcept {
    if (!made_ || !encrypts_)
        return refuse(*inner_.basis, Refusal::none_made, "there is no tag of what was sealed");
    theirs = way_ == Way::basis;
    if (theirs) return true;
    if (p->data_size == 0 || p->data_size > kTag)
        return fault(PROV_R_INVALID_TAG, "a tag has 1 to 16 bytes");
    return OSSL_PARAM_set_octet_string(p, tag_, p->data_size) == 1;
}

// `theirs`: the basis is to be asked.
bool Gcm::get_one(OSSL_PARAM* p, bool& theirs) noexcept {
    if (is(p, OSSL_CIPHER_PARAM_KEYLEN)) return OSSL_PARAM_set_size_t(p, key_bytes_) == 1;
    if (is(p, OSSL_CIPHER_PARAM_AEAD_IVLEN)) return OSSL_PARAM_set_size_t(p, iv_size_) == 1;
    if (pipes_ && is(p, kPipelineTag)) return pipes_->get(p);
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN) && iv_size_ < kExplicit)
        return fault(PROV_R_INVALID_IV_LENGTH, kShort);
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TAGLEN))
        return OSSL_PARAM_set_size_t(p, tag_length_ != 0 ? tag_length_ : kTag) == 1;
    if (way_ == Way::basis) {
        theirs = true;
        return true;
    }
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD))
        return OSSL_PARAM_set_size_t(p, headers_ ? kTag : 0) == 1;
    if (is(p, OSSL_CIPHER_PARAM_IV) || is(p, OSSL_CIPHER_PARAM_UPDATED_IV)) return get_iv(p);
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN)) {
        // It begins a message anew from the IV that is there, which it counts on.
        theirs = true;
        return generates_ && keyed_ && p->data && to_basis(true);
    }
    theirs = knows(inner_.basis->gettable_ctx_params
                       ? inner_.basis->gettable_ctx_params(nullptr, inner_.provider_context)
                       : nullptr,
                   p);
    return !theirs || tell();
}

int Gcm::get(OSSL_PARAM* params) noexcept {
    for (OSSL_PARAM* p = params; p && p->key; ++p) {
        bool theirs = false;
        const bool ok = is(p, OSSL_CIPHER_PARAM_AEAD_TAG) ? get_tag(p, theirs) : get_one(p, theirs);
        if (!ok) return 0;
        if (!theirs) continue;
        OSSL_PARAM one[] = {*p, OSSL_PARAM_construct_end()};
        if (!inner_.get(one)) return 0;
        p->return_size = one[0].return_size;
        if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN)) made_ = false;  // another message
    }
    return 1;
}

Pipes* Gcm::pipes(bool make) noexcept {
    if (!pipes_ && make) pipes_ = Pipes::make(*inner_.basis);
    return pipes_;
}

void* new_gcm(const Provider& provider, std::size_t offer) noexcept {
    return Dispatch<Gcm>::make(provider, offer);
}
void offer_gcm(OSSL_DISPATCH* functions) noexcept {
    Dispatch<Gcm>::offer(functions);
    offer_pipelines<Gcm>(functions);
}

}  // namespace dael::provider
