// SPDX-License-Identifier: Apache-2.0
// GCM (NIST SP 800-38D) on the calling thread by AVX-512 with VAES and VPCLMULQDQ, for nonces of 12
// bytes. As vector_aes.hpp: only where vector_units(), nothing allocated, constant time. What is
// made of a key is made when a message needs it, so that the first one under a key comes soon.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vector_aes.hpp"

namespace dael::provider {

// A secret, which its owner wipes. Not initialised until set().
class VectorGcmKey {
  public:
    void set(const unsigned char* key, std::size_t size) noexcept;

  private:
    friend class VectorGcm;
    static constexpr int kPowers = 16;  // of the hash subkey: a set of four vectors
    void make(int powers) noexcept;

    Schedule aes_;
    int made_;
    // H^16, ..., H^1, and a vector of zeros: a set's last vector may be all but empty, and is
    // multiplied whole.
    unsigned char powers_[(kPowers + 4) * kBlock];
};

// One message. It may be copied: that is the same message once more. A secret while a block is
// begun.
class VectorGcm {
  public:
    void begin(const unsigned char* nonce) noexcept;
    // In any pieces, all of it before the data.
    void aad(VectorGcmKey& key, const unsigned char* bytes, std::size_t size) noexcept;
    // False: more than a message may have (2^36 - 32 bytes), and nothing was done. Decryption
    // yields what nobody has verified.
    bool crypt(VectorGcmKey& key, bool encrypts, const unsigned char* in, unsigned char* out,
               std::size_t size) noexcept;
    void tag(VectorGcmKey& key, unsigned char* tag) noexcept;
    bool has_data() const noexcept { return size_ != 0; }

  private:
    unsigned char nonce_[12];
    std::uint32_t counter_;       // of the block that is begun, or the next
    unsigned char y_[kBlock];     // hashed so far, as the vectors have it
    unsigned char part_[kBlock];  // AAD or ciphertext that is not a block yet, and zeros
    unsigned char mask_[kBlock];  // the begun block's keystream, once it is needed
    std::uint64_t aad_size_, size_;
    unsigned part_size_;
    bool mask_known_;
};

}  // namespace dael::provider
