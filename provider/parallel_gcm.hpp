// SPDX-License-Identifier: Apache-2.0
// One GCM message on many cores, or a GPU. The engine takes a message of GCM whole; so this one is
// cut into chunks, each a message of its own that starts from a later counter block, and of their
// tags is made the one tag of them all.
//
// GHASH of a chunk's blocks is a polynomial in H (NIST SP 800-38D 6.4), so that of A and then B is
// X(A) * H^(blocks of B) + X(B). A tag is (X + L) * H + E(J0), L the block of lengths. Kept is
// Y = X * H, which a tag gives without a division: Y = tag + E(J0) + L * H.
//
// One thread at a time. Secrets are wiped when it goes. Key, engine and IV belong to the caller.
#pragma once

#include <daelstrom/daelstrom.h>

#include <cstddef>
#include <cstdint>

namespace dael::provider {

// An element of GF(2^128), in GCM's order of bits: the first bit of the first byte is x^0.
struct Element {
    std::uint64_t high = 0, low = 0;
};
// In a time that depends on neither.
Element multiply(Element a, Element b) noexcept;
Element power(Element a, std::uint64_t exponent) noexcept;  // the exponent is no secret
Element inverse(Element a) noexcept;

class ParallelGcm {
  public:
    // False where the engine fails (dael_last_error()). `nonce` is GCM's of 12 bytes.
    bool begin(dael_engine* engine, const dael_key* key, bool encrypts,
               const unsigned char* nonce) noexcept;
    ~ParallelGcm();

    void aad(const unsigned char* bytes, std::size_t size) noexcept;  // all of it, at the beginning
    // Decryption yields what nobody has verified. In place or apart. False where the engine fails
    // or the message is too long; nothing can be had from it after that.
    bool update(const unsigned char* in, unsigned char* out, std::size_t size) noexcept;
    bool tag(unsigned char tag[16]) noexcept;
    // After begin(): the message was encrypted up to here by somebody else, who had ended it with
    // this tag. `begun`: the ciphertext behind its last whole block.
    void adopt(std::uint64_t aad_size, std::uint64_t size, const unsigned char* begun,
               const unsigned char tag[16]) noexcept;

    // For another context: the same message, with handles of that context's.
    ParallelGcm copy_for(dael_engine* engine, const dael_key* key) const noexcept;

  private:
    bool chunks(const unsigned char* in, unsigned char* out, std::size_t size) noexcept;
    bool cipher(const unsigned char* in, unsigned char* out, std::size_t size,
                unsigned skip) noexcept;
    void absorb(const unsigned char* block, std::size_t size) noexcept;

    dael_engine* engine_ = nullptr;
    const dael_key* key_ = nullptr;
    bool encrypts_ = true;
    unsigned char j0_[16] = {};
    Element h_, y_, mask_;  // E(0), X * H, E(J0)
    std::uint64_t aad_size_ = 0, size_ = 0;
    unsigned char begun_[16] = {};  // ciphertext of a block that is not full
};

}  // namespace dael::provider
