// SPDX-License-Identifier: Apache-2.0
// Keys by reference (EVP_SKEY, OpenSSL 3.5): made, kept and used through the provider as through
// the default one. Before 3.5 there are none, and the ciphers that the provider passes on are left.
#include <openssl/core.h>
#include <openssl/core_dispatch.h>

#include "evp.hpp"
#include "functions.hpp"

namespace {

using namespace dael::test;

constexpr const char* kCiphers[] = {"AES-128-ECB",  "AES-256-CBC",     "AES-192-CFB", "AES-256-OFB",
                                    "AES-128-CTR",  "AES-256-GCM",     "AES-128-CCM", "AES-256-OCB",
                                    "AES-128-CFB8", "AES-256-WRAP-PAD"};

#ifdef OSSL_FUNC_SKEYMGMT_IMPORT
Bytes by_reference(const Side& side, const std::string& name, const Bytes& key, const Bytes& in) {
    const auto cipher = fetch(side, name);
    if (!cipher) return {};
    EVP_SKEY* const held = EVP_SKEY_import_raw_key(
        side.library, "AES", const_cast<std::uint8_t*>(key.data()), key.size(), side.properties);
    EXPECT_NE(held, nullptr);
    const Bytes iv(16, 9);
    Bytes out(in.size() + 32);
    auto x = context();
    int made = 0, last = 0;
    // CCM takes what is not the length that it tells of.
    const bool ccm = EVP_CIPHER_get_mode(cipher.get()) == EVP_CIPH_CCM_MODE;
    const auto iv_size = ccm ? 7 : static_cast<std::size_t>(EVP_CIPHER_get_iv_length(cipher.get()));
    EXPECT_EQ(EVP_CipherInit_SKEY(x.get(), cipher.get(), held, iv_size ? iv.data() : nullptr,
                                  iv_size, 1, nullptr),
              1)
        << name;
    if (ccm) {
        EXPECT_EQ(EVP_EncryptUpdate(x.get(), nullptr, &made, nullptr, int(in.size())), 1);
    }
    EXPECT_EQ(EVP_EncryptUpdate(x.get(), out.data(), &made, in.data(), int(in.size())), 1) << name;
    EXPECT_EQ(EVP_EncryptFinal_ex(x.get(), out.data() + made, &last), 1) << name;
    EVP_SKEY_free(held);
    ERR_print_errors_fp(stderr);
    out.resize(static_cast<std::size_t>(made + last));
    return out;
}

TEST(KeysByReference, GoWithEveryCipherOfAes) {
    Numbers numbers(5);
    for (const char* name : kCiphers)
        for (const std::size_t size : {64u, 4096u, 80000u}) {
            if (std::string(name).find("WRAP") != std::string::npos && size > 4096) continue;
            SCOPED_TRACE(std::string(name) + " " + std::to_string(size));
            const Bytes key = numbers.bytes(static_cast<std::size_t>(std::atoi(name + 4)) / 8);
            const Bytes in = numbers.bytes(size);
            const Bytes right = by_reference(theirs(), name, key, in);
            ASSERT_GE(right.size(), size);
            EXPECT_TRUE(by_reference(ours(), name, key, in) == right);
        }
}

TEST(KeysByReference, TellTheirBytesAndStayWithTheirProvider) {
    const Bytes key(32, 7);
    EVP_SKEY* const held =
        EVP_SKEY_import_raw_key(ours().library, "AES", const_cast<std::uint8_t*>(key.data()),
                                key.size(), ours().properties);
    ASSERT_NE(held, nullptr);
    EXPECT_STREQ(EVP_SKEY_get0_provider_name(held), "daelstrom");
    const std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
    ASSERT_EQ(EVP_SKEY_get0_raw_key(held, &bytes, &size), 1);
    EXPECT_EQ(Bytes(bytes, bytes + size), key);
    // As with any provider's: a cipher of another takes it only after it has been moved there.
    EVP_SKEY* const moved = EVP_SKEY_to_provider(held, ours().library, ours().standard, nullptr);
    ASSERT_NE(moved, nullptr);
    EXPECT_STREQ(EVP_SKEY_get0_provider_name(moved), "default");
    EVP_SKEY_free(moved);
    EVP_SKEY_free(held);
    ERR_clear_error();
}
#endif

Bytes sealed_by_default(const Bytes& key, const Bytes& iv, const Bytes& in) {
    auto x = context();
    Bytes out(in.size());
    int made = 0;
    const auto cipher = fetch(theirs(), "AES-256-GCM");
    EXPECT_EQ(EVP_EncryptInit_ex2(x.get(), cipher.get(), nullptr, nullptr, nullptr), 1);
    EXPECT_EQ(
        EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv.size()), nullptr),
        1);
    EXPECT_EQ(EVP_EncryptInit_ex2(x.get(), nullptr, key.data(), iv.data(), nullptr), 1);
    EXPECT_EQ(EVP_EncryptUpdate(x.get(), out.data(), &made, in.data(), static_cast<int>(in.size())),
              1);
    return out;
}

// OpenSSL 3.5's EVP_CipherInit_SKEY() tells an IV's size by itself: the provider's table says what
// comes of it with any version.
TEST(IvsOfOtherSizes, ComeWithTheInitialisationAlone) {
    Numbers numbers(7);
    const Functions table(ours().daelstrom, "AES-256-GCM");
    void* const x = table.find<OSSL_FUNC_cipher_newctx_fn>(OSSL_FUNC_CIPHER_NEWCTX)(
        OSSL_PROVIDER_get0_provider_ctx(ours().daelstrom));
    ASSERT_NE(x, nullptr);
    const Bytes key = numbers.bytes(32), in = numbers.bytes(5000);
    for (const std::size_t size : {16u, 12u, 8u, 12u, 64u}) {
        const Bytes iv = numbers.bytes(size);
        // The key once; from then on each IV by itself.
        ASSERT_EQ(table.find<OSSL_FUNC_cipher_encrypt_init_fn>(OSSL_FUNC_CIPHER_ENCRYPT_INIT)(
                      x, key.data(), key.size(), iv.data(), size, nullptr),
                  1);
        std::size_t told = 0, made = 0;
        OSSL_PARAM asked[] = {OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_IVLEN, &told),
                              OSSL_PARAM_construct_end()};
        ASSERT_EQ(table.find<OSSL_FUNC_cipher_get_ctx_params_fn>(OSSL_FUNC_CIPHER_GET_CTX_PARAMS)(
                      x, asked),
                  1);
        EXPECT_EQ(told, size);
        Bytes out(in.size());
        ASSERT_EQ(table.find<OSSL_FUNC_cipher_update_fn>(OSSL_FUNC_CIPHER_UPDATE)(
                      x, out.data(), &made, out.size(), in.data(), in.size()),
                  1);
        EXPECT_TRUE(out == sealed_by_default(key, iv, in)) << size;
    }
    table.find<OSSL_FUNC_cipher_freectx_fn>(OSSL_FUNC_CIPHER_FREECTX)(x);
}

#ifdef OSSL_FUNC_SKEYMGMT_IMPORT
TEST(IvsOfOtherSizes, ComeWithKeysByReference) {
    Numbers numbers(8);
    const Bytes key = numbers.bytes(32), in = numbers.bytes(5000);
    EVP_SKEY* const held =
        EVP_SKEY_import_raw_key(ours().library, "AES", const_cast<std::uint8_t*>(key.data()),
                                key.size(), ours().properties);
    ASSERT_NE(held, nullptr);
    auto x = context();
    const auto cipher = fetch(ours(), "AES-256-GCM");
    for (const std::size_t size : {16u, 12u, 64u}) {
        const Bytes iv = numbers.bytes(size);
        ASSERT_EQ(
            EVP_CipherInit_SKEY(x.get(), cipher.get(), held, iv.data(), iv.size(), 1, nullptr), 1);
        EXPECT_EQ(EVP_CIPHER_CTX_get_iv_length(x.get()), static_cast<int>(size));
        // The same size again.
        const Bytes next = numbers.bytes(size);
        ASSERT_EQ(EVP_CipherInit_ex2(x.get(), nullptr, nullptr, next.data(), 1, nullptr), 1);
        Bytes out(in.size());
        int made = 0;
        ASSERT_EQ(
            EVP_EncryptUpdate(x.get(), out.data(), &made, in.data(), static_cast<int>(in.size())),
            1);
        EXPECT_TRUE(out == sealed_by_default(key, next, in)) << size;
    }
    EVP_SKEY_free(held);
}
#endif

TEST(PassedOn, CiphersAreTheDefaultProviders) {
    Numbers numbers(6);
    for (const char* name : kCiphers) {
        const Bytes key = numbers.bytes(32), in = numbers.bytes(4096);
        const Bytes iv(16, 9);
        Bytes results[2];
        for (int i = 0; i < 2; ++i) {
            const auto cipher = fetch(i == 0 ? theirs() : ours(), name);
            ASSERT_TRUE(cipher) << name;
            results[i].resize(in.size() + 32);
            auto x = context();
            int made = 0;
            ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), cipher.get(), key.data(), iv.data(), nullptr),
                      1);
            if (EVP_CIPHER_get_mode(cipher.get()) == EVP_CIPH_CCM_MODE) {
                ASSERT_EQ(EVP_EncryptUpdate(x.get(), nullptr, &made, nullptr, int(in.size())), 1);
            }
            ASSERT_EQ(
                EVP_EncryptUpdate(x.get(), results[i].data(), &made, in.data(), int(in.size())), 1);
        }
        EXPECT_TRUE(results[0] == results[1]) << name;
    }
}

}  // namespace
