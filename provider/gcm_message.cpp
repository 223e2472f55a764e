// SPDX-License-Identifier: Apache-2.0
// A message of GCM: who does it, and what passes.
#include <algorithm>

#include "gcm.hpp"

namespace dael::provider {
namespace {

// Without AVX-512, a message that begins with less is the basis's: OpenSSL's code is as quick
// there, of any version.
constexpr std::size_t kLeast = 256;
// In thresholds: where two chunks on two threads begin to be quicker than one message on one.
constexpr std::size_t kWideFrom = 8;

int at_its_end() noexcept {
    return fault(PROV_R_CIPHER_OPERATION_FAILED, "this message is at its end: set an IV");
}

}  // namespace

bool Gcm::to_basis() noexcept {
    if (!tell(way_ == Way::open)) return false;
    std::size_t made = 0;
    if (way_ == Way::open && aad_size_ != 0 &&
        inner_.basis->update(inner_.context, nullptr, &made, aad_size_, aad_, aad_size_) != 1)
        return false;
    way_ = Way::basis;
    return true;
}

VectorGcmKey& Gcm::vector_key() noexcept {
    if (!vector_keyed_) vector_key_.set(worker_.bytes, worker_.size);
    vector_keyed_ = true;
    return vector_key_;
}
bool Gcm::to_vectors() noexcept {
    message_.begin(iv_);
    message_.aad(vector_key(), aad_, aad_size_);
    way_ = Way::vectors;
    return true;
}

bool Gcm::to_wide() noexcept {
    if (!wide_) {
        void* const memory = OPENSSL_malloc(sizeof(WideGcm));
        if (!memory) return false;
        wide_ = new (memory) WideGcm;
    }
    if (!wide_->begin(opened_engine(), worker_.key, encrypts_, iv_)) {
        engine_failed("beginning a wide message");
        return false;
    }
    wide_->aad(aad_, aad_size_);
    way_ = Way::wide;
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
        done = dael_begin(opened_engine(), &cipher, worker_.key, j0, &pieces());
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
    if (!keyed_ || counts_) return to_basis();
    if (size >= kWideFrom * settings().threshold && worker_.ready(size) && to_wide()) return true;
    if (quick_) return to_vectors();
    if (size < kLeast || !worker_.ready(size)) return to_basis();
    return (size >= won_from(*inner_.basis, encrypts_) && to_pieces()) || to_basis();
}

int Gcm::add_aad(std::size_t* written, const unsigned char* in, std::size_t size) noexcept {
    *written = size;
    if (way_ == Way::open) {
        if (size <= kShortAad - aad_size_) {
            std::memcpy(aad_ + aad_size_, in, size);
            aad_size_ += size;
            return 1;
        }
        const bool begun = keyed_ && !counts_ &&
                           (quick_ ? to_vectors()
                                   : worker_.ready(size) &&
                                         size >= won_from(*inner_.basis, encrypts_) && to_pieces());
        if (!begun && !to_basis()) return 0;
        if (way_ == Way::basis)
            return inner_.basis->update(inner_.context, nullptr, written, size, in, size);
    }
    if (way_ == Way::vectors && !message_.has_data()) {
        message_.aad(vector_key(), in, size);
        return 1;
    }
    if (way_ == Way::pieces && dael_pieces_aad(pieces(), in, size) == DAEL_OK) return 1;
    *written = 0;
    return fault(PROV_R_CIPHER_OPERATION_FAILED, "additional data comes before the data");
}

int Gcm::update(unsigned char* out, std::size_t* written, std::size_t room, const unsigned char* in,
                std::size_t size) noexcept {
    if (record_next_) {
        if (room < size) return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
        return record(out, written, in, size);
    }
    if (way_ == Way::basis || way_ == Way::none) {
        if (way_ == Way::none && !tell(false)) return 0;
        return inner_.basis->update(inner_.context, out, written, room, in, size);
    }
    if (size == 0) {
        *written = 0;
        return 1;
    }
    if (!out) return add_aad(written, in, size);
    *written = 0;
    if (room < size) return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
    if (way_ == Way::open) {
        if (!choose(size)) return 0;
        if (way_ == Way::basis)
            return inner_.basis->update(inner_.context, out, written, room, in, size);
    }
    if (way_ == Way::vectors) {
        if (entangled(in, out, size, 0))
            return fault(PROV_R_CIPHER_OPERATION_FAILED, "the output overlaps the input");
        if (!message_.crypt(vector_key(), encrypts_, in, out, size)) {
            way_ = Way::ended;
            return fault(PROV_R_CIPHER_OPERATION_FAILED, "a message has at most 2^36 - 32 bytes");
        }
        worker_.did_here(size);
    } else if (way_ == Way::pieces) {
        const dael_status done = encrypts_
                                     ? dael_pieces_update(pieces(), in, size, out, size, nullptr)
                                     : dael_pieces_update_unverified(pieces(), in, out, size);
        if (done != DAEL_OK) {
            way_ = Way::ended;
            return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
        }
        worker_.did(size);
    } else if (way_ == Way::wide) {
        if (!thread_may_work() || !wide_->update(in, out, size)) {
            way_ = Way::ended;
            engine_failed("a wide message");
            return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
        }
        Worker::did_wide(size);
    } else {
        return at_its_end();
    }
    *written = size;
    return 1;
}

int Gcm::final(unsigned char* out, std::size_t* written, std::size_t room) noexcept {
    if (way_ == Way::open && !choose(0)) return 0;
    if (way_ == Way::basis || way_ == Way::none) {
        if (way_ == Way::none && !tell(false)) return 0;
        return inner_.basis->final(inner_.context, out, written, room);
    }
    *written = 0;
    if (way_ == Way::ended) return at_its_end();
    unsigned char tag[kTag] = {};
    bool ok = true;
    if (way_ == Way::vectors)
        message_.tag(vector_key(), tag);
    else if (way_ == Way::wide)
        ok = wide_->tag(tag);
    else
        ok = (encrypts_ ? dael_pieces_finish(pieces(), tag, kTag, nullptr)
                        : dael_pieces_tag(pieces(), tag)) == DAEL_OK;
    way_ = Way::ended;
    if (!ok) return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
    if (encrypts_) {
        std::memcpy(tag_, tag, kTag);
        tag_size_ = kTag;
        made_ = true;
        return 1;
    }
    // As OpenSSL has it, a failure is not on its queue: the result alone says so.
    const bool right = tag_size_ != 0 && CRYPTO_memcmp(tag, tag_, tag_size_) == 0;
    OPENSSL_cleanse(tag, sizeof tag);
    return right ? 1 : 0;
}

// A record of TLS 1.2 in place, with eight bytes of nonce before its data and the tag behind (RFC
// 5288 3). `written` becomes what OpenSSL says: the data's size when it has been decrypted.
int Gcm::record(unsigned char* out, std::size_t* written, const unsigned char* in,
                std::size_t size) noexcept {
    record_next_ = false;
    way_ = Way::ended;
    *written = 0;
    if (out != in || size < kExplicit + kTag || !keyed_ || !counts_)
        return fault(PROV_R_CIPHER_OPERATION_FAILED, "a record is in place, with nonce and tag");
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
    message_.aad(key, tls_aad_, kTlsAad);
    if (!message_.crypt(key, encrypts_, data, data, static_cast<std::size_t>(end - data))) return 0;
    worker_.did_here(size);
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
        return 0;
    }
    *written = static_cast<std::size_t>(end - data);
    return 1;
}

int Gcm::cipher(unsigned char* out, std::size_t* written, std::size_t room, const unsigned char* in,
                std::size_t size) noexcept {
    if (record_next_) {
        if (room < size) return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
        if (record(out, written, in, size) != 1) return 0;
        *written = size;
        return 1;
    }
    if (way_ == Way::none && !tell(false)) return 0;
    if (way_ == Way::basis || way_ == Way::none)
        return inner_.basis->cipher(inner_.context, out, written, room, in, size);
    return in ? update(out, written, room, in, size) : final(out, written, room);
}

// Of a message that the engine is amid of: handles of this context's.
bool Gcm::copy_handles(const Handles& theirs) noexcept {
    if (way_ != Way::pieces && way_ != Way::wide) return true;
    if (dael_key_duplicate(theirs.key, &worker_.key) != DAEL_OK) return false;
    if (way_ == Way::pieces) return dael_pieces_clone(theirs.pieces, &pieces()) == DAEL_OK;
    void* const room = OPENSSL_malloc(sizeof(WideGcm));
    if (room) wide_ = new (room) WideGcm(theirs.wide->copy_for(opened_engine(), worker_.key));
    return room != nullptr;
}

}  // namespace dael::provider
