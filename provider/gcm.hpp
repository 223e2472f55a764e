// SPDX-License-Identifier: Apache-2.0
// GCM. What a message is done with is chosen when its data comes: the vector units, on the calling
// thread; the engine's batches on all cores; without AVX-512 the engine's pieces; or the default
// provider's context (the basis), which hears of a key and of an IV when it needs them. Whatever a
// program does that is not key, IV of 12 bytes, additional data, data and tag, or a record of TLS
// 1.2, is the basis's.
//
// The basis makes an IV when it is to seal and has none. So it is never asked to go on with a
// message that has begun elsewhere or has ended: it gets one with its IV, or one that has none, or
// nothing; and who has an IV of its making keeps it, copies included.
//
// Threads, freeing, fork(): as blocks.hpp says. A child that goes on with a message that its parent
// has begun seals under the same nonce as the parent: one of the two is to set another.
#pragma once

#include "contest.hpp"
#include "context.hpp"
#include "engine_key.hpp"
#include "parallel_gcm.hpp"
#include "pipelines.hpp"
#include "vector_gcm.hpp"

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
    // none: no IV came yet; open: an IV, and not chosen yet; ended: only another IV begins anew.
    enum class Way : Bytes { none, open, basis, vectors, pieces, parallel, ended };
    // next: the header of a TLS record has come, in tag_, so that the record is what comes next;
    // refused: one that made no sense, and so does not.
    enum class Record : Bytes { none, next, refused };
    static constexpr std::size_t kShortAad = 32;  // kept until the data comes

    bool under_way() const noexcept {
        return way_ == Way::vectors || way_ == Way::pieces || way_ == Way::parallel;
    }
    // gcm.cpp
    void take_key(const Bytes* key, std::size_t size) noexcept;
    void begin_message() noexcept;
    // What is rare is apart, so that messages keep to few registers.
    [[gnu::cold, gnu::noinline]] bool has_iv_below() noexcept;
    [[gnu::cold, gnu::noinline]] void fetch_tag() noexcept;
    [[gnu::cold, gnu::noinline]] void leave_basis() noexcept;
    [[gnu::cold, gnu::noinline]] bool init_below(const Bytes* key, std::size_t key_size,
                                                 const Bytes* iv, std::size_t iv_size) noexcept;
    bool tell(const Bytes* iv = nullptr) noexcept;
    bool tell_setting(const char* name, void* data, std::size_t size) noexcept;
    bool set_one(const OSSL_PARAM* p, bool& theirs) noexcept;
    bool set_fixed_iv(const OSSL_PARAM* p) noexcept;
    bool set_tls_aad(const OSSL_PARAM* p) noexcept;
    bool knows(const OSSL_PARAM* list, const OSSL_PARAM* p) const noexcept;
    bool get_iv(OSSL_PARAM* p) noexcept;
    bool get_tag(OSSL_PARAM* p, bool& theirs) noexcept;
    bool get_one(OSSL_PARAM* p, bool& theirs) noexcept;
    void drop_handles() noexcept;
    // gcm_message.cpp
    bool to_basis(bool anew = false) noexcept;
    bool to_vectors() noexcept;
    bool to_parallel() noexcept;
    bool to_pieces() noexcept;
    bool choose(std::size_t size) noexcept;
    struct Handles {
        dael_key* key;
        dael_pieces* pieces;
        ParallelGcm* parallel;
    };
    bool copy_handles(const Handles& theirs) noexcept;
    VectorGcmKey& vector_key() noexcept;
    int add_aad(std::size_t* written, const Bytes* in, std::size_t size) noexcept;
    int record(Bytes* out, std::size_t* written, const Bytes* in, std::size_t size) noexcept;
    [[gnu::cold, gnu::noinline]] int no_record() noexcept;
    [[gnu::cold, gnu::noinline]] int nothing_came(Bytes* out, std::size_t* written,
                                                  std::size_t room) noexcept;
    void note_made() noexcept;
    [[gnu::noinline]] int below(OSSL_FUNC_cipher_update_fn* function, Bytes* out,
                                std::size_t* written, std::size_t room, const Bytes* in,
                                std::size_t size) noexcept;
    dael_pieces*& pieces() noexcept { return pieces_[encrypts_ ? 0 : 1]; }

    // What the basis's context was told: gone with it.
    struct Told {
        bool keyed = false, directed = false, encrypts = true;
        std::size_t iv_size = kNonce;
    };

    Inner inner_;
    Told told_;
    const Provider* const provider_;
    const Bytes key_bytes_;
    const bool quick_;  // the vector units may do messages
    Way way_ = Way::none;
    Record record_ = Record::none;
    bool encrypts_ = true, keyed_ = false;
    bool vector_keyed_ = false;  // vector_key_ is the key's
    bool made_ = false;          // tag_ is what we made of the last message
    bool aad_over_ = false;      // an empty EVP_Cipher() came: it ends the additional data
    bool generates_ = false;     // TLS 1.2: a fixed part of the IV came, and records are counted
    bool headers_ = false;       // a header has come
    bool header_below_ = false;  // the basis has one, and no record came since
    bool void_ = false;          // another size was set since the IV came
    Bytes aad_size_ = 0;
    Bytes tag_size_ = 0;    // in tag_: that the caller set, or 16 of ours; 0: none
    Bytes tag_length_ = 0;  // of the last one, set or made anywhere
    std::size_t iv_size_ = kNonce;
    Bytes iv_[kNonce] = {};
    Bytes aad_[kShortAad];
    Bytes tag_[kTag];
    dael_pieces* pieces_[2] = {};  // by direction
    ParallelGcm* parallel_ = nullptr;
    Pipes* pipes_ = nullptr;
    EngineKey engine_key_;
    VectorGcm message_;
    VectorGcmKey vector_key_;
};
// What the C library's allocator gives without a lock, of its last size, is 1032 bytes.
static_assert(sizeof(Gcm) <= 1032);

}  // namespace dael::provider
