// SPDX-License-Identifier: Apache-2.0
// The default provider's context behind a message of ECB, CBC, CFB or CTR, and what is known of it.
// Every call of it goes through here, so that what is known changes with what it is of: it was told
// so, or said so itself. Nothing of what it does inside is guessed.
#pragma once

#include "context.hpp"

namespace dael::provider {

class Below {
  public:
    using Bytes = unsigned char;
    static constexpr std::size_t kBlock = 16;

    Below(const Provider& provider, std::size_t offer) noexcept : inner_(provider, offer) {}
    const Basis& basis() const noexcept { return *inner_.basis; }

    bool make() noexcept { return inner_.make(); }
    bool made() const noexcept { return inner_.context != nullptr; }
    void drop() noexcept { inner_.drop(); }
    // Of a plain copy: a context of its own, or none yet, to be told anew. False: memory ran out.
    bool duplicate() noexcept {
        void* const theirs = inner_.context;
        inner_.context = nullptr;
        if (theirs && inner_.basis->dupctx) inner_.context = inner_.basis->dupctx(theirs);
        return !theirs || inner_.context;
    }
    void forget() noexcept {
        inner_.context = nullptr;
        keyed_ = untouched_ = chain_for_iv_ = told_ = false;
        padded_ = true;
        waits_ = kUnknown;
    }

    // It has the caller's key, in the direction that it came with.
    bool keyed() const noexcept { return keyed_; }
    void forget_key() noexcept { keyed_ = false; }
    void know_key() noexcept { keyed_ = true; }
    // It takes where a message stood for the IV that its caller set.
    bool chain_for_iv() const noexcept { return chain_for_iv_; }
    bool padded() const noexcept { return padded_; }
    // It was told of something besides since its initialisation, and goes on alone.
    bool told() const noexcept { return told_; }

    // `chain`: `iv` is where a message stands. Null: what it has stays.
    bool init(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
              std::size_t iv_size, const OSSL_PARAM* params, bool chain = false) noexcept {
        untouched_ = false;
        told_ = params != nullptr;
        waits_ = kUnknown;
        if (iv) chain_for_iv_ = chain;
        if (!inner_.init(encrypts, key, key_size, iv, iv_size, params)) return false;
        if (key) keyed_ = true;
        waits_ = 0;
        if (iv && iv_size == kBlock) {
            std::memcpy(iv_, iv, kBlock);
            untouched_ = !told_;
        }
        return !params || ask_padding();
    }
    int update(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept {
        untouched_ = false;
        const std::size_t waited = waits_;
        waits_ = kUnknown;
        if (inner_.basis->update(inner_.context, out, written, room, in, size) != 1) return 0;
        if (waited != kUnknown) waits_ = waited + size - *written;
        return 1;
    }
    int final(Bytes* out, std::size_t* written, std::size_t room) noexcept {
        untouched_ = false;
        waits_ = kUnknown;
        if (inner_.basis->final(inner_.context, out, written, room) != 1) return 0;
        waits_ = 0;
        return 1;
    }
    int cipher(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept {
        untouched_ = false;
        return inner_.basis->cipher(inner_.context, out, written, room, in, size);
    }
    bool get(OSSL_PARAM* params) noexcept { return inner_.get(params); }
    // Afterwards padded() is what it says, also where it took one and refused another.
    bool set(const OSSL_PARAM* params) noexcept {
        untouched_ = false;
        told_ = true;
        const bool ok = inner_.basis->set_ctx_params(inner_.context, params) == 1;
        return ask_padding() && ok;
    }
    bool pad(bool padded) noexcept {
        if (padded == padded_) return true;
        unsigned number = padded ? 1 : 0;
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &number),
                                  OSSL_PARAM_construct_end()};
        if (inner_.basis->set_ctx_params(inner_.context, one) != 1) return false;
        padded_ = padded;
        return true;
    }

    // Bytes that went in and have not come out: what ECB and CBC keep for the next block, or a
    // whole block that may be padding. False: after a failure nobody knows.
    bool waiting(std::size_t& bytes) const noexcept {
        bytes = waits_;
        return waits_ != kUnknown;
    }
    // The chain, and in CFB and CTR how much of a block is used up.
    bool stands(Bytes* chain, std::size_t& used) noexcept {
        used = 0;
        if (untouched_) {
            std::memcpy(chain, iv_, kBlock);
            return true;
        }
        unsigned number = 0;
        OSSL_PARAM asked[] = {
            OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, chain, kBlock),
            OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_NUM, &number), OSSL_PARAM_construct_end()};
        if (!get(asked)) return false;
        used = number;
        return true;
    }

  private:
    static constexpr std::size_t kUnknown = SIZE_MAX;

    bool ask_padding() noexcept {
        unsigned number = 0;
        OSSL_PARAM asked[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &number),
                              OSSL_PARAM_construct_end()};
        if (!get(asked)) return false;
        padded_ = number != 0;
        return true;
    }

    Inner inner_;
    std::size_t waits_ = kUnknown;
    bool keyed_ = false, padded_ = true, chain_for_iv_ = false, told_ = false;
    bool untouched_ = false;  // since it was given iv_
    Bytes iv_[kBlock];
};

}  // namespace dael::provider
