// SPDX-License-Identifier: Apache-2.0
// A message of GCM: who does it, and what passes.
#include <algorithm>

#include "gcm.hpp"
#include "refusals.hpp"

namespace dael::provider {
namespace {

// Without AVX-512, a message that begins with less is the basis's: OpenSSL's code is as quick
// there, of any version.
constexpr std::size_t kLeast = 256;
// In thresholds: where two chunks on two threads begin to be quicker than one message on one.
constexpr std::size_t kParallelFrom = 8;
constexpr char kWrong[] = "the tag is wrong";

[[gnu::cold, gnu::noinline]] int at_its_end() noexcept {
    return fault(PROV_R_CIPHER_OPERATION_FAILED, "this message is at its end: set an IV");
}

}  // namespace

// A message that has not begun elsewhere goes on in the basis, or none that has an IV. `anew`: what
// was begun is over, and of the IV in iv_ the basis makes others.
bool Gcm::to_basis(bool anew) noexcept {
    if (record_ == Record::refused || (anew && (void_ || iv_size_ != kNonce)))
        return fault(PROV_R_CIPHER_OPERATION_FAILED,
                     "there is no message to go on with: set an IV");
    const bool begins = way_ == Way::open || anew;
    // An IV that counts is told by the setting for it, of which -1 is the size of all.
    if (!tell(begins && !generates_ ? iv_ : nullptr)) return false;
    if (begins) {
        made_ = false;
        if (generates_ && !tell_setting(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, iv_, SIZE_MAX))
            return false;
        std::size_t made = 0;
        if (!anew && aad_size_ != 0 &&
            inner_.basis->update(inner_.context, nullptr, &made, aad_size_, aad_, aad_size_) != 1)
            return false;
    }
    if (record_ == Record::next) {
        const std::size_t size = (std::size_t{tag_[kTlsAad - 2]} << 8 | tag_[kTlsAad - 1]) +
                                 kExplicit + (encrypts_ ? 0 : kTag);
        Bytes header[kTlsAad];
        std::memcpy(header, tag_, kTlsAad);
        header[kTlsAad - 2] = static_cast<unsigned char>(size >> 8);
        header[kTlsAad - 1] = static_cast<unsigned char>(size);
        if (!tell_setting(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, header, kTlsAad)) return false;
        record_ = Record::none;
        header_below_ = true;
    }
    way_ = Way::basis;
    return true;
}

int Gcm::below(OSSL_FUNC_cipher_update_fn* function, Bytes* out, std::size_t* written,
               std::size_t room, const Bytes* in, std::size_t size) noexcept {
    const bool record = header_below_, empty = size == 0 && function == inner_.basis->update;
    if (!empty) header_below_ = false;
    if (function(inner_.context, out, written, room, in, size) != 1) return 0;
    if (record && !empty) tag_length_ = kTag;
    if (!in && !empty) note_made();  // who brings nothing is at the end
    return 1;
}

// The basis is at the end of a message.
void Gcm::note_made() noexcept {
    if (!encrypts_) return;
    made_ = true;
    tag_size_ = 0;  // it is there
    tag_length_ = kTag;
}

VectorGcmKey& Gcm::vector_key() noexcept {
    if (!vector_keyed_) vector_key_.set(engine_key_.bytes, engine_key_.size);
    vector_keyed_ = true;
    return vector_key_;
}
bool Gcm::to_vectors() noexcept {
    message_.begin(iv_);
    message_.aad(vector_key(), aad_, aad_size_);
    way_ = Way::vectors;
    return true;
}

bool Gcm::to_parallel() noexcept {
    if (!parallel_) {
        void* const memory = OPENSSL_malloc(sizeof(ParallelGcm));
        if (!memory) return false;
        parallel_ = new (memory) ParallelGcm;
    }
    if (!parallel_->begin(opened_engine(), engine_key_.key, encrypts_, iv_)) {
        engine_failed("beginning a message in parallel");
        return false;
    }
    parallel_->aad(aad_, aad_size_);
    way_ = Way::parallel;
    return true;
}

bool Gcm::to_pieces() noexcept {
    unsigned char j0[16];
    if (dael_gcm_start(iv_, j0) != DAEL_OK) return false;
    dael_status done = DAEL_OK;
    if (pieces()) {
        done = dael_pieces_restart(pieces(), j0);
    } else {
        const dael_cipher cipher{DAEL_GCM,
                                 static_cast<std::uint8_t>(encrypts_ ? DAEL_ENCRYPT : DAEL_DECRYPT),
                                 kTag, 0, 0};
        done = dael_begin(opened_engine(), &cipher, engine_key_.key, j0, &pieces());
    }
    if (done == DAEL_OK && aad_size_ != 0) done = dael_pieces_aad(pieces(), aad_, aad_size_);
    if (done != DAEL_OK) {
        engine_failed("beginning a message");
        return false;
    }
    way_ = Way::pieces;
    return true;
}

// The way of a message whose first data, or end, has come.
bool Gcm::choose(std::size_t size) noexcept {
    // An IV that counts records is the basis's to use otherwise.
    if (!keyed_ || generates_) return to_basis();
    if (size / kParallelFrom >= settings().threshold && engine_key_.ready(size) && to_parallel())
        return true;
    if (quick_) return to_vectors();
    if (size < kLeast || !engine_key_.ready(size)) return to_basis();
    return (size >= won_from(*inner_.basis, encrypts_) && to_pieces()) || to_basis();
}

int Gcm::add_aad(std::size_t* written, const unsigned char* in, std::size_t size) noexcept {
    *written = size;
    if (way_ == Way::open) {
        if (keyed_ && size <= kShortAad - aad_size_) {
            std::memcpy(aad_ + aad_size_, in, size);
            aad_size_ = static_cast<Bytes>(aad_size_ + size);
            return 1;
        }
        const bool begun = keyed_ && !generates_ &&
                           (quick_ ? to_vectors()
                                   : engine_key_.ready(size) &&
                                         size >= won_from(*inner_.basis, encrypts_) && to_pieces());
        if (!begun && !to_basis()) return 0;
        if (way_ == Way::basis)
            return below(inner_.basis->update, nullptr, written, size, in, size);
    }
    if (way_ == Way::vectors && !message_.has_data() && !aad_over_) {
        message_.aad(vector_key(), in, size);
        return 1;
    }
    if (way_ == Way::pieces && !aad_over_ && dael_pieces_aad(pieces(), in, size) == DAEL_OK)
        return 1;
    *written = 0;
    return fault(PROV_R_CIPHER_OPERATION_FAILED, "additional data comes before the data");
}

int Gcm::nothing_came(unsigned char* out, std::size_t* written, std::size_t room) noexcept {
    return final(out, written, room) == 1 || at_its_end();
}

int Gcm::update(unsigned char* out, std::size_t* written, std::size_t room, const unsigned char* in,
                std::size_t size) noexcept {
    if (size == 0) {
        *written = 0;
        return 1;
    }
    if (room < size) return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
    if (record_ != Record::none) return record(out, written, in, size);
    if (way_ == Way::none && !to_basis()) return 0;
    if (way_ == Way::basis && in && !header_below_)
        return inner_.basis->update(inner_.context, out, written, room, in, size);
    if (way_ == Way::basis) return below(inner_.basis->update, out, written, room, in, size);
    // As OpenSSL has it, who brings nothing is at the end.
    if (!in) return nothing_came(out, written, room);
    if (!out) return add_aad(written, in, size);
    *written = 0;
    if (way_ == Way::open) {
        if (!choose(size)) return 0;
        if (way_ == Way::basis) return below(inner_.basis->update, out, written, room, in, size);
    }
    if (entangled(in, out, size, 0))
        return fault(PROV_R_CIPHER_OPERATION_FAILED, "the output overlaps the input");
    if (way_ == Way::vectors) {
        if (!message_.crypt(vector_key(), encrypts_, in, out, size)) {
            way_ = Way::ended;
            return fault(PROV_R_CIPHER_OPERATION_FAILED, "a message has at most 2^36 - 32 bytes");
        }
        engine_key_.did_here(size);
    } else if (way_ == Way::pieces) {
        const dael_status done = encrypts_
                                     ? dael_pieces_update(pieces(), in, size, out, size, nullptr)
                                     : dael_pieces_update_unverified(pieces(), in, out, size);
        if (done != DAEL_OK) {
            way_ = Way::ended;
            return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
        }
        engine_key_.did(size);
    } else if (way_ == Way::parallel) {
        if (!thread_may_work() || !parallel_->update(in, out, size)) {
            way_ = Way::ended;
            engine_failed("a message in parallel");
            return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
        }
        EngineKey::did_parallel(size);
    } else {
        return at_its_end();
    }
    *written = size;
    return 1;
}

int Gcm::final(unsigned char* out, std::size_t* written, std::size_t room) noexcept {
    *written = 0;
    if (record_ != Record::none) return no_record();
    if (way_ == Way::none && !to_basis()) return 0;
    if (way_ == Way::open && !choose(0)) return 0;
    if (way_ == Way::basis) {
        header_below_ = false;
        if (inner_.basis->final(inner_.context, out, written, room) != 1) return 0;
        note_made();
        return 1;
    }
    if (way_ == Way::ended) return at_its_end();
    // As OpenSSL has it, a tag may still come.
    if (!encrypts_ && tag_size_ == 0)
        return refuse(*inner_.basis, Refusal::no_tag, "no tag was set");
    unsigned char tag[kTag] = {};
    bool ok = true;
    if (way_ == Way::vectors)
        message_.tag(vector_key(), tag);
    else if (way_ == Way::parallel)
        ok = parallel_->tag(tag);
    else
        ok = (encrypts_ ? dael_pieces_finish(pieces(), tag, kTag, nullptr)
                        : dael_pieces_tag(pieces(), tag)) == DAEL_OK;
    way_ = Way::ended;
    if (!ok) return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
    if (encrypts_) {
        std::memcpy(tag_, tag, kTag);
        tag_size_ = tag_length_ = kTag;
        made_ = true;
        return 1;
    }
    const bool right = CRYPTO_memcmp(tag, tag_, tag_size_) == 0;
    OPENSSL_cleanse(tag, sizeof tag);
    return right ? 1 : refuse(*inner_.basis, Refusal::wrong_tag, kWrong);
}

// What comes after a record's header and is no record.
int Gcm::no_record() noexcept {
    // The IV is with the basis, or OpenSSL had one of this record.
    if (way_ == Way::basis || record_ == Record::refused) void_ = true;
    record_ = Record::none;
    way_ = Way::ended;
    return fault(PROV_R_CIPHER_OPERATION_FAILED,
                 "a record is in place, with nonce and tag, under a key and a fixed IV");
}

// A record of TLS 1.2 in place, with eight bytes of nonce before its data and the tag behind (RFC
// 5288 3). `written` becomes what OpenSSL says: the data's size when it has been decrypted.
int Gcm::record(unsigned char* out, std::size_t* written, const unsigned char* in,
                std::size_t size) noexcept {
    *written = 0;
    if (record_ == Record::refused || !in || out != in || size < kExplicit + kTag || !keyed_ ||
        !generates_ || void_ || iv_size_ != kNonce || !quick_)
        return no_record();
    record_ = Record::none;
    way_ = Way::ended;
    made_ = false;
    unsigned char* const number = iv_ + kNonce - kExplicit;
    if (encrypts_)
        std::memcpy(out, number, kExplicit);
    else
        std::memcpy(number, out, kExplicit);
    VectorGcmKey& key = vector_key();
    message_.begin(iv_);
    if (encrypts_)
        for (std::size_t i = kExplicit; i-- > 0 && ++number[i] == 0;) {
        }
    unsigned char* const data = out + kExplicit;
    unsigned char* const end = out + size - kTag;
    message_.aad(key, tag_, kTlsAad);
    tag_size_ = tag_length_ = kTag;
    if (!message_.crypt(key, encrypts_, data, data, static_cast<std::size_t>(end - data))) return 0;
    engine_key_.did_here(size);
    if (encrypts_) {
        message_.tag(key, end);
        *written = size;
        return 1;
    }
    unsigned char tag[kTag];
    message_.tag(key, tag);
    const bool right = CRYPTO_memcmp(tag, end, kTag) == 0;
    OPENSSL_cleanse(tag, sizeof tag);
    if (!right) {
        OPENSSL_cleanse(data, static_cast<std::size_t>(end - data));
        return refuse(*inner_.basis, Refusal::forged_record, kWrong);
    }
    *written = static_cast<std::size_t>(end - data);
    return 1;
}

int Gcm::cipher(unsigned char* out, std::size_t* written, std::size_t room, const unsigned char* in,
                std::size_t size) noexcept {
    if (room < size) return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
    if (record_ != Record::none) {
        if (record(out, written, in, size) != 1) return 0;
        *written = size;
        return 1;
    }
    if (way_ == Way::none && !to_basis()) return 0;
    if (way_ == Way::open && in && out && size == 0 && !choose(0)) return 0;
    if (way_ == Way::basis) return below(inner_.basis->cipher, out, written, room, in, size);
    if (!in) return final(out, written, room);
    if (way_ == Way::ended) return at_its_end();
    if (out && size == 0) aad_over_ = true;
    return update(out, written, room, in, size);
}

// Of a message that the engine is amid of: handles of this context's.
bool Gcm::copy_handles(const Handles& theirs) noexcept {
    if (way_ != Way::pieces && way_ != Way::parallel) return true;
    if (dael_key_duplicate(theirs.key, &engine_key_.key) != DAEL_OK) return false;
    if (way_ == Way::pieces) return dael_pieces_clone(theirs.pieces, &pieces()) == DAEL_OK;
    void* const room = OPENSSL_malloc(sizeof(ParallelGcm));
    if (room)
        parallel_ =
            new (room) ParallelGcm(theirs.parallel->copy_for(opened_engine(), engine_key_.key));
    return room != nullptr;
}

}  // namespace dael::provider
