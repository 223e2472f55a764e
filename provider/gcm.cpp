// SPDX-License-Identifier: Apache-2.0
#include "gcm.hpp"

#include <openssl/rand.h>

#include <algorithm>

namespace dael::provider {

Gcm::Gcm(const Provider& provider, std::size_t offer) noexcept
    : inner_(provider, offer),
      provider_(&provider),
      key_bytes_(kOffers[offer].key_bytes),
      quick_(by_vector_units()) {}
Gcm::~Gcm() {
    worker_.tell();
    drop_handles();
    worker_.drop();
    Pipes::drop(pipes_);
    inner_.drop();
    OPENSSL_cleanse(static_cast<void*>(this), sizeof *this);
}

bool Gcm::before_copy() const noexcept {
    return !(pipes_ && pipes_->running());
}
bool Gcm::after_copy() noexcept {
    const Handles theirs{worker_.key, pieces(), wide_};
    void* const basis = inner_.context;
    worker_.key = nullptr;
    worker_.updates = worker_.done = 0;
    pieces_[0] = pieces_[1] = nullptr;
    wide_ = nullptr;
    pipes_ = nullptr;
    inner_.context = nullptr;
    if (basis && (way_ == Way::basis || basis_counts_)) {
        if (inner_.basis->dupctx) inner_.context = inner_.basis->dupctx(basis);
        if (!inner_.context) return false;
    } else {
        basis_keyed_ = basis_directed_ = false;
        basis_iv_size_ = kNonce;
    }
    return copy_handles(theirs);
}

void Gcm::drop_handles() noexcept {
    for (auto*& pieces : pieces_) {
        if (pieces) dael_pieces_free(pieces);
        pieces = nullptr;
    }
    if (!wide_) return;
    wide_->~WideGcm();
    OPENSSL_free(wide_);
    wide_ = nullptr;
}

bool Gcm::tell_setting(const char* name, void* data, std::size_t size) noexcept {
    OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string(name, data, size),
                           OSSL_PARAM_construct_end()};
    return inner_.basis->set_ctx_params(inner_.context, params) == 1;
}

// Makes the basis know what it lacks: of the IV only if it is asked for.
bool Gcm::tell(bool with_iv) noexcept {
    if (!inner_.make()) return false;
    if (basis_iv_size_ != iv_size_) {
        OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, &iv_size_),
                               OSSL_PARAM_construct_end()};
        if (inner_.basis->set_ctx_params(inner_.context, params) != 1) return false;
        basis_iv_size_ = iv_size_;
    }
    const bool with_key = keyed_ && !basis_keyed_;
    if (with_key || with_iv || !basis_directed_ || basis_encrypts_ != encrypts_) {
        if (!inner_.init(encrypts_, with_key ? worker_.bytes : nullptr, with_key ? worker_.size : 0,
                         with_iv ? iv_ : nullptr, with_iv ? kNonce : 0, nullptr))
            return false;
        basis_keyed_ = basis_keyed_ || with_key;
        basis_directed_ = true;
        basis_encrypts_ = encrypts_;
    }
    if (!encrypts_ && tag_size_ != 0 && !tell_setting(OSSL_CIPHER_PARAM_AEAD_TAG, tag_, tag_size_))
        return false;
    // From here on it counts, not we. All of the IV at once is what a size of -1 says.
    if (counts_) {
        if (!tell_setting(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, iv_, SIZE_MAX)) return false;
        counts_ = false;
        basis_counts_ = true;
    }
    if (!record_next_) return true;
    record_next_ = false;
    const std::size_t size = (std::size_t{tls_aad_[kTlsAad - 2]} << 8 | tls_aad_[kTlsAad - 1]) +
                             kExplicit + (encrypts_ ? 0 : kTag);
    tls_aad_[kTlsAad - 2] = static_cast<unsigned char>(size >> 8);
    tls_aad_[kTlsAad - 1] = static_cast<unsigned char>(size);
    return tell_setting(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, tls_aad_, kTlsAad);
}

int Gcm::init(bool encrypts, const unsigned char* key, std::size_t key_size,
              const unsigned char* iv, std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    const bool turns = encrypts != encrypts_;
    const bool plain =
        (!key || key_size == key_bytes_) && (!iv || (iv_size == kNonce && iv_size_ == kNonce));
    const bool new_key = key && !(keyed_ && worker_.same(key, key_size));
    // What the basis is amid of, it goes on with; and it says what is wrong with what is not plain.
    const bool theirs = !plain || (!iv && way_ == Way::basis);
    if (theirs && way_ == Way::open && !iv && !to_basis()) return 0;
    encrypts_ = encrypts;
    if (theirs) {
        if (!tell(false) || !inner_.init(encrypts, key, key_size, iv, iv_size, nullptr)) return 0;
        way_ = Way::basis;
        made_ = false;
    } else if (iv) {
        std::memcpy(iv_, iv, kNonce);
        way_ = Way::open;
        made_ = false;
        aad_size_ = 0;
    } else if ((new_key || turns) &&
               (way_ == Way::vectors || way_ == Way::pieces || way_ == Way::wide)) {
        // Only a new IV begins another message; what is under way with the old key is over.
        way_ = Way::ended;
    }
    if (key && key_size == key_bytes_) {
        if (new_key) {
            drop_handles();
            worker_.set(key, key_size);
            vector_keyed_ = false;
            basis_keyed_ = theirs;
        }
        keyed_ = true;
    }
    return params ? set(params) : 1;
}

// libssl's way with TLS 1.2: of the IV, the part that stays; when encrypting the rest, which counts
// the records, begins with a random number (RFC 5288 3 leaves it to the sender).
bool Gcm::set_fixed_iv(const OSSL_PARAM* p) noexcept {
    if (p->data_size == SIZE_MAX) {
        std::memcpy(iv_, p->data, kNonce);
    } else {
        if (p->data_size != kNonce - kExplicit) return false;
        std::memcpy(iv_, p->data, p->data_size);
        if (encrypts_ && RAND_bytes_ex(provider_->library, iv_ + p->data_size, kExplicit, 0) != 1)
            return false;
    }
    way_ = Way::open;
    aad_size_ = 0;
    made_ = false;
    counts_ = true;
    basis_counts_ = false;
    return true;
}
// The length in a record's AAD is that of what is in the record; GCM's AAD has the data's alone.
bool Gcm::set_tls_aad(const OSSL_PARAM* p) noexcept {
    record_next_ = false;
    if (p->data_size != kTlsAad) return fault(PROV_R_INVALID_AAD, "a record's AAD has 13 bytes");
    std::memcpy(tls_aad_, p->data, kTlsAad);
    std::size_t size = std::size_t{tls_aad_[kTlsAad - 2]} << 8 | tls_aad_[kTlsAad - 1];
    const std::size_t around = kExplicit + (encrypts_ ? 0 : kTag);
    if (size < around) return fault(PROV_R_INVALID_AAD, "a record is shorter than it can be");
    size -= around;
    tls_aad_[kTlsAad - 2] = static_cast<unsigned char>(size >> 8);
    tls_aad_[kTlsAad - 1] = static_cast<unsigned char>(size);
    record_next_ = true;
    return true;
}

// `theirs`: the basis is to be told, and does what comes then.
bool Gcm::set_one(const OSSL_PARAM* p, bool& theirs) noexcept {
    const bool octets = p->data_type == OSSL_PARAM_OCTET_STRING && p->data;
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TAG)) {
        if (!octets || p->data_size == 0 || p->data_size > kTag || encrypts_)
            return fault(PROV_R_INVALID_TAG, "a tag has 1 to 16 bytes, and decryption is told it");
        std::memcpy(tag_, p->data, p->data_size);
        tag_size_ = p->data_size;
        made_ = false;
        if (way_ == Way::basis) theirs = true;
    } else if (is(p, OSSL_CIPHER_PARAM_AEAD_IVLEN)) {
        std::size_t size = 0;
        if (!OSSL_PARAM_get_size_t(p, &size)) return false;
        if (size == 0 || size > 128)
            return fault(PROV_R_INVALID_IV_LENGTH, "an IV has 1 to 128 bytes");
        if (size == iv_size_) return true;
        // As OpenSSL has it, an IV of that size is needed then.
        iv_size_ = size;
        if (way_ == Way::basis)
            theirs = true;
        else if (way_ != Way::none)
            way_ = way_ == Way::open ? Way::none : Way::ended;
    } else if (is(p, OSSL_CIPHER_PARAM_KEYLEN)) {
        std::size_t size = 0;
        if (!OSSL_PARAM_get_size_t(p, &size) || size != key_bytes_)
            return fault(PROV_R_INVALID_KEY_LENGTH, "the size of an AES key is its cipher's");
    } else if (quick_ && octets && iv_size_ == kNonce &&
               is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED)) {
        return set_fixed_iv(p);
    } else if (octets && counts_ && is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD)) {
        return set_tls_aad(p);
    } else if (pipes_ && is(p, kPipelineTag)) {
        return pipes_->set(p);
    } else if (!is(p, OSSL_CIPHER_PARAM_PADDING)) {
        theirs = true;
    }
    return true;
}

int Gcm::set(const OSSL_PARAM* params) noexcept {
    for (const OSSL_PARAM* p = params; p && p->key; ++p) {
        bool theirs = false;
        if (!set_one(p, theirs)) return 0;
        if (!theirs) continue;
        // A message that has begun elsewhere is over; one that has an IV goes on there.
        if (way_ == Way::open ? !to_basis() : !tell(false)) return 0;
        if (is(p, OSSL_CIPHER_PARAM_AEAD_TAG)) continue;  // it has been told
        const OSSL_PARAM one[] = {*p, OSSL_PARAM_construct_end()};
        if (inner_.basis->set_ctx_params(inner_.context, one) != 1) return 0;
        way_ = Way::basis;
        made_ = false;
    }
    return 1;
}

// What can be said without the basis.
bool Gcm::get_one(OSSL_PARAM* p) noexcept {
    if (is(p, OSSL_CIPHER_PARAM_KEYLEN)) return OSSL_PARAM_set_size_t(p, key_bytes_) == 1;
    if (is(p, OSSL_CIPHER_PARAM_AEAD_IVLEN)) return OSSL_PARAM_set_size_t(p, iv_size_) == 1;
    if (way_ == Way::basis || way_ == Way::none) return false;
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TAGLEN))
        return OSSL_PARAM_set_size_t(p, tag_size_ != 0 ? tag_size_ : kTag) == 1;
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD) && record_next_)
        return OSSL_PARAM_set_size_t(p, kTag) == 1;
    if (is(p, OSSL_CIPHER_PARAM_AEAD_TAG) && made_)
        return p->data_size != 0 && p->data_size <= kTag && encrypts_ &&
               OSSL_PARAM_set_octet_string(p, tag_, p->data_size) == 1;
    if (is(p, OSSL_CIPHER_PARAM_IV) || is(p, OSSL_CIPHER_PARAM_UPDATED_IV)) {
        if (p->data_type == OSSL_PARAM_OCTET_STRING && p->data_size < kNonce)
            return fault(PROV_R_INVALID_IV_LENGTH, "the IV has 12 bytes");
        return OSSL_PARAM_set_octet_string(p, iv_, kNonce) == 1 ||
               OSSL_PARAM_set_octet_ptr(p, iv_, kNonce) == 1;
    }
    return false;
}

int Gcm::get(OSSL_PARAM* params) noexcept {
    for (OSSL_PARAM* p = params; p && p->key; ++p) {
        if (get_one(p)) continue;
        if (pipes_ && is(p, kPipelineTag)) {
            if (!pipes_->get(p)) return 0;
            continue;
        }
        // To ask for an IV that TLS counts is to go the basis's way.
        if (way_ == Way::open && is(p, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN)) {
            if (!to_basis()) return 0;
        } else if (way_ != Way::basis && !tell(false)) {
            return 0;
        }
        OSSL_PARAM one[] = {*p, OSSL_PARAM_construct_end()};
        if (inner_.basis->get_ctx_params(inner_.context, one) != 1) return 0;
        p->return_size = one[0].return_size;
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
