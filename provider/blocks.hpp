// SPDX-License-Identifier: Apache-2.0
// ECB, CBC, CFB and CTR. A message is in one of two places: here, where the chain and what is begun
// of a block stand in the context and the vector units do the work (the engine from the threshold
// on); or in the default provider's context, the basis, which does whatever is unusual. From here
// it may go there at any time, by hand_down(); a new IV begins one here again.
//
// Without AVX-512 every message begins with the basis, and the engine does large updates of it: the
// chain is then here until the basis goes on.
#pragma once

#include "contest.hpp"
#include "context.hpp"
#include "pipelines.hpp"
#include "vector_aes.hpp"
#include "worker.hpp"

namespace dael::provider {

class Blocks {
  public:
    Blocks(const Provider& provider, std::size_t offer) noexcept;
    ~Blocks();
    bool before_copy() const noexcept;
    bool after_copy() noexcept;  // called for what a copy constructor made
    bool whole() const noexcept { return !faulty_; }

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
    bool buffers() const noexcept { return kind_ == Kind::ecb || kind_ == Kind::cbc; }
    // blocks.cpp
    bool begin(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
               std::size_t iv_size) noexcept;
    int init_basis(bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
                   std::size_t iv_size, const OSSL_PARAM* params) noexcept;
    bool hand_down() noexcept;
    void note(const OSSL_PARAM* params) noexcept;
    void choose() noexcept;
    bool answer(OSSL_PARAM* p) noexcept;
    void make_mask() noexcept;
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
    bool by_basis(Bytes*& out, std::size_t& written, std::size_t& room, const Bytes*& in,
                  std::size_t& size, std::size_t count) noexcept;
    int small(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
              std::size_t size) noexcept;
    int large(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
              std::size_t size) noexcept;
    bool fetch_iv() noexcept;

    Inner inner_;
    Code code_ = nullptr;  // for schedule_
    const Kind kind_;
    const bool quick_;  // messages begin here
    const unsigned char key_bytes_;
    // Where the message is. `here_`: iv_ is its chain, held_ what is begun of a block, and the
    // basis knows of neither. `behind_`: the basis is to be told of the last initialisation.
    bool here_ = false, behind_ = false;
    bool encrypts_ = true, padded_ = true, tls_ = false;
    bool iv_set_ = false;
    bool ready_ = false;                              // schedule_ is the key's, for this direction
    bool basis_keyed_ = false, basis_padded_ = true;  // what the basis knows
    bool handed_down_ = false;                        // it takes the chain for its original IV
    bool iv_fresh_ = false;                           // its last initialisation gave one
    bool mask_known_ = false, faulty_ = false;
    bool broken_ = false;  // the engine failed amid the message: only a new IV goes on
    unsigned held_size_ = 0;
    std::size_t from_ =
        SIZE_MAX;               // bytes of an update of the basis's from which the engine may do it
    std::size_t position_ = 0;  // bytes since the IV, there
    Bytes iv_[kBlock];
    Bytes original_[kBlock];  // the IV that the caller set
    // What is begun of a block: in ECB and CBC input that waits (a whole block where decryption
    // holds back what may be padding), in CFB ciphertext. Of CTR and CFB the block's keystream.
    Bytes held_[kBlock], mask_[kBlock];
    Pipes* pipes_ = nullptr;
    Worker worker_;
    TwoWaySchedule schedule_;
};

}  // namespace dael::provider
