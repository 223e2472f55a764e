// SPDX-License-Identifier: Apache-2.0
#include "blocks.hpp"

#include <algorithm>

namespace dael::provider {

namespace {

using Bytes = unsigned char;

constexpr char kFailed[] = "this message has failed: set an IV";

void copy_block(Bytes* to, const Bytes* from) noexcept {
    std::memcpy(to, from, kBlock);
}

}  // namespace

Blocks::Blocks(const Provider& provider, std::size_t offer) noexcept
    : below_(provider, offer),
      kind_(kOffers[offer].kind),
      quick_(by_vector_units()),
      key_bytes_(static_cast<unsigned char>(kOffers[offer].key_bytes)) {
    std::memset(iv_, 0, sizeof iv_);
    std::memset(original_, 0, sizeof original_);
    if (!quick_) below_.make();
}
bool Blocks::before_copy() const noexcept {
    return !(pipes_ && pipes_->running());
}
// Of the copy: the one that was copied may be copied by others meanwhile, and stays as it is.
bool Blocks::after_copy() noexcept {
    engine_key_.key = nullptr;  // made ready again when there is need
    engine_key_.updates = engine_key_.done = 0;
    pipes_ = nullptr;
    if (place_ == Place::below) return below_.duplicate();
    below_.forget();
    return true;
}
Blocks::~Blocks() {
    engine_key_.tell();
    engine_key_.drop();
    Pipes::drop(pipes_);
    below_.drop();
    OPENSSL_cleanse(static_cast<void*>(this), sizeof *this);
}

// The message is here from now on, at a block's border; null where there is no chain.
void Blocks::come_here(const Bytes* chain) noexcept {
    if (chain && chain != iv_) copy_block(iv_, chain);
    begun_.none();
    place_ = Place::here;
    if (quick_ && keyed()) code_ = code_for(kind_, encrypts_, schedule_.rounds);
}

// The one place where the key changes, with all that is made of it.
void Blocks::take_key(bool encrypts, const Bytes* key, std::size_t size) noexcept {
    const bool turns = buffers() && encrypts != key_encrypts_;
    if (!turns && engine_key_.same(key, size)) return;
    engine_key_.set(key, size);
    key_encrypts_ = encrypts;
    below_.forget_key();
    if (quick_) expand(schedule_, key, size, wants_inverse(kind_, encrypts));
}

// Tells the basis what it lacks: the key, the direction, where the chain stands and what is begun
// of a block, of which it makes the output once more then.
bool Blocks::hand_down() noexcept {
    if (place_ == Place::lost) return fault(PROV_R_CIPHER_OPERATION_FAILED, kFailed);
    if (!below_.make()) return false;
    if (place_ == Place::below) return below_.pad(padded_);
    const bool here = place_ == Place::here, with_key = keyed() && !below_.keyed();
    const bool with_iv = here && has_iv();
    if (!below_.init(encrypts_, with_key ? engine_key_.bytes : nullptr,
                     with_key ? engine_key_.size : 0, with_iv ? iv_ : nullptr, with_iv ? kBlock : 0,
                     nullptr, true))
        return false;
    const std::size_t size = here ? begun_.size() : 0;
    // A whole block is kept only by who expects padding, so it is told of the padding afterwards.
    if (!below_.pad(size == kBlock || padded_)) return false;
    if (size != 0) {
        Bytes begun[kBlock], again[2 * kBlock];
        const Bytes* const mask =
            kind_ == Kind::cfb && encrypts_ ? begun_.mask(schedule_, iv_) : nullptr;
        for (std::size_t i = 0; i < size; ++i)
            begun[i] = kind_ == Kind::ctr ? Bytes{0}
                       : mask             ? static_cast<Bytes>(begun_.bytes[i] ^ mask[i])
                                          : begun_.bytes[i];
        std::size_t made = 0;
        const int ok = below_.update(again, &made, sizeof again, begun, size);
        OPENSSL_cleanse(begun, sizeof begun);
        OPENSSL_cleanse(again, sizeof again);
        if (ok != 1 || !below_.pad(padded_)) return false;
    }
    begun_.none();
    place_ = Place::below;
    return true;
}

// What is told besides. False: it is refused, since CTR has no
// keystream there to go on with (in OpenSSL an older block's is used once more), or the number is
// no place in a block.
bool Blocks::look_at(const OSSL_PARAM* params, bool initialises) noexcept {
    for (const OSSL_PARAM* p = params; p && p->key; ++p) {
        if (is(p, OSSL_CIPHER_PARAM_TLS_VERSION) || is(p, OSSL_CIPHER_PARAM_TLS_MAC_SIZE)) {
            tls_ = true;
        } else if (!buffers() && is(p, OSSL_CIPHER_PARAM_NUM)) {
            unsigned number = 0;
            Bytes nowhere[kBlock];
            std::size_t used = begun_.size();
            if (!OSSL_PARAM_get_uint(p, &number) || number == 0) continue;
            if (place_ == Place::below && !initialises && !below_.stands(nowhere, used))
                return false;
            if (number >= kBlock || (kind_ == Kind::ctr && (initialises || used == 0)))
                return fault(PROV_R_FAILED_TO_SET_PARAMETER, "there is no keystream at that place");
        }
    }
    return true;
}

// A message that begins here. False: it is for the basis to begin it, or to refuse.
bool Blocks::begin(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                   std::size_t iv_size) noexcept {
    if (!quick_ || tls_ || (key && key_size != key_bytes_)) return false;
    if (!has_iv()) iv = nullptr;
    if (iv && iv_size != kBlock) return false;
    if (!key && keyed() && buffers() && encrypts != key_encrypts_) return false;
    if (!iv && has_iv() && (place_ == Place::below || place_ == Place::lost)) {
        // Counting goes on from what the basis has; the others begin again.
        if (kind_ == Kind::ctr || !iv_set_) return false;
    }
    encrypts_ = encrypts;
    if (key) take_key(encrypts, key, key_size);
    if (iv) {
        copy_block(original_, iv);
        iv_set_ = true;
    }
    if (!has_iv()) {
        come_here(nullptr);
    } else if (iv || (iv_set_ && kind_ != Kind::ctr)) {
        come_here(original_);
    } else if (place_ == Place::here) {
        if (begun_.size() != 0) count_on(iv_, 1);  // the rest of that block is left out
        come_here(iv_);
    }
    return true;
}

int Blocks::init(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                 std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    if (params && !look_at(params, true)) return 0;
    if (begin(encrypts, key, key_size, iv, iv_size)) return params ? set(params) : 1;
    return init_below(encrypts, key, key_size, iv, iv_size, params);
}

int Blocks::init_below(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                       std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    // What goes on from where a message stood needs it there first. (Without a new IV, CTR goes on
    // from the chain; CBC and CFB begin anew from the IV that was set last.)
    const bool anew = iv || kind_ != Kind::ctr;
    if (place_ == Place::lost && anew) place_ = Place::untold;
    const bool knows = below_.made() && (below_.keyed() || !keyed());
    if (!(knows && anew) && !hand_down()) return 0;
    Bytes again[kBlock];
    if (!iv && anew && has_iv() && iv_set_ && (place_ != Place::below || below_.chain_for_iv())) {
        copy_block(again, original_);
        iv = again;
        iv_size = kBlock;
    }
    encrypts_ = encrypts;
    begun_.none();
    place_ = Place::below;
    if (iv && iv_size == kBlock && has_iv()) {
        copy_block(original_, iv);
        iv_set_ = true;
    }
    if (!below_.pad(padded_) || !below_.init(encrypts, key, key_size, iv, iv_size, params))
        return 0;
    if (params) padded_ = below_.padded();
    if (key && key_size <= sizeof engine_key_.bytes) {
        take_key(encrypts, key, key_size);
        below_.know_key();
    }
    return 1;
}

// What can be said without the basis.
bool Blocks::answer(OSSL_PARAM* p) noexcept {
    const auto block = [p](const Bytes* bytes) {
        return OSSL_PARAM_set_octet_string(p, bytes, kBlock) == 1;
    };
    if (is(p, OSSL_CIPHER_PARAM_KEYLEN)) return OSSL_PARAM_set_size_t(p, key_bytes_) == 1;
    if (is(p, OSSL_CIPHER_PARAM_IVLEN)) return OSSL_PARAM_set_size_t(p, has_iv() ? kBlock : 0) == 1;
    if (is(p, OSSL_CIPHER_PARAM_PADDING)) return OSSL_PARAM_set_uint(p, padded_) == 1;
    if (!runs_here() || !has_iv()) return false;
    if (is(p, OSSL_CIPHER_PARAM_NUM))
        return OSSL_PARAM_set_uint(p, buffers() ? 0 : static_cast<unsigned>(begun_.size())) == 1;
    if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data_size < kBlock) return false;
    if (is(p, OSSL_CIPHER_PARAM_IV)) return block(original_);
    if (!is(p, OSSL_CIPHER_PARAM_UPDATED_IV)) return false;
    // As OpenSSL has it, a block that is begun is counted, and the register of CFB has what came of
    // it and of the rest the keystream.
    Bytes now[kBlock];
    copy_block(now, iv_);
    if (kind_ == Kind::ctr && begun_.size() != 0) count_on(now, 1);
    if (kind_ == Kind::cfb && begun_.size() != 0) {
        copy_block(now, begun_.mask(schedule_, iv_));
        std::memcpy(now, begun_.bytes, begun_.size());
    }
    return block(now);
}

int Blocks::get(OSSL_PARAM* params) noexcept {
    OSSL_PARAM* p = params;
    while (p && p->key && answer(p)) ++p;
    if (!p || !p->key) return 1;
    if (!hand_down() || !below_.get(params)) return 0;
    if (!below_.chain_for_iv() || !iv_set_) return 1;
    p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_IV);
    return !p || give(p, original_, kBlock);
}

int Blocks::set(const OSSL_PARAM* params) noexcept {
    const OSSL_PARAM* p = params;
    if (!p || !p->key) return 1;
    // What EVP sets at every initialisation of a context without padding.
    if (is(p, OSSL_CIPHER_PARAM_PADDING) && !p[1].key &&
        p->data_type == OSSL_PARAM_UNSIGNED_INTEGER && p->data_size == sizeof(unsigned)) {
        unsigned number;
        std::memcpy(&number, p->data, sizeof number);
        padded_ = number != 0;
        return place_ != Place::below || below_.pad(padded_);
    }
    if (!look_at(params, false) || !hand_down()) return 0;
    const bool ok = below_.set(params);
    padded_ = below_.padded();
    return ok;
}

Pipes* Blocks::pipes(bool make) noexcept {
    if (!pipes_ && make) pipes_ = Pipes::make(below_.basis());
    return pipes_ && pipes_->pad(padded_) ? pipes_ : nullptr;
}

void* new_blocks(const Provider& provider, std::size_t offer) noexcept {
    return Dispatch<Blocks>::make(provider, offer);
}
void offer_blocks(OSSL_DISPATCH* functions, Kind kind) noexcept {
    Dispatch<Blocks>::offer(functions);
    if (kind == Kind::cbc || kind == Kind::ctr) offer_pipelines<Blocks>(functions);
}

}  // namespace dael::provider
