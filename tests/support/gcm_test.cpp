// SPDX-License-Identifier: Apache-2.0
#include "support/gcm_test.hpp"

#include <openssl/evp.h>

#include <memory>
#include <stdexcept>

#include "support/oracle.hpp"

namespace dael::test {
namespace {

void require(int result, const char* call) {
    if (result != 1) throw std::runtime_error(std::string("the oracle's ") + call + " failed");
}

// Whether 8 bytes of `plain` in a row stand anywhere in `out`.
bool leaks(std::span<const std::uint8_t> plain, std::span<const std::uint8_t> out) {
    constexpr std::size_t kRun = 8;
    if (plain.size() < kRun) return false;
    for (std::size_t at = 0; at + kRun <= plain.size(); at += kRun)
        if (!std::ranges::search(out, plain.subspan(at, kRun)).empty()) return true;
    return false;
}

}  // namespace

Sealed gcm_oracle(std::span<const std::uint8_t> key, std::span<const std::uint8_t> iv,
                  std::span<const std::uint8_t> aad, std::span<const std::uint8_t> in) {
    const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context(EVP_CIPHER_CTX_new(),
                                                                             EVP_CIPHER_CTX_free);
    const EVP_CIPHER* cipher = key.size() == 16   ? EVP_aes_128_gcm()
                               : key.size() == 24 ? EVP_aes_192_gcm()
                                                  : EVP_aes_256_gcm();
    require(EVP_EncryptInit_ex(context.get(), cipher, nullptr, nullptr, nullptr), "init");
    require(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv.size()),
                                nullptr),
            "IV size");
    require(EVP_EncryptInit_ex(context.get(), nullptr, nullptr, key.data(), iv.data()), "key");
    Sealed sealed{Bytes(in.size()), Bytes(kTagSize)};
    int written = 0;
    if (!aad.empty())
        require(EVP_EncryptUpdate(context.get(), nullptr, &written, aad.data(),
                                  static_cast<int>(aad.size())),
                "AAD");
    if (!in.empty())
        require(EVP_EncryptUpdate(context.get(), sealed.ciphertext.data(), &written, in.data(),
                                  static_cast<int>(in.size())),
                "update");
    Block unused;
    require(EVP_EncryptFinal_ex(context.get(), unused.data(), &written), "final");
    require(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize, sealed.tag.data()),
            "tag");
    return sealed;
}

Block gcm_subkey(std::span<const std::uint8_t> key) {
    const Bytes subkey = oracle(key, {Mode::ecb, Direction::encrypt, {}, 0}, Bytes(kBlockSize));
    Block block{};
    std::ranges::copy(subkey, block.begin());
    return block;
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
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        const bool seal = direction == Direction::encrypt;
        const auto what = c.text() + (seal ? ", sealing" : ", opening");
        const Bytes& from = seal ? c.plain : expected.ciphertext;
        const Bytes& to = seal ? expected.ciphertext : c.plain;
        const Bytes whole_tag(expected.tag.begin(),
                              expected.tag.begin() + static_cast<std::ptrdiff_t>(c.tag_size));
        Poisoned source(from, c.in_at), apart(from.size(), c.out_at), aad(c.aad, c.out_at);
        Poisoned tag = seal ? Poisoned(c.tag_size, c.in_at) : Poisoned(whole_tag, c.in_at);
        Poisoned& target = c.in_place ? source : apart;
        const core::GcmSegment message{
            source.data(), target.data(), from.size(), aad.data(), c.aad.size(),
            c.iv.data(),   c.iv.size(),   tag.data(),  c.tag_size, 0};
        Code result = Code::internal;
        const auto done = subject().gcm(direction, std::span(&*key, 1), std::span(&message, 1),
                                        std::span(&result, 1));
        ASSERT_TRUE(done) << what << ": " << done.error().message;
        ASSERT_EQ(result, Code::ok) << what;
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
    const core::GcmSegment message{
        source.data(), target.data(), target.size(), c.aad.data(), c.aad.size(),
        c.iv.data(),   c.iv.size(),   tag.data(),    c.tag_size,   0};
    Code result = Code::internal;
    const auto done = subject().gcm(Direction::decrypt, std::span(&*key, 1), std::span(&message, 1),
                                    std::span(&result, 1));
    ASSERT_TRUE(done) << what << ", " << c.text() << ": " << done.error().message;
    ASSERT_EQ(result, Code::authentication) << what << ", " << c.text();
    ASSERT_FALSE(leaks(c.plain, target.span())) << what << ", " << c.text() << ": plaintext left";
    ASSERT_TRUE(target.intact()) << what << ", " << c.text();
    if (c.in_place) {
        ASSERT_EQ(difference(sealed.ciphertext, target.span()), "")
            << what << ", " << c.text() << ": the ciphertext is gone";
    }
}

}  // namespace dael::test
