// SPDX-License-Identifier: Apache-2.0
// GCM-SIV (RFC 8452), which OpenSSL has from 3.2 on, with keys of 128 and 256 bits. Its message
// comes whole, in one update: the engine does that, where a key, a nonce, and in opening a tag came
// before it, and hands out nothing of a forgery. All else of a message is the default provider's,
// whose context is told what came so far; and from what we do not know on everything.
//
// Threads, freeing, fork(): as blocks.hpp says.
#pragma once

#include "context.hpp"
#include "engine_key.hpp"

namespace dael::provider {

class Siv {
  public:
    Siv(const Provider& provider, std::size_t offer) noexcept;
    ~Siv();
    bool whole() const noexcept { return true; }
    bool before_copy() const noexcept { return true; }
    bool after_copy() noexcept;

    using Bytes = unsigned char;
    int init(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
             std::size_t iv_size, const OSSL_PARAM* params) noexcept;
    int update(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept;
    int final(Bytes* out, std::size_t* written, std::size_t room) noexcept;
    int cipher(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept {
        return update(out, written, room, in, size);
    }
    int get(OSSL_PARAM* params) noexcept;
    int set(const OSSL_PARAM* params) noexcept;

    static constexpr std::size_t kNonce = 12, kTag = 16;

  private:
    // open: nothing was done of the message; basis: all is the default provider's; done: its data
    // came, and whether it is `right` is known.
    enum class Way : Bytes { open, basis, done };

    bool to_basis() noexcept;
    bool to_basis_for_good() noexcept;
    const dael_key* ready(std::size_t size) noexcept;
    bool tell_tag() noexcept;
    bool add_aad(const Bytes* in, std::size_t size) noexcept;
    void drop_aad() noexcept;
    bool keep_tag(const OSSL_PARAM* p) noexcept;
    // By the engine: 1, or 0 for what failed amid its work; -1: it has not begun.
    int by_engine(Bytes* out, const Bytes* in, std::size_t size) noexcept;

    Inner inner_;
    const std::size_t key_bytes_;
    Way way_ = Way::open;
    bool encrypts_ = true, keyed_ = false, has_nonce_ = false, begun_ = false;
    bool tagged_ = false;   // a tag came since the message began
    bool had_tag_ = false;  // or before, which tag_ still is
    bool right_ = false;
    bool theirs_ = false;  // all is the default provider's
    Bytes nonce_[kNonce] = {};
    Bytes tag_[kTag] = {};
    Bytes* aad_ = nullptr;
    std::size_t aad_size_ = 0, aad_room_ = 0;
    EngineKey engine_key_;
};

}  // namespace dael::provider
