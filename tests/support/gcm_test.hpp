// SPDX-License-Identifier: Apache-2.0
// GCM for tests: one message with an IV of any length, and a fixture that compares a subject with
// OpenSSL.
#pragma once

#include "support/oracle.hpp"
#include "support/subject.hpp"

namespace dael::test {

// One message, with what is to become of it.
struct GcmCase {
    Bytes key, iv, aad, plain;
    std::size_t tag_size = gcm::kTagSize;
    std::size_t in_at = 0, out_at = 0;  // distances from a 64-byte boundary
    bool in_place = false;

    Block start() const;  // J0, as the modes make it of the IV
    std::string text() const;
};

class GcmTest : public SubjectTest {
  protected:
    void SetUp() override;
    // Seals, opens, and is refused when one bit of anything is wrong; no byte outside is written.
    void check_gcm(const GcmCase& c) { check_gcm(c, gcm_oracle(c.key, c.iv, c.aad, c.plain)); }
    void check_gcm(const GcmCase& c, const Sealed& expected);
    // Opens what has been tampered with: nothing of the plaintext may be in the output, and in
    // place the ciphertext is still there.
    void check_refused(const GcmCase& c, const Sealed& sealed, const std::string& what);

    Random random_{88172645463325252};
};

}  // namespace dael::test
