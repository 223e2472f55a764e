// SPDX-License-Identifier: Apache-2.0
#include "pipelines.hpp"

#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace dael::provider {
namespace {

constexpr std::size_t kNonce = 12;

bool fault(int reason, const char* why) noexcept {
    ERR_raise_data(ERR_LIB_PROV, reason, "daelstrom: %s", why);
    return false;
}

// A 128-bit big-endian counter, which wraps.
void count_on(unsigned char* counter, std::uint64_t blocks) noexcept {
    for (int i = 15; i >= 0 && blocks != 0; --i) {
        blocks += counter[i];
        counter[i] = static_cast<unsigned char>(blocks);
        blocks >>= 8;
    }
}

// Whether input and output are neither the same nor apart.
bool entangled(const unsigned char* in, const unsigned char* out, std::size_t size) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(in);
    const auto to = reinterpret_cast<std::uintptr_t>(out);
    return in != out && (from < to ? to - from : from - to) < size;
}

}  // namespace

Pipes* Pipes::make(const Basis& basis) noexcept {
    void* const memory = OPENSSL_malloc(sizeof(Pipes));
    return memory ? new (memory) Pipes(basis) : nullptr;
}
void Pipes::drop(Pipes* pipes) noexcept {
    if (!pipes) return;
    pipes->~Pipes();
    OPENSSL_clear_free(pipes, sizeof(Pipes));
}
Pipes::~Pipes() {
    for (Pipe& pipe : pipes_) {
        if (pipe.single) basis_.freectx(pipe.single);
        if (!pipe.parallel) continue;
        pipe.parallel->~ParallelGcm();
        OPENSSL_free(pipe.parallel);
    }
    engine_key_.tell();
    dael_key_set_free(set_);
    engine_key_.drop();
}

bool Pipes::begin(bool encrypts, const unsigned char* key, std::size_t key_size, std::size_t count,
                  const unsigned char** ivs, std::size_t iv_size,
                  const OSSL_PARAM* params) noexcept {
    if (count == 0 || count > kMax)
        return fault(PROV_R_INVALID_DATA, "a pipeline has 1 to 32 messages");
    if (key && key_size != basis_.key_bytes)
        return fault(PROV_R_INVALID_KEY_LENGTH, "the key is not of this cipher's size");
    const bool gcm = basis_.kind == Kind::gcm;
    if (ivs && (gcm ? iv_size == 0 || iv_size > 128 : iv_size != kBlock))
        return fault(PROV_R_INVALID_IV_LENGTH, "the IVs are not of this cipher's size");
    if (ivs && std::any_of(ivs, ivs + count, [](const unsigned char* iv) { return !iv; }))
        return fault(PROV_R_INVALID_DATA, "an IV is missing");
    if (ivs && !key && engine_key_.size == 0) return fault(PROV_R_NO_KEY_SET, "no key is set");
    count_ = 0;
    if (key && !engine_key_.same(key, key_size)) {
        dael_key_set_free(set_);
        set_ = nullptr;
        engine_key_.set(key, key_size);
        for (Pipe& pipe : pipes_) pipe.keyed = false;
    }
    encrypts_ = encrypts;
    iv_size_ = iv_size;
    tag_size_ = 0;
    for (std::size_t i = 0; i < count; ++i) {
        Pipe& pipe = pipes_[i];
        pipe.way = Way::none;
        pipe.tagged = false;
        pipe.size = pipe.aad_size = pipe.held_size = pipe.waits = 0;
        if (!ivs) continue;
        pipe.way = Way::begun;
        if (gcm && iv_size != kNonce) {  // which the default provider makes a counter of
            if (!start_single(pipe, ivs[i], iv_size)) return false;
            pipe.way = Way::single;
        } else {
            std::memcpy(pipe.iv, ivs[i], iv_size);
        }
    }
    count_ = count;
    ended_ = false;
    return !params || set(params);
}

// Messages that the default provider has are told, as a context that is told amid its message.
bool Pipes::pad(bool padded) noexcept {
    padded_ = padded;
    if (basis_.kind != Kind::cbc) return true;
    for (std::size_t i = 0; i < count_; ++i) {
        Pipe& pipe = pipes_[i];
        if (pipe.way != Way::single || pipe.padded == padded) continue;
        unsigned number = padded ? 1 : 0;
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &number),
                                  OSSL_PARAM_construct_end()};
        if (basis_.set_ctx_params(pipe.single, one) != 1) return false;
        pipe.padded = padded;
    }
    return true;
}

bool Pipes::give_tag(const Pipe& pipe) noexcept {
    OSSL_PARAM tag[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG,
                                          const_cast<unsigned char*>(pipe.tag), tag_size_),
        OSSL_PARAM_construct_end()};
    return basis_.set_ctx_params(pipe.single, tag) == 1;
}

bool Pipes::start_single(Pipe& pipe, const unsigned char* iv, std::size_t iv_size) noexcept {
    // One that has been used may go on under its key; but of what it opened, a tag would stay.
    const bool same = pipe.single && pipe.keyed && pipe.sealed && encrypts_ &&
                      pipe.iv_size == iv_size && pipe.padded == padded_;
    if (!same) {
        if (pipe.single) basis_.freectx(pipe.single);
        pipe.single = basis_.newctx(basis_.provider_context);
        if (!pipe.single) return false;
    }
    if (basis_.kind == Kind::gcm) {
        OSSL_PARAM size[] = {OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, &iv_size),
                             OSSL_PARAM_construct_end()};
        if (!same && iv_size != kNonce && basis_.set_ctx_params(pipe.single, size) != 1)
            return false;
    }
    if (basis_.kind == Kind::cbc && !same) {
        unsigned padded = padded_ ? 1 : 0;
        OSSL_PARAM padding[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &padded),
                                OSSL_PARAM_construct_end()};
        if (basis_.set_ctx_params(pipe.single, padding) != 1) return false;
    }
    const auto init = encrypts_ ? basis_.encrypt_init : basis_.decrypt_init;
    pipe.keyed = init(pipe.single, same ? nullptr : engine_key_.bytes, same ? 0 : basis_.key_bytes,
                      iv, iv_size, nullptr) == 1;
    pipe.sealed = encrypts_;
    pipe.padded = padded_;
    pipe.iv_size = iv_size;
    return pipe.keyed && (!pipe.tagged || encrypts_ || give_tag(pipe));
}

// From where the message stands, which is not GCM's after a batch.
bool Pipes::to_single(Pipe& pipe) noexcept {
    const bool gcm = basis_.kind == Kind::gcm;
    if (!start_single(pipe, pipe.iv, gcm ? kNonce : kBlock)) return false;
    pipe.way = Way::single;
    unsigned char nowhere[kBlock];
    std::size_t made = 0;
    if (gcm)
        return pipe.aad_size == 0 || basis_.update(pipe.single, nullptr, &made, pipe.aad_size,
                                                   pipe.aad, pipe.aad_size) == 1;
    // CBC: the bytes that wait. CTR: as many of the block as are used up.
    const bool ok = pipe.held_size == 0 || basis_.update(pipe.single, nowhere, &made, kBlock,
                                                         pipe.held, pipe.held_size) == 1;
    OPENSSL_cleanse(nowhere, sizeof nowhere);
    return ok;
}

// GCM: more data for a message that a batch took for the whole.
bool Pipes::go_on(Pipe& pipe, const unsigned char* in, unsigned char* out,
                  std::size_t size) noexcept {
    if (!encrypts_)
        return fault(PROV_R_CIPHER_OPERATION_FAILED, "the message was whole, by the tag it has");
    if (entangled(in, out, size))
        return fault(PROV_R_CIPHER_OPERATION_FAILED, "the output overlaps the input");
    if (!pipe.parallel) {
        void* const memory = OPENSSL_malloc(sizeof(ParallelGcm));
        if (!memory) return false;
        pipe.parallel = new (memory) ParallelGcm;
    }
    if (pipe.tagged) {
        if (!pipe.parallel->begin(opened_engine(), engine_key_.key, true, pipe.iv)) return false;
        pipe.parallel->adopt(pipe.aad_size, pipe.size, pipe.held, pipe.tag);
        pipe.tagged = false;
    }
    return thread_may_work() && pipe.parallel->update(in, out, size);
}

bool Pipes::keep_aad(const unsigned char** in, const std::size_t* size) noexcept {
    for (std::size_t i = 0; i < count_; ++i)
        if (pipes_[i].way != Way::begun || size[i] > kShortAad - pipes_[i].aad_size) return false;
    for (std::size_t i = 0; i < count_; ++i) {
        if (size[i] != 0) std::memcpy(pipes_[i].aad + pipes_[i].aad_size, in[i], size[i]);
        pipes_[i].aad_size += size[i];
    }
    return true;
}

// Whether a batch of so many bytes is quicker than one context after the other (README.md).
bool Pipes::fits(std::size_t total) const noexcept {
    switch (basis_.kind) {
        case Kind::gcm:
            return total >= 2048 &&
                   (encrypts_ || tag_size_ == 4 || tag_size_ == 8 || tag_size_ >= 12);
        case Kind::cbc:
            return encrypts_ && count_ >= 4 && total >= 8192;
        default:
            return total >= 4096;
    }
}

bool Pipes::run(const dael_cipher& cipher, dael_message* messages, std::size_t count,
                std::int32_t* codes, std::size_t total) noexcept {
    std::fill_n(codes, count, DAEL_INVALID_ARGUMENT);
    if (!set_ && dael_key_set_make(opened_engine(), &engine_key_.key, 1, &set_) != DAEL_OK)
        return false;
    const bool parallel = total >= settings().threshold;
    // CBC is quick because its messages go side by side; what is not parallel else stays on this
    // thread.
    const bool whole = parallel || cipher.mode == DAEL_CBC;
    for (std::size_t from = 0; from < count;) {
        std::size_t to = from, bytes = 0;
        do bytes += messages[to++].size;
        while (to < count && (whole || bytes + messages[to].size <= EngineKey::kSlice));
        dael_ran ran{};
        const dael_status status = dael_run_batch(opened_engine(), &cipher, set_, messages + from,
                                                  to - from, codes + from, &ran);
        if (status != DAEL_OK) {
            // Refused before anything was done, or failed amid it.
            const bool refused = status == DAEL_LIMIT || status == DAEL_INVALID_ARGUMENT;
            if (!refused) engine_failed("a pipeline", status);
            std::fill(codes + from, codes + to, refused ? DAEL_INVALID_ARGUMENT : status);
            return false;
        }
        note_replaced(ran);
        from = to;
    }
    parallel ? EngineKey::did_parallel(total) : engine_key_.did(total);
    return true;
}

// A message that a batch has done: where it stands now.
void Pipes::settle(Pipe& pipe, const dael_message& message) noexcept {
    pipe.way = Way::batched;
    const std::size_t size = message.size;
    if (basis_.kind == Kind::gcm) {
        pipe.size = size;
        pipe.tagged = true;
        pipe.verified = encrypts_ ? 0 : tag_size_;
        if (encrypts_) std::memcpy(pipe.held, message.out + size / kBlock * kBlock, size % kBlock);
    } else if (basis_.kind == Kind::ctr) {
        count_on(pipe.iv, (pipe.held_size + size) / kBlock);
        pipe.held_size = (pipe.held_size + size) % kBlock;
    } else {
        std::memcpy(pipe.iv, message.out + size - kBlock, kBlock);
    }
}

bool Pipes::batch(unsigned char** out, std::size_t* written, const unsigned char** in,
                  const std::size_t* size) noexcept {
    const Kind kind = basis_.kind;
    dael_message messages[kMax] = {};
    std::int32_t codes[kMax];
    unsigned char which[kMax];
    unsigned char tags[kMax][kBlock] = {};
    std::size_t count = 0, total = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        Pipe& pipe = pipes_[i];
        const bool fresh = pipe.way == Way::begun;
        if (kind == Kind::gcm ? !fresh || !(encrypts_ || pipe.tagged)
                              : !fresh && pipe.way != Way::batched)
            continue;
        const std::size_t whole = kind == Kind::cbc ? size[i] / kBlock * kBlock : size[i];
        // CBC: with bytes that wait the output lies behind the input.
        if (whole == 0 || (kind == Kind::cbc && pipe.held_size != 0) ||
            entangled(in[i], out[i], size[i]))
            continue;
        dael_message& m = messages[count];
        m.in = in[i];
        m.out = out[i];
        m.size = whole;
        std::memcpy(m.start, pipe.iv, kBlock);
        if (kind == Kind::gcm) {
            if (dael_gcm_start(pipe.iv, m.start) != DAEL_OK) continue;
            m.aad = pipe.aad;
            m.aad_size = pipe.aad_size;
            std::memcpy(tags[count], pipe.tag, kBlock);
            m.tag = tags[count];
        } else if (kind == Kind::ctr) {
            m.skip = static_cast<std::uint8_t>(pipe.held_size);
        }
        which[count++] = static_cast<unsigned char>(i);
        total += whole;
    }
    if (count == 0 || !fits(total) || !engine_key_.ready(total)) return true;
    const int mode = kind == Kind::gcm ? DAEL_GCM : kind == Kind::cbc ? DAEL_CBC : DAEL_CTR;
    const std::size_t tag = kind != Kind::gcm ? 0 : encrypts_ ? kBlock : tag_size_;
    const int direction = encrypts_ || kind == Kind::ctr ? DAEL_ENCRYPT : DAEL_DECRYPT;
    const dael_cipher cipher{static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(direction),
                             static_cast<std::uint8_t>(tag), 0, 0};
    // Two messages with one start are refused before anything is done; then all are done one by
    // one.
    const bool ran = run(cipher, messages, count, codes, total);
    for (std::size_t m = 0; m < count; ++m) {
        Pipe& pipe = pipes_[which[m]];
        if (codes[m] == DAEL_OK) {
            if (encrypts_) std::memcpy(pipe.tag, tags[m], kBlock);
            settle(pipe, messages[m]);
            written[which[m]] = messages[m].size;
        } else if (codes[m] != DAEL_AUTHENTICATION && (ran || codes[m] != DAEL_INVALID_ARGUMENT)) {
            if (ran) engine_failed("a message of a pipeline");
            if (messages[m].in == messages[m].out) return false;
        }
    }
    return true;
}

// Whether each output has room for what comes of its input.
bool Pipes::fits_in(std::size_t count, unsigned char** out, const std::size_t* room,
                    const std::size_t* size) const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        if (!out[i]) return fault(PROV_R_INVALID_DATA, "a message has no output, and others have");
        std::size_t makes = size[i];
        if (basis_.kind == Kind::cbc) {
            const std::size_t there = pipes_[i].waits + size[i];
            makes = there / kBlock * kBlock;
            if (!encrypts_ && padded_ && makes == there && makes != 0) makes -= kBlock;
        }
        if (room[i] < makes)
            return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
    }
    return true;
}

// Some messages have gone on, and others have not.
bool Pipes::lost() noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
        pipes_[i].way = Way::ended;
        pipes_[i].tagged = false;  // of a message that is not whole
    }
    ended_ = true;
    return false;
}

bool Pipes::update(std::size_t count, unsigned char** out, std::size_t* written,
                   const std::size_t* room, const unsigned char** in,
                   const std::size_t* size) noexcept {
    if (count == 0 || count != count_)
        return fault(PROV_R_INVALID_DATA, "this is not the number of messages that was begun");
    bool aad = true;
    for (std::size_t i = 0; i < count; ++i) {
        written[i] = 0;
        if (out && out[i]) aad = false;
        const Way way = pipes_[i].way;
        if (way == Way::none || way == Way::ended)
            return fault(PROV_R_CIPHER_OPERATION_FAILED, "a pipeline needs a key and IVs");
    }
    if (aad && basis_.kind != Kind::gcm)
        return fault(PROV_R_CIPHER_OPERATION_FAILED, "there is no room for output");
    if (aad && keep_aad(in, size)) {
        std::copy_n(size, count, written);
        return true;
    }
    if (!aad && !fits_in(count, out, room, size)) return false;
    if (!move(out, written, room, in, size, aad)) return lost();
    for (std::size_t i = 0; i < count; ++i) pipes_[i].waits += size[i] - written[i];
    return true;
}

bool Pipes::move(unsigned char** out, std::size_t* written, const std::size_t* room,
                 const unsigned char** in, const std::size_t* size, bool aad) noexcept {
    if (!aad && !batch(out, written, in, size))
        return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
    for (std::size_t i = 0; i < count_; ++i) {
        Pipe& pipe = pipes_[i];
        const std::size_t done = written[i], left = size[i] - done;
        // Without padding, nothing more brings out a block that was held.
        if (left == 0 && (pipe.way != Way::single || done != 0)) continue;
        if (pipe.way == Way::batched) {
            if (basis_.kind == Kind::gcm) {
                if (aad || !go_on(pipe, in[i], out[i], left))
                    return fault(PROV_R_CIPHER_OPERATION_FAILED, "the message takes no more");
                written[i] = left;
                continue;
            }
            if (done != 0) {  // CBC's rest
                std::memcpy(pipe.held, in[i] + done, left);
                pipe.held_size = left;
                continue;
            }
        }
        if (pipe.way != Way::single && !to_single(pipe)) return false;
        if (basis_.update(pipe.single, aad ? nullptr : out[i], &written[i], room ? room[i] : left,
                          in[i], left) != 1)
            return false;
    }
    return true;
}

// CBC: padding, where all messages were in batches.
bool Pipes::last_blocks(unsigned char** out, std::size_t* written) noexcept {
    dael_message messages[kMax] = {};
    std::int32_t codes[kMax];
    unsigned char which[kMax];
    std::size_t count = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        Pipe& pipe = pipes_[i];
        if (pipe.way != Way::batched) continue;
        if (!padded_) {
            if (pipe.held_size == 0) continue;
            return fault(PROV_R_WRONG_FINAL_BLOCK_LENGTH, "the last block is not full");
        }
        unsigned char block[kBlock];
        if (dael_pad(pipe.held, pipe.held_size, block) != DAEL_OK) return false;
        std::memcpy(pipe.held, block, kBlock);
        dael_message& m = messages[count];
        m.in = pipe.held;
        m.out = out[i];
        m.size = kBlock;
        std::memcpy(m.start, pipe.iv, kBlock);
        which[count++] = static_cast<unsigned char>(i);
    }
    if (count == 0) return true;
    const dael_cipher cbc{DAEL_CBC, DAEL_ENCRYPT, 0, 0, 0};
    if (!thread_may_work() || !run(cbc, messages, count, codes, count * kBlock) ||
        std::any_of(codes, codes + count, [](std::int32_t code) { return code != DAEL_OK; }))
        return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
    for (std::size_t m = 0; m < count; ++m) written[which[m]] = kBlock;
    return true;
}

bool Pipes::final(std::size_t count, unsigned char** out, std::size_t* written,
                  const std::size_t* room) noexcept {
    if (count == 0 || count != count_)
        return fault(PROV_R_INVALID_DATA, "this is not the number of messages that was begun");
    std::fill_n(written, count, 0);
    // Sealing, each message of CBC has a last block.
    if (basis_.kind == Kind::cbc && encrypts_ && padded_ && !ended_)
        for (std::size_t i = 0; i < count; ++i)
            if (!out || !out[i] || room[i] < kBlock)
                return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
    ended_ = true;
    bool good = basis_.kind != Kind::cbc || last_blocks(out, written);
    for (std::size_t i = 0; i < count; ++i) {
        Pipe& pipe = pipes_[i];
        if (pipe.way == Way::begun && !to_single(pipe)) good = false;
        if (pipe.way == Way::single) {
            unsigned char nowhere[kBlock];  // for those who give none, where none is needed
            const bool given = out && out[i];
            if (basis_.final(pipe.single, given ? out[i] : nowhere, &written[i],
                             given ? room[i] : 0) != 1)
                good = false;
            if (encrypts_ && good && basis_.kind == Kind::gcm) {
                OSSL_PARAM tag[] = {
                    OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, pipe.tag, kBlock),
                    OSSL_PARAM_construct_end()};
                pipe.tagged = basis_.get_ctx_params(pipe.single, tag) == 1;
            }
        } else if (pipe.way == Way::batched && basis_.kind == Kind::gcm && !pipe.tagged) {
            pipe.tagged = encrypts_ && pipe.parallel->tag(pipe.tag);
            if (!pipe.tagged) good = false;
        } else if (pipe.way != Way::batched) {
            good = false;
        }
        pipe.way = Way::ended;
    }
    return good;
}

bool Pipes::get(OSSL_PARAM* params) noexcept {
    const OSSL_PARAM* const p = OSSL_PARAM_locate_const(params, kPipelineTag);
    if (!p) return true;
    const void* pointers = nullptr;
    std::size_t size = 0;
    if (!OSSL_PARAM_get_octet_ptr(p, &pointers, &size) || !pointers || size == 0 || size > kBlock ||
        count_ == 0 || !encrypts_)
        return fault(PROV_R_INVALID_TAG, "a tag has 1 to 16 bytes, and encryption makes it");
    const auto* const tags = static_cast<unsigned char* const*>(pointers);
    for (std::size_t i = 0; i < count_; ++i) {
        if (pipes_[i].way != Way::ended || !pipes_[i].tagged)
            return fault(PROV_R_INVALID_TAG, "a message is not at its end");
        std::memcpy(tags[i], pipes_[i].tag, size);
    }
    return true;
}

bool Pipes::set(const OSSL_PARAM* params) noexcept {
    const OSSL_PARAM* const p = OSSL_PARAM_locate_const(params, kPipelineTag);
    if (!p) return true;
    const void* pointers = nullptr;
    std::size_t size = 0;
    if (!OSSL_PARAM_get_octet_ptr(p, &pointers, &size) || !pointers || size == 0 || size > kBlock ||
        count_ == 0 || encrypts_)
        return fault(PROV_R_INVALID_TAG, "a tag has 1 to 16 bytes, and is set for decryption");
    const auto* const tags = static_cast<const unsigned char* const*>(pointers);
    if (std::any_of(tags, tags + count_, [](const unsigned char* tag) { return !tag; }))
        return fault(PROV_R_INVALID_TAG, "a tag is missing");
    tag_size_ = size;
    for (std::size_t i = 0; i < count_; ++i) {
        Pipe& pipe = pipes_[i];
        // What a batch has found whole was so by the tag that it had, and of no longer one.
        if (pipe.way == Way::batched) {
            pipe.tagged = size <= pipe.verified && CRYPTO_memcmp(pipe.tag, tags[i], size) == 0;
            continue;
        }
        std::memcpy(pipe.tag, tags[i], size);
        pipe.tagged = true;
        if (pipe.way == Way::single && !give_tag(pipe)) return false;
    }
    return true;
}

}  // namespace dael::provider
