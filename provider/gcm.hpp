// SPDX-License-Identifier: Apache-2.0
// GCM. What a message is done with is chosen when its data comes: the vector units, on the calling
// thread; the engine's batches on all cores; without AVX-512 the engine's pieces; or the default
// provider's context (the basis), which hears of a key and of an IV when it needs them. Whatever a
// program does that is not key, IV of 12 bytes, additional data, data and tag, or a record of TLS
// 1.2, is the basis's.
#pragma once

#include "contest.hpp"
#include "context.hpp"
#include "pipelines.hpp"
#include "vector_gcm.hpp"
#include "wide_gcm.hpp"
#include "worker.hpp"

namespace dael::provider {

class Gcm {
  public:
    Gcm(const Provider& provider, std::size_t offer) noexcept;
    ~Gcm();
    bool whole() const noexcept { return true; }
    bool before_copy() const noexcept;
    bool after_copy() noexcept;  // called for what a copy constructor made

    using Bytes = unsigned char;
    int init(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
             std::size_t iv_size, const OSSL_PARAM* params) noexcept;
    int update(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept;
    int final(Bytes* out, std::size_t* written, std::size_t room) noexcept;
    // EVP_Cipher(), which libssl uses for records of TLS 1.2.
    int cipher(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept;
    int get(OSSL_PARAM* params) noexcept;
    int set(const OSSL_PARAM* params) noexcept;
    Pipes* pipes(bool make) noexcept;  // see offer_pipelines()

    static constexpr std::size_t kNonce = 12;
    static constexpr std::size_t kTag = 16;
    static constexpr std::size_t kTlsAad = 13;   // RFC 5246 6.2.3.3
    static constexpr std::size_t kExplicit = 8;  // of a record's nonce: RFC 5288 3

  private:
    // none: no IV of this message is here; open: not chosen yet.
    enum class Way : Bytes { none, open, basis, vectors, pieces, wide, ended };
    static constexpr std::size_t kShortAad = 32;  // kept until the data comes

    // gcm.cpp
    bool tell(bool with_iv) noexcept;
    bool tell_setting(const char* name, void* data, std::size_t size) noexcept;
    bool set_one(const OSSL_PARAM* p, bool& theirs) noexcept;
    bool set_fixed_iv(const OSSL_PARAM* p) noexcept;
    bool set_tls_aad(const OSSL_PARAM* p) noexcept;
    bool get_one(OSSL_PARAM* p) noexcept;
    void drop_handles() noexcept;
    // gcm_message.cpp
    bool to_basis() noexcept;
    bool to_vectors() noexcept;
    bool to_wide() noexcept;
    bool to_pieces() noexcept;
    bool choose(std::size_t size) noexcept;
    struct Handles {
        dael_key* key;
        dael_pieces* pieces;
        WideGcm* wide;
    };
    bool copy_handles(const Handles& theirs) noexcept;
    VectorGcmKey& vector_key() noexcept;
    int add_aad(std::size_t* written, const Bytes* in, std::size_t size) noexcept;
    int record(Bytes* out, std::size_t* written, const Bytes* in, std::size_t size) noexcept;
    dael_pieces*& pieces() noexcept { return pieces_[encrypts_ ? 0 : 1]; }

    Inner inner_;
    const Provider* const provider_;
    const std::size_t key_bytes_;
    const bool quick_;  // the vector units may do messages
    Way way_ = Way::none;
    bool encrypts_ = true, keyed_ = false;
    bool vector_keyed_ = false;  // vector_key_ is the key's
    bool made_ = false;          // `tag_` is what we made of the last message
    // What the basis knows.
    bool basis_keyed_ = false, basis_directed_ = false, basis_encrypts_ = true;
    std::size_t basis_iv_size_ = kNonce;
    // TLS 1.2: iv_ is the fixed part and the number of the next record; a record's AAD has come.
    bool counts_ = false, record_next_ = false, basis_counts_ = false;
    std::size_t iv_size_ = kNonce;
    std::size_t aad_size_ = 0;
    std::size_t tag_size_ = 0;  // that the caller set, or 16 of ours; 0: none
    Bytes iv_[kNonce] = {};
    Bytes aad_[kShortAad];
    Bytes tls_aad_[kTlsAad];
    Bytes tag_[kTag];
    dael_pieces* pieces_[2] = {};  // by direction
    WideGcm* wide_ = nullptr;
    Pipes* pipes_ = nullptr;
    Worker worker_;
    VectorGcm message_;
    VectorGcmKey vector_key_;
};

}  // namespace dael::provider
