// SPDX-License-Identifier: Apache-2.0
// ECB, CBC, CFB and CTR. A message is in one of two places: here, where the chain and what is begun
// of a block stand in the context and the vector units do the work (the engine from the threshold
// on); or in the default provider's context (Below), which does whatever is unusual. From here it
// may go there at any time, by hand_down(); a new IV begins one here again.
//
// Without AVX-512 every message begins below, and the engine does large updates of it: the chain is
// then here until the other goes on.
//
// Threads: as OpenSSL has it, one at a time uses a context (any number may copy one that nobody
// uses otherwise). Freeing one while another thread is in a call of it is the program's fault, as
// with every EVP_CIPHER_CTX. A child of fork() has contexts of its own, which go on where the
// parent's stood; what both then encrypt in CTR is under one keystream, as with any copy.
#pragma once

#include "below.hpp"
#include "contest.hpp"
#include "context.hpp"
#include "engine_key.hpp"
#include "pipelines.hpp"
#include "vector_aes.hpp"

namespace dael::provider {

class Blocks {
  public:
    Blocks(const Provider& provider, std::size_t offer) noexcept;
    ~Blocks();
    bool before_copy() const noexcept;
    bool after_copy() noexcept;  // called for what a copy constructor made
    bool whole() const noexcept { return quick_ || below_.made(); }

    using Bytes = unsigned char;
    int init(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
             std::size_t iv_size, const OSSL_PARAM* params) noexcept;
    int update(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept;
    int final(Bytes* out, std::size_t* written, std::size_t room) noexcept;
    // EVP_Cipher(): whole blocks and no padding, from wherever the chain stands.
    int cipher(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept;
    int get(OSSL_PARAM* params) noexcept;
    int set(const OSSL_PARAM* params) noexcept;
    Pipes* pipes(bool make) noexcept;  // see offer_pipelines()

  private:
    enum class Place : Bytes {
        untold,  // initialised without a chain, and the other does not know of it yet
        here,    // iv_ is the chain, begun_ what is begun of a block; the other knows of neither
        below,
        lost,  // the engine failed amid it: only a new IV goes on
    };
    // What is begun of a block: in ECB and CBC input that waits (a whole block where decryption
    // holds back what may be padding), in CFB ciphertext. Of CTR and CFB the block's keystream,
    // once it is needed: it goes with the block that it is of.
    class Begun {
      public:
        std::size_t size() const noexcept { return size_; }
        void none() noexcept { start(0); }
        void start(std::size_t size) noexcept {
            size_ = static_cast<Bytes>(size);
            mask_known_ = false;
        }
        void grow(std::size_t by) noexcept { size_ = static_cast<Bytes>(size_ + by); }
        const Bytes* mask(const Schedule& schedule, const Bytes* chain) noexcept {
            if (!mask_known_) encrypt_block(schedule, chain, mask_);
            mask_known_ = true;
            return mask_;
        }
        Bytes bytes[kBlock];

      private:
        Bytes size_ = 0;
        bool mask_known_ = false;
        Bytes mask_[kBlock];
    };

    bool buffers() const noexcept { return kind_ == Kind::ecb || kind_ == Kind::cbc; }
    bool has_iv() const noexcept { return kind_ != Kind::ecb; }
    bool keyed() const noexcept { return engine_key_.size != 0; }
    // The message goes on here, by the vector units.
    bool runs_here() const noexcept { return place_ == Place::here && quick_ && keyed(); }
    // In ECB and CBC, a direction without a key goes on with the round keys of the other, in
    // OpenSSL. CFB and CTR have one set.
    bool turned() const noexcept { return buffers() && keyed() && encrypts_ != key_encrypts_; }
    // blocks.cpp
    void come_here(const Bytes* chain) noexcept;
    void take_key(bool encrypts, const Bytes* key, std::size_t size) noexcept;
    bool begin(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
               std::size_t iv_size) noexcept;
    int init_below(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                   std::size_t iv_size, const OSSL_PARAM* params) noexcept;
    bool hand_down() noexcept;
    bool look_at(const OSSL_PARAM* params, bool initialises) noexcept;
    bool answer(OSSL_PARAM* p) noexcept;
    // blocks_update.cpp
    int stream(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept;
    int blocks(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
               std::size_t size) noexcept;
    int finish(Bytes* out, std::size_t* written, std::size_t room) noexcept;
    bool whole_blocks(const Bytes* in, Bytes* out, std::size_t size) noexcept;
    void by_vectors(const Bytes* in, Bytes* out, std::size_t size) noexcept;
    void advance(const Bytes* last_block, std::size_t size) noexcept;
    std::size_t run(const dael_key* key, const Bytes* in, Bytes* out, std::size_t size) noexcept;
    int small(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
              std::size_t size) noexcept;
    std::size_t engine_from() const noexcept;
    const dael_key* engine_wins(std::size_t size) noexcept;
    bool where(std::size_t& begun) noexcept;
    int large(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
              std::size_t size) noexcept;
    int engine_lost() noexcept;

    Schedule schedule_;    // engine_key_'s key, in its direction; where there are vector units
    Code code_ = nullptr;  // for schedule_ and the message's direction
    Below below_;
    Pipes* pipes_ = nullptr;
    const Kind kind_;
    const bool quick_;  // messages begin here
    const Bytes key_bytes_;
    Place place_ = Place::untold;
    bool encrypts_ = true, padded_ = true;
    bool key_encrypts_ = true;  // the direction that the key came with
    bool tls_ = false;          // TLS's ways with CBC, which are OpenSSL's alone
    bool iv_set_ = false;       // original_ is one
    Bytes iv_[kBlock];
    Bytes original_[kBlock];  // the IV that the caller set
    Begun begun_;
    EngineKey engine_key_;
};
// What the C library's allocator gives without a lock, of its last size, is 1032 bytes.
static_assert(sizeof(Blocks) <= 1032);

}  // namespace dael::provider
