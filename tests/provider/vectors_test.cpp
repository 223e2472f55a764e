// SPDX-License-Identifier: Apache-2.0
// NIST's response files through EVP and the provider: ECB, CBC, CFB-128, OFB and CTR each as one
// update and byte by byte, GCM with its tags and its forgeries.
#include <filesystem>

#include "evp.hpp"
#include "support/vectors.hpp"

namespace {

using namespace dael::test;
namespace fs = std::filesystem;

fs::path vectors_of_nist() {
    const char* const given = std::getenv("DAELSTROM_CAVP_DIR");
    return given ? given : DAEL_CAVP_DIR;
}

struct Files {
    dael::Mode mode;
    const char* folder;
    const char* prefix;
    const char* name;
};
constexpr Files kFiles[] = {{dael::Mode::ecb, "ECB", "ECB", "ECB"},
                            {dael::Mode::cbc, "CBC", "CBC", "CBC"},
                            {dael::Mode::cfb, "CFB", "CFB128", "CFB"},
                            {dael::Mode::ofb, "OFB", "OFB", "OFB"},
                            {dael::Mode::ctr, "CTR", "aes-", "CTR"}};

TEST(ProviderVectors, Sp80038aByNist) {
    std::size_t count = 0;
    for (const Files& files : kFiles)
        for (const auto& entry : fs::directory_iterator(vectors_of_nist() / files.folder)) {
            if (!entry.path().filename().string().starts_with(files.prefix)) continue;
            for (const Vector& v : load_rsp(entry.path(), files.mode)) {
                const std::string name =
                    "AES-" + std::to_string(v.key.size() * 8) + "-" + files.name;
                const auto cipher = fetch(ours(), name);
                ASSERT_TRUE(cipher) << name;
                const bool encrypts = *v.direction == dael::Direction::encrypt;
                const Bytes& in = encrypts ? v.plaintext : v.ciphertext;
                for (const std::size_t step : {in.size(), std::size_t{1}}) {
                    auto x = context();
                    ASSERT_EQ(
                        EVP_CipherInit_ex2(x.get(), cipher.get(), v.key.data(),
                                           v.iv.empty() ? nullptr : v.iv.data(), encrypts, nullptr),
                        1);
                    EVP_CIPHER_CTX_set_padding(x.get(), 0);
                    Bytes out(in.size() + 32);
                    int made = 0;
                    std::size_t at = 0;
                    for (std::size_t i = 0; i < in.size(); i += step, at += std::size_t(made))
                        ASSERT_EQ(EVP_CipherUpdate(x.get(), &out[at], &made, &in[i], int(step)), 1);
                    ASSERT_EQ(EVP_CipherFinal_ex(x.get(), &out[at], &made), 1);
                    out.resize(at);
                    ASSERT_EQ(out, encrypts ? v.ciphertext : v.plaintext) << v.name;
                }
                ++count;
            }
        }
    EXPECT_GT(count, 4000u);
}

TEST(ProviderVectors, GcmByNist) {
    std::size_t count = 0, refused = 0;
    for (const auto& entry : fs::directory_iterator(vectors_of_nist() / "GCM")) {
        if (entry.path().extension() != ".rsp") continue;
        for (const GcmVector& v : load_gcm_rsp(entry.path())) {
            const auto cipher = fetch(ours(), "AES-" + std::to_string(v.key.size() * 8) + "-GCM");
            Bytes out(v.ciphertext.size() + 16), tag = v.tag;
            auto x = context();
            int made = 0;
            ASSERT_EQ(EVP_DecryptInit_ex2(x.get(), cipher.get(), nullptr, nullptr, nullptr), 1);
            ASSERT_EQ(
                EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_IVLEN, int(v.iv.size()), nullptr),
                1);
            ASSERT_EQ(
                EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_TAG, int(tag.size()), tag.data()),
                1);
            ASSERT_EQ(EVP_DecryptInit_ex2(x.get(), nullptr, v.key.data(), v.iv.data(), nullptr), 1);
            if (!v.aad.empty()) {
                ASSERT_EQ(
                    EVP_DecryptUpdate(x.get(), nullptr, &made, v.aad.data(), int(v.aad.size())), 1);
            }
            if (!v.ciphertext.empty()) {
                ASSERT_EQ(EVP_DecryptUpdate(x.get(), out.data(), &made, v.ciphertext.data(),
                                            int(v.ciphertext.size())),
                          1);
            }
            const bool ok = EVP_DecryptFinal_ex(x.get(), out.data(), &made) == 1;
            ASSERT_EQ(ok, !v.refused) << v.name;
            out.resize(v.ciphertext.size());
            if (ok) {
                ASSERT_EQ(out, v.plaintext) << v.name;
            }
            ++count;
            refused += v.refused;
        }
    }
    EXPECT_GT(count, 5000u);
    EXPECT_GT(refused, 1000u);
    ERR_clear_error();
}

}  // namespace
