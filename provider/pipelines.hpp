// SPDX-License-Identifier: Apache-2.0
// Pipelines (OpenSSL 3.5, EVP_EncryptInit(3), "pipeline"): up to 32 messages under one key, a piece
// of each in one call. GCM, CTR and CBC have them, which OpenSSL's own provider does not. What pays
// goes to the engine as one batch; a message that is small, or comes in a way that a batch cannot
// take, is done by a context of the default provider, as if it were alone.
//
// Both ways give what so many single contexts would, with two bounds. Opening GCM goes to the
// engine if the tags were set before the data, and a message that has been found whole takes no
// more data. What is refused for its arguments changes nothing; what fails amid the work ends all
// messages, since some have gone on and others have not.
//
// Threads, freeing, fork(): as blocks.hpp says.
#pragma once

#include <openssl/core_names.h>

#include <cstdint>

#include "basis.hpp"
#include "engine_key.hpp"
#include "parallel_gcm.hpp"

namespace dael::provider {

// As OpenSSL 3.5 numbers and names them. A module that was built with an older one offers them too:
// that one's core leaves out what it does not know.
inline constexpr int kPipelineEncryptInit = 15, kPipelineDecryptInit = 16, kPipelineUpdate = 17,
                     kPipelineFinal = 18;
inline constexpr char kPipelineTag[] = "pipeline-tag";
#ifdef OSSL_FUNC_CIPHER_PIPELINE_FINAL
static_assert(kPipelineEncryptInit == OSSL_FUNC_CIPHER_PIPELINE_ENCRYPT_INIT &&
              kPipelineDecryptInit == OSSL_FUNC_CIPHER_PIPELINE_DECRYPT_INIT &&
              kPipelineUpdate == OSSL_FUNC_CIPHER_PIPELINE_UPDATE &&
              kPipelineFinal == OSSL_FUNC_CIPHER_PIPELINE_FINAL);
#endif

class Pipes {
  public:
    static constexpr std::size_t kMax = 32;  // EVP_MAX_PIPES

    // Null where memory has run out. `drop` wipes; null is fine.
    static Pipes* make(const Basis& basis) noexcept;
    static void drop(Pipes* pipes) noexcept;

    // `key` null: the one that is there. `ivs` null: they come with another call. A fault is on
    // OpenSSL's queue.
    bool begin(bool encrypts, const unsigned char* key, std::size_t key_size, std::size_t count,
               const unsigned char** ivs, std::size_t iv_size, const OSSL_PARAM* params) noexcept;
    // `out` null, or all of it: additional data.
    bool update(std::size_t count, unsigned char** out, std::size_t* written,
                const std::size_t* room, const unsigned char** in,
                const std::size_t* size) noexcept;
    // False where one message is forged or not whole; all are ended.
    bool final(std::size_t count, unsigned char** out, std::size_t* written,
               const std::size_t* room) noexcept;
    bool running() const noexcept { return count_ != 0 && !ended_; }
    bool pad(bool padded) noexcept;

    // The tags, if `params` ask for them or bring them. False: they do, and cannot.
    bool get(OSSL_PARAM* params) noexcept;
    bool set(const OSSL_PARAM* params) noexcept;

  private:
    enum class Way : unsigned char { none, begun, batched, single, ended };
    static constexpr std::size_t kBlock = 16;
    static constexpr std::size_t kShortAad = 32;

    struct Pipe {
        Way way = Way::none;
        // GCM: `tag` is ours (sealing) or the caller's (opening); after a batch that opened, the
        // caller's last was that one.
        bool tagged = false;
        std::size_t verified = 0;  // bytes of it that a batch has held against
        // Of `single`: whether it has the key, to seal, and how it was begun.
        bool keyed = false, sealed = false, padded = true;
        std::size_t iv_size = 0;
        void* single = nullptr;           // the default provider's context
        ParallelGcm* parallel = nullptr;  // GCM: goes on after a batch
        std::uint64_t size = 0;           // bytes that a batch has done
        std::size_t aad_size = 0, held_size = 0;
        std::size_t waits = 0;            // CBC: bytes that went in and have not come out
        unsigned char iv[kBlock] = {};    // CBC and CTR: of the block that is next
        unsigned char held[kBlock] = {};  // CBC: of a block that is not full. GCM: its ciphertext
        unsigned char tag[kBlock] = {};
        unsigned char aad[kShortAad] = {};
    };

    explicit Pipes(const Basis& basis) noexcept : basis_(basis) {}
    ~Pipes();

    bool start_single(Pipe& pipe, const unsigned char* iv, std::size_t iv_size) noexcept;
    bool to_single(Pipe& pipe) noexcept;
    bool give_tag(const Pipe& pipe) noexcept;
    bool go_on(Pipe& pipe, const unsigned char* in, unsigned char* out, std::size_t size) noexcept;
    bool keep_aad(const unsigned char** in, const std::size_t* size) noexcept;
    bool fits_in(std::size_t count, unsigned char** out, const std::size_t* room,
                 const std::size_t* size) const noexcept;
    bool move(unsigned char** out, std::size_t* written, const std::size_t* room,
              const unsigned char** in, const std::size_t* size, bool aad) noexcept;
    bool lost() noexcept;

    bool fits(std::size_t total) const noexcept;
    // What a batch has done is told by the pipes' ways. False: the engine failed on what was in
    // place.
    bool batch(unsigned char** out, std::size_t* written, const unsigned char** in,
               const std::size_t* size) noexcept;
    bool run(const dael_cipher& cipher, dael_message* messages, std::size_t count,
             std::int32_t* codes, std::size_t total) noexcept;
    void settle(Pipe& pipe, const dael_message& message) noexcept;
    bool last_blocks(unsigned char** out, std::size_t* written) noexcept;

    const Basis& basis_;
    bool encrypts_ = true, padded_ = true;
    std::size_t count_ = 0;
    bool ended_ = false;  // what is left of them is their tags
    std::size_t iv_size_ = 0, tag_size_ = 0;
    dael_key_set* set_ = nullptr;  // of the key
    EngineKey engine_key_;
    Pipe pipes_[kMax];
};

// The functions for contexts of a class whose pipes() gives theirs, made at first if it is to be,
// and told of padding; null: there are none, or memory has run out.
template <class Context, bool encrypts>
int pipeline_init(void* context, const unsigned char* key, std::size_t key_size, std::size_t count,
                  const unsigned char** ivs, std::size_t iv_size,
                  const OSSL_PARAM* params) noexcept {
    Pipes* const pipes = static_cast<Context*>(context)->pipes(true);
    return pipes && pipes->begin(encrypts, key, key_size, count, ivs, iv_size, params);
}
template <class Context>
int pipeline_update(void* context, std::size_t count, unsigned char** out, std::size_t* written,
                    const std::size_t* room, const unsigned char** in,
                    const std::size_t* size) noexcept {
    Pipes* const pipes = static_cast<Context*>(context)->pipes(false);
    return pipes && pipes->update(count, out, written, room, in, size);
}
template <class Context>
int pipeline_final(void* context, std::size_t count, unsigned char** out, std::size_t* written,
                   const std::size_t* room) noexcept {
    Pipes* const pipes = static_cast<Context*>(context)->pipes(false);
    return pipes && pipes->final(count, out, written, room);
}
template <class Context>
void offer_pipelines(OSSL_DISPATCH* functions) noexcept {
    add(functions, kPipelineEncryptInit, &pipeline_init<Context, true>);
    add(functions, kPipelineDecryptInit, &pipeline_init<Context, false>);
    add(functions, kPipelineUpdate, &pipeline_update<Context>);
    add(functions, kPipelineFinal, &pipeline_final<Context>);
}

}  // namespace dael::provider
