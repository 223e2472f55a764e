// SPDX-License-Identifier: Apache-2.0
// GCM for tests: messages that own their bytes, what OpenSSL makes of them, and a fixture that
// compares a subject with it.
#pragma once

#include "support/subject.hpp"

namespace dael::test {

struct Sealed {
    Bytes ciphertext, tag;  // the whole tag
};

// OpenSSL's answer. `iv`: 1 to 128 bytes, as OpenSSL takes them.
Sealed gcm_oracle(std::span<const std::uint8_t> key, std::span<const std::uint8_t> iv,
                  std::span<const std::uint8_t> aad, std::span<const std::uint8_t> in);

// CIPH_K of a block of zeros: the hash subkey.
Block gcm_subkey(std::span<const std::uint8_t> key);

// One message, with what is to become of it.
struct GcmCase {
    Bytes key, iv, aad, plain;
    std::size_t tag_size = kTagSize;
    std::size_t in_at = 0, out_at = 0;  // distances from a 64-byte boundary
    bool in_place = false;

    std::string text() const;
};

class GcmTest : public SubjectTest {
  protected:
    // Seals, opens, and is refused when one bit of anything is wrong; no byte outside is written.
    void check_gcm(const GcmCase& c) { check_gcm(c, gcm_oracle(c.key, c.iv, c.aad, c.plain)); }
    void check_gcm(const GcmCase& c, const Sealed& expected);
    // Opens what has been tampered with: nothing of the plaintext may be in the output.
    void check_refused(const GcmCase& c, const Sealed& sealed, const std::string& what);

    Random random_{88172645463325252};
};

}  // namespace dael::test
