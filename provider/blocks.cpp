// SPDX-License-Identifier: Apache-2.0
#include "blocks.hpp"

#include <algorithm>

namespace dael::provider {

namespace {

using Bytes = unsigned char;

// Decryption that holds a block back costs more to take over from the basis.
constexpr std::size_t kPaddedFrom = 4096;

constexpr char kFailed[] = "this message has failed: set an IV";

void copy_block(Bytes* to, const Bytes* from) noexcept {
    std::memcpy(to, from, kBlock);
}

}  // namespace

Blocks::Blocks(const Provider& provider, std::size_t offer) noexcept
    : inner_(provider, offer),
      kind_(kOffers[offer].kind),
      quick_(by_vector_units()),
      key_bytes_(static_cast<unsigned char>(kOffers[offer].key_bytes)) {
    std::memset(iv_, 0, sizeof iv_);
    std::memset(original_, 0, sizeof original_);
    if (!quick_) faulty_ = !inner_.make();
}
bool Blocks::before_copy() const noexcept {
    if (pipes_ && pipes_->running()) return false;
    if (broken_ && !quick_) return fault(PROV_R_CIPHER_OPERATION_FAILED, kFailed);
    return true;
}
// Without AVX-512 the basis goes on with a message. Of the copy: the one that was copied may be
// copied by others meanwhile, and stays as it is.
bool Blocks::after_copy() noexcept {
    worker_.key = nullptr;  // made ready again when there is need
    worker_.updates = worker_.done = 0;
    pipes_ = nullptr;
    void* const theirs = inner_.context;
    inner_.context = nullptr;
    if (theirs && !behind_) {
        if (inner_.basis->dupctx) inner_.context = inner_.basis->dupctx(theirs);
        return inner_.context != nullptr;
    }
    basis_keyed_ = false;
    basis_padded_ = true;
    return quick_ || hand_down();
}
Blocks::~Blocks() {
    worker_.tell();
    worker_.drop();
    Pipes::drop(pipes_);
    inner_.drop();
    OPENSSL_cleanse(static_cast<void*>(this), sizeof *this);
}

// Makes the basis know what it lacks: the key, the direction, where the chain stands and what is
// begun of a block, of which it has made the output once more then.
bool Blocks::hand_down() noexcept {
    if (broken_) return fault(PROV_R_CIPHER_OPERATION_FAILED, kFailed);
    if (!inner_.make()) return false;
    const unsigned pad = padded_ ? 1 : 0;
    OSSL_PARAM padding[] = {
        OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, const_cast<unsigned*>(&pad)),
        OSSL_PARAM_construct_end()};
    const bool padding_is_new = padded_ != basis_padded_;
    if (!behind_) {
        if (padding_is_new && inner_.basis->set_ctx_params(inner_.context, padding) != 1)
            return false;
        basis_padded_ = padded_;
        return true;
    }
    const bool with_key = worker_.size != 0 && !basis_keyed_;
    const bool with_iv = here_ && kind_ != Kind::ecb;
    if (!inner_.init(encrypts_, with_key ? worker_.bytes : nullptr, with_key ? worker_.size : 0,
                     with_iv ? iv_ : nullptr, with_iv ? kBlock : 0,
                     padding_is_new ? padding : nullptr))
        return false;
    basis_keyed_ = basis_keyed_ || with_key;
    basis_padded_ = padded_;
    behind_ = false;
    if (!here_) return true;
    here_ = false;
    handed_down_ = handed_down_ || with_iv;
    iv_fresh_ = false;
    position_ = held_size_;
    if (held_size_ != 0) {
        Bytes begun[kBlock], again[2 * kBlock];
        if (kind_ == Kind::cfb && encrypts_) make_mask();
        for (std::size_t i = 0; i < held_size_; ++i)
            begun[i] = kind_ == Kind::ctr                ? Bytes{0}
                       : kind_ == Kind::cfb && encrypts_ ? static_cast<Bytes>(held_[i] ^ mask_[i])
                                                         : held_[i];
        std::size_t made = 0;
        const int ok =
            inner_.basis->update(inner_.context, again, &made, sizeof again, begun, held_size_);
        OPENSSL_cleanse(begun, sizeof begun);
        OPENSSL_cleanse(again, sizeof again);
        held_size_ = 0;
        if (ok != 1) return false;
    }
    choose();
    return true;
}

void Blocks::make_mask() noexcept {
    if (!mask_known_) encrypt_block(schedule_, iv_, mask_);
    mask_known_ = true;
}

void Blocks::choose() noexcept {
    from_ = SIZE_MAX;
    if (worker_.size == 0 || tls_ || (!iv_set_ && kind_ != Kind::ecb)) return;
    from_ = from_bytes(mode_of(kind_), encrypts_ ? DAEL_ENCRYPT : DAEL_DECRYPT);
    if (buffers() && !encrypts_ && padded_) from_ = std::max(from_, kPaddedFrom);
}

// Of parameters that the basis has been told.
void Blocks::note(const OSSL_PARAM* params) noexcept {
    if (!params) return;
    std::size_t number = 0;
    for (const OSSL_PARAM* p = params; p->key; ++p) {
        if (is(p, OSSL_CIPHER_PARAM_PADDING)) {
            if (OSSL_PARAM_get_size_t(p, &number)) padded_ = basis_padded_ = number != 0;
        } else if (is(p, OSSL_CIPHER_PARAM_NUM)) {
            if (OSSL_PARAM_get_size_t(p, &number)) position_ = number;
        } else if (is(p, OSSL_CIPHER_PARAM_TLS_VERSION) || is(p, OSSL_CIPHER_PARAM_TLS_MAC_SIZE)) {
            tls_ = true;
        }
    }
    choose();
}

// A message that begins here. False: it is for the basis to begin it, or to refuse.
bool Blocks::begin(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                   std::size_t iv_size) noexcept {
    if (!quick_ || tls_ || (key && key_size != key_bytes_)) return false;
    const bool has_iv = kind_ != Kind::ecb;
    if (!has_iv) iv = nullptr;
    if (iv && iv_size != kBlock) return false;
    const bool turns = buffers() && encrypts != encrypts_;
    // Without a key, OpenSSL goes on with the round keys of the other direction.
    if (turns && !key && worker_.size != 0) return false;
    if (!iv && has_iv && !here_) {
        // Counting goes on from what the basis has; the others begin again.
        const bool untouched = !inner_.context || behind_;
        if (!untouched && (kind_ == Kind::ctr || !iv_set_)) return false;
    }
    if (key && (turns || !ready_ || !worker_.same(key, key_size))) {
        worker_.set(key, key_size);
        expand(schedule_, key, key_size, wants_inverse(kind_, encrypts));
        ready_ = true;
        basis_keyed_ = false;
    }
    encrypts_ = encrypts;
    if (ready_) code_ = code_for(kind_, encrypts, schedule_.rounds);
    behind_ = true;
    from_ = SIZE_MAX;
    if (iv || !has_iv) broken_ = false;
    if (iv) {
        copy_block(iv_, iv);
        copy_block(original_, iv);
        iv_set_ = here_ = true;
        handed_down_ = false;
    } else if (!has_iv) {
        here_ = true;
    } else if (kind_ == Kind::ctr) {
        if (here_ && held_size_ != 0) count_on(iv_, 1);  // the rest of that block is left out
    } else if (iv_set_) {
        copy_block(iv_, original_);
        here_ = true;
    }
    held_size_ = 0;
    mask_known_ = false;
    return true;
}

int Blocks::init(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                 std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    if (begin(encrypts, key, key_size, iv, iv_size)) return params ? set(params) : 1;
    return init_basis(encrypts, key, key_size, iv, iv_size, params);
}

int Blocks::init_basis(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                       std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    // Without a new IV, CTR goes on from the chain, CBC and CFB begin anew from the IV that was
    // set last: so the basis must know the right one.
    Bytes again[kBlock];
    if (iv || kind_ == Kind::ecb) broken_ = false;
    if (quick_ || !inner_.context) {
        if (!hand_down()) return 0;
    } else if ((broken_ || (!iv && kind_ == Kind::ctr && behind_)) && !hand_down()) {
        return 0;
    }
    if (!iv && kind_ != Kind::ctr && kind_ != Kind::ecb && handed_down_ && iv_set_) {
        copy_block(again, original_);
        iv = again;
        iv_size = kBlock;
    }
    const bool anew = key || params || !iv || !iv_set_ || encrypts != encrypts_;
    encrypts_ = encrypts;
    here_ = behind_ = iv_fresh_ = false;
    if (anew) from_ = SIZE_MAX;
    if (!inner_.init(encrypts, key, key_size, iv, iv_size, params)) return 0;
    position_ = 0;  // the basis forgets what it held, and the block that was begun
    if (iv && iv_size == kBlock && kind_ != Kind::ecb) {
        copy_block(original_, iv);
        iv_set_ = iv_fresh_ = true;
        handed_down_ = false;
    }
    if (!anew) {
        // After what went wrong, `from_` is out of reach; all begins anew now.
        if (from_ == SIZE_MAX) choose();
        return 1;
    }
    if (key && key_size <= sizeof worker_.bytes) {
        worker_.set(key, key_size);
        ready_ = false;
        basis_keyed_ = true;
    }
    note(params);
    choose();
    return 1;
}

// What can be said without the basis.
bool Blocks::answer(OSSL_PARAM* p) noexcept {
    const bool has_iv = kind_ != Kind::ecb;
    const auto block = [p](const Bytes* bytes) {
        return OSSL_PARAM_set_octet_string(p, bytes, kBlock) == 1;
    };
    if (is(p, OSSL_CIPHER_PARAM_KEYLEN)) return OSSL_PARAM_set_size_t(p, key_bytes_) == 1;
    if (is(p, OSSL_CIPHER_PARAM_IVLEN)) return OSSL_PARAM_set_size_t(p, has_iv ? kBlock : 0) == 1;
    if (is(p, OSSL_CIPHER_PARAM_PADDING)) return OSSL_PARAM_set_uint(p, padded_) == 1;
    if (!here_ || !ready_ || !has_iv) return false;
    if (is(p, OSSL_CIPHER_PARAM_NUM))
        return OSSL_PARAM_set_uint(p, buffers() ? 0 : held_size_) == 1;
    if (p->data_type != OSSL_PARAM_OCTET_STRING || p->data_size < kBlock) return false;
    if (is(p, OSSL_CIPHER_PARAM_IV)) return block(original_);
    if (!is(p, OSSL_CIPHER_PARAM_UPDATED_IV)) return false;
    // As OpenSSL has it, a block that is begun is counted, and the register of CFB has what came of
    // it and of the rest the keystream.
    Bytes now[kBlock];
    copy_block(now, iv_);
    if (kind_ == Kind::ctr && held_size_ != 0) count_on(now, 1);
    if (kind_ == Kind::cfb && held_size_ != 0) {
        make_mask();
        copy_block(now, mask_);
        std::memcpy(now, held_, held_size_);
    }
    return block(now);
}

int Blocks::get(OSSL_PARAM* params) noexcept {
    OSSL_PARAM* p = params;
    while (p && p->key && answer(p)) ++p;
    if (!p || !p->key) return 1;
    if (!hand_down() || inner_.basis->get_ctx_params(inner_.context, params) != 1) return 0;
    if (!handed_down_ || !iv_set_) return 1;
    p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_IV);
    return !p || OSSL_PARAM_set_octet_ptr(p, original_, kBlock) ||
           OSSL_PARAM_set_octet_string(p, original_, kBlock);
}

int Blocks::set(const OSSL_PARAM* params) noexcept {
    const OSSL_PARAM* p = params;
    if (!p || !p->key) return 1;
    // What EVP sets at every initialisation of a context without padding.
    if (quick_ && is(p, OSSL_CIPHER_PARAM_PADDING) && !p[1].key &&
        p->data_type == OSSL_PARAM_UNSIGNED_INTEGER && p->data_size == sizeof(unsigned)) {
        unsigned number;
        std::memcpy(&number, p->data, sizeof number);
        padded_ = number != 0;
        if (behind_ || !inner_.context) return 1;
        if (!hand_down()) return 0;
        choose();
        return 1;
    }
    if (!hand_down() || inner_.basis->set_ctx_params(inner_.context, params) != 1) return 0;
    note(params);
    return 1;
}

Pipes* Blocks::pipes(bool make) noexcept {
    if (!pipes_ && make) pipes_ = Pipes::make(*inner_.basis);
    if (pipes_) pipes_->pad(padded_);
    return pipes_;
}

void* new_blocks(const Provider& provider, std::size_t offer) noexcept {
    return Dispatch<Blocks>::make(provider, offer);
}
void offer_blocks(OSSL_DISPATCH* functions, Kind kind) noexcept {
    Dispatch<Blocks>::offer(functions);
    if (kind == Kind::cbc || kind == Kind::ctr) offer_pipelines<Blocks>(functions);
}

}  // namespace dael::provider
