// SPDX-License-Identifier: Apache-2.0
#include "support/gcm_test.hpp"

#include "modes/gcm.hpp"
#include "support/test_batch.hpp"

namespace dael::test {

void GcmTest::SetUp() {
    SubjectTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && !can(Mode::gcm, Direction::encrypt))
        GTEST_SKIP() << GetParam().name << " has no GCM";
}

Block GcmCase::start() const {
    if (iv.size() == gcm::kNonceSize) return modes::pre_counter({}, iv);
    const Bytes subkey = oracle(key, {Mode::ecb, Direction::encrypt, {}, 0}, Bytes(kBlockSize));
    return modes::pre_counter(modes::load_element(subkey.data()), iv);
}

std::string GcmCase::text() const {
    return std::to_string(8 * key.size()) + " bits, IV of " + std::to_string(iv.size()) +
           ", AAD of " + std::to_string(aad.size()) + ", " + std::to_string(plain.size()) +
           " bytes, tag of " + std::to_string(tag_size) + ", in at " + std::to_string(in_at) +
           (in_place ? ", in place" : ", out at " + std::to_string(out_at));
}

void GcmTest::check_gcm(const GcmCase& c, const Sealed& expected) {
    const auto key = Key::import(c.key);
    ASSERT_TRUE(key);
    for (const bool seal : {true, false}) {
        const auto what = c.text() + (seal ? ", sealing" : ", opening");
        const Bytes& from = seal ? c.plain : expected.ciphertext;
        const Bytes& to = seal ? expected.ciphertext : c.plain;
        const Bytes whole_tag(expected.tag.begin(),
                              expected.tag.begin() + static_cast<std::ptrdiff_t>(c.tag_size));
        Poisoned source(from, c.in_at), apart(from.size(), c.out_at), aad(c.aad, c.out_at);
        Poisoned tag = seal ? Poisoned(c.tag_size, c.in_at) : Poisoned(whole_tag, c.in_at);
        Poisoned& target = c.in_place ? source : apart;
        const Message message{source.data(), target.data(), from.size(), aad.data(),
                              c.aad.size(),  tag.data(),    c.start()};
        const auto done = subject().run(seal ? gcm::sealing(c.tag_size) : gcm::opening(c.tag_size),
                                        *key, message);
        ASSERT_TRUE(done) << what << ": " << done.error().message;
        ASSERT_EQ(difference(to, target.span()), "") << what;
        ASSERT_EQ(difference(whole_tag, tag.span()), "") << what << ", its tag";
        ASSERT_TRUE(target.intact() && tag.intact()) << what << ": wrote outside of the output";
        ASSERT_EQ(aad.bytes(), c.aad) << what << ": wrote to the AAD";
        if (!c.in_place) {
            ASSERT_EQ(source.bytes(), from) << what << ": wrote to the input";
        }
    }
}

void GcmTest::check_refused(const GcmCase& c, const Sealed& sealed, const std::string& what) {
    const auto key = Key::import(c.key);
    ASSERT_TRUE(key);
    Poisoned source(sealed.ciphertext, c.in_at), apart(sealed.ciphertext.size(), c.out_at);
    Poisoned& target = c.in_place ? source : apart;
    Bytes tag = sealed.tag;
    const Message message{source.data(), target.data(), target.size(), c.aad.data(),
                          c.aad.size(),  tag.data(),    c.start()};
    const auto done = subject().run(gcm::opening(c.tag_size), *key, message);
    ASSERT_EQ(done.code(), Code::authentication) << what << ", " << c.text();
    ASSERT_FALSE(leaks(c.plain, target.span())) << what << ", " << c.text() << ": plaintext left";
    ASSERT_TRUE(target.intact()) << what << ", " << c.text();
    if (c.in_place) {
        ASSERT_EQ(difference(sealed.ciphertext, target.span()), "")
            << what << ", " << c.text() << ": the ciphertext is gone";
    }
}

}  // namespace dael::test
