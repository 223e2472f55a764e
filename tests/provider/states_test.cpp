// SPDX-License-Identifier: Apache-2.0
// Calls in an order that few programs take, each of which once left a state behind that was not the
// message's any more. Small ones by the vector units, large ones by the engine: the same calls on
// both sides give the same results, sizes and bytes.
#include <functional>

#include "evp.hpp"

namespace {

using namespace dael::test;

// One side's context, and what came of every call.
struct Steps {
    Context context_ = context();
    Cipher cipher;
    Bytes said;  // results, sizes and bytes
    Numbers numbers{42};

    Steps(const Side& side, const char* name) : cipher(fetch(side, name)) {}
    EVP_CIPHER_CTX* x() { return context_.get(); }
    void say(int result) {
        for (int i = 0; i < 32; i += 8) said.push_back(static_cast<std::uint8_t>(result >> i));
    }
    void init(const Bytes* key, const Bytes* iv, int encrypts) {
        say(EVP_CipherInit_ex2(x(), cipher.get(), key ? key->data() : nullptr,
                               iv ? iv->data() : nullptr, encrypts, nullptr));
    }
    void again(const Bytes* key, const Bytes* iv, int encrypts) {
        say(EVP_CipherInit_ex2(x(), nullptr, key ? key->data() : nullptr, iv ? iv->data() : nullptr,
                               encrypts, nullptr));
    }
    void pad(int padding) { say(EVP_CIPHER_CTX_set_padding(x(), padding)); }
    void update(std::size_t size, bool in_place = false) {
        const Bytes in = numbers.bytes(size);
        Bytes out = in_place ? in : Bytes(size);
        out.resize(size + 32);
        int made = -1;
        const int result = EVP_CipherUpdate(
            x(), out.data(), &made, in_place ? out.data() : in.data(), static_cast<int>(size));
        say(result);
        if (result != 1) return;
        say(made);
        said.insert(said.end(), out.begin(), out.begin() + made);
    }
    void end() {
        Bytes out(32);
        int made = -1;
        const int result = EVP_CipherFinal_ex(x(), out.data(), &made);
        say(result);
        if (result != 1) return;
        say(made);
        said.insert(said.end(), out.begin(), out.begin() + made);
    }
    // What nobody answers but the default provider.
    void ask() { say(EVP_CIPHER_CTX_get_tag_length(x())); }
    int set(const char* name) {
        std::size_t value = 10;
        OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(name, &value),
                               OSSL_PARAM_construct_end()};
        return EVP_CIPHER_CTX_set_params(x(), params);
    }
};

const Bytes kA(32, 'A'), kB(32, 'B'), kIv(16, 9);

void same(const char* name, const std::function<void(Steps&)>& steps) {
    SCOPED_TRACE(name);
    Steps a(theirs(), name), b(ours(), name);
    steps(a);
    steps(b);
    EXPECT_TRUE(a.said == b.said);
    ERR_clear_error();
}

TEST(States, ABlocksKeystreamGoesWithItsBlock) {
    for (const char* name : {"AES-256-CTR", "AES-256-CFB"})
        for (const int encrypts : {1, 0})
            for (const int between : {0, 1, 2})
                same(name, [&](Steps& s) {
                    s.init(&kA, &kIv, encrypts);
                    s.update(5);
                    s.update(3);  // now the keystream is known
                    if (between == 0) s.ask();
                    if (between == 1) s.set("no-such-parameter");
                    if (between == 2) s.say(EVP_CIPHER_CTX_get_num(s.x()));
                    s.update(262144 + 8);  // to a block's border
                    s.update(10);
                    s.update(20);
                });
}

TEST(States, AKeyThatIsSetAgainIsExpandedForItsDirection) {
    for (const char* name : {"AES-256-CBC", "AES-256-ECB"}) {
        same(name, [](Steps& s) {  // as Ruby's OpenSSL::Cipher, when an object is used again
            s.init(&kA, &kIv, 1);
            s.pad(0);
            s.update(64);
            s.again(nullptr, nullptr, 0);
            s.again(&kA, nullptr, -1);
            s.again(nullptr, &kIv, -1);
            s.update(64);
        });
        same(name, [](Steps& s) {  // nothing of an older key is left
            s.init(&kA, &kIv, 0);
            s.pad(0);
            s.update(32);
            s.again(&kB, &kIv, 1);
            s.update(32);
            s.again(nullptr, nullptr, 0);
            s.again(&kB, &kIv, 0);
            s.update(32);
        });
        same(name, [](Steps& s) {  // without the key, the round keys are the other direction's
            s.init(&kA, &kIv, 1);
            s.pad(0);
            s.update(64);
            s.again(nullptr, &kIv, 0);
            s.update(64);
            s.update(8192);
            s.again(nullptr, &kIv, 1);
            s.update(8192);
        });
    }
}

TEST(States, ANumberOfBytesIsNoBeginning) {
    for (const char* name : {"AES-256-CTR", "AES-256-CFB", "AES-256-CBC"})
        for (const int encrypts : {1, 0})
            same(name, [&](Steps& s) {
                s.init(&kA, &kIv, encrypts);
                s.pad(0);
                s.update(64);
                s.say(EVP_CIPHER_CTX_set_num(s.x(), 0));
                s.update(8192);
                s.update(70000);
            });
    // In CTR, keystream of an older block would be used once more.
    for (const int number : {5, 15, 16, 1 << 20}) {
        Steps s(ours(), "AES-256-CTR");
        s.init(&kA, &kIv, 1);
        s.update(32);
        EXPECT_NE(EVP_CIPHER_CTX_set_num(s.x(), number), 1) << number;
        ERR_clear_error();
    }
}

TEST(States, PaddingIsWhatItIsWhenABlockComes) {
    for (const char* name : {"AES-256-CBC", "AES-128-ECB"})
        for (const std::size_t first : {32, 64, 4096, 100})
            for (const std::size_t second : {64, 4800, 12288, 300000})
                for (const bool in_place : {false, true})
                    for (const int between : {0, 1})
                        same(name, [&](Steps& s) {
                            s.init(&kA, &kIv, 0);
                            s.update(first);
                            s.pad(0);
                            if (between == 1) s.ask();
                            s.update(second, in_place);
                            s.update(16);
                            s.pad(1);
                            s.update(96);
                            s.end();
                        });
}

TEST(States, AfterTheEndAMessageMayGoOn) {
    for (const char* name : {"AES-128-ECB", "AES-256-CBC"})
        for (const bool in_place : {false, true})
            for (const std::size_t more : {64, 4800, 300000})
                same(name, [&](Steps& s) {
                    s.init(&kA, &kIv, 1);
                    if (in_place) s.update(1);
                    s.update(33, in_place);
                    s.end();
                    s.update(more);
                    s.update(33);
                    s.end();
                });
    same("AES-256-CBC", [](Steps& s) {  // and after one whose padding was wrong
        s.init(&kA, &kIv, 0);
        s.update(48);
        s.end();
        s.update(32);
        s.end();
    });
}

// GCM. The default provider's own context makes an IV where it has none: nothing of ours may lead
// there with a message that has one.
struct Sealed {
    Bytes secret = Bytes(64), iv = Bytes(16), tag = Bytes(16);
};
// Whether it can be opened, by the default provider, under that key and IV.
bool opens(const Sealed& sealed, std::size_t size, std::size_t iv_size, const Bytes& plain) {
    auto x = context();
    Bytes out(64), tag = sealed.tag;
    int made = 0;
    EVP_DecryptInit_ex2(x.get(), fetch(theirs(), "AES-256-GCM").get(), nullptr, nullptr, nullptr);
    EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv_size), nullptr);
    EVP_DecryptInit_ex2(x.get(), nullptr, kA.data(), sealed.iv.data(), nullptr);
    EVP_DecryptUpdate(x.get(), out.data(), &made, sealed.secret.data(), static_cast<int>(size));
    EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_TAG, 16, tag.data());
    return EVP_DecryptFinal_ex(x.get(), out.data(), &made) == 1 &&
           std::equal(plain.begin(), plain.begin() + static_cast<long>(size), out.begin());
}

TEST(States, UnknownParametersLeaveAMessageAlone) {
    const Bytes plain(64, 'x');
    for (const char* name : {"no-such-parameter", OSSL_CIPHER_PARAM_NUM}) {
        Steps s(ours(), "AES-256-GCM");
        Sealed sealed;
        int made = 0;
        s.init(&kA, &kIv, 1);
        sealed.iv = kIv;
        ASSERT_EQ(EVP_EncryptUpdate(s.x(), sealed.secret.data(), &made, plain.data(), 32), 1);
        EXPECT_EQ(s.set(name), 1) << name;
        ASSERT_EQ(EVP_EncryptUpdate(s.x(), &sealed.secret[32], &made, plain.data(), 32), 1);
        ASSERT_EQ(EVP_EncryptFinal_ex(s.x(), &sealed.secret[0], &made), 1);
        EVP_CIPHER_CTX_ctrl(s.x(), EVP_CTRL_AEAD_GET_TAG, 16, sealed.tag.data());
        EXPECT_TRUE(opens(sealed, 64, 12, plain)) << name;
        // Nor do they make one of a message that has ended.
        EXPECT_EQ(s.set(name), 1);
        EXPECT_NE(EVP_EncryptUpdate(s.x(), sealed.secret.data(), &made, plain.data(), 32), 1);
    }
    ERR_clear_error();
}

TEST(States, AnotherSizeMakesAnIvVoid) {
    for (const std::size_t before : {0, 16}) {
        Steps s(ours(), "AES-256-GCM");
        s.init(&kA, &kIv, 1);
        if (before != 0) s.update(before);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(s.x(), EVP_CTRL_AEAD_SET_IVLEN, 16, nullptr), 1);
        Bytes out(64);
        int made = 0;
        EXPECT_NE(EVP_EncryptUpdate(s.x(), out.data(), &made, kA.data(), 32), 1);
        EXPECT_NE(EVP_EncryptFinal_ex(s.x(), out.data(), &made), 1);
        EXPECT_EQ(EVP_EncryptInit_ex2(s.x(), nullptr, nullptr, kIv.data(), nullptr), 1);
        EXPECT_EQ(EVP_EncryptUpdate(s.x(), out.data(), &made, kA.data(), 32), 1);
        ERR_clear_error();
    }
}

TEST(States, ACopyKeepsTheIvThatWasMade) {
    const Bytes plain(64, 'x');
    for (const std::size_t before : {0, 32}) {
        Steps s(ours(), "AES-256-GCM");
        Sealed sealed;
        int made = 0;
        s.init(&kA, nullptr, 1);
        if (before != 0) {
            ASSERT_EQ(EVP_EncryptUpdate(s.x(), sealed.secret.data(), &made, plain.data(), 32), 1);
        }
        auto copy = context();
        ASSERT_EQ(EVP_CIPHER_CTX_copy(copy.get(), s.x()), 1);
        ASSERT_EQ(EVP_EncryptUpdate(copy.get(), &sealed.secret[before], &made, plain.data(), 32),
                  1);
        ASSERT_EQ(EVP_CIPHER_CTX_get_original_iv(copy.get(), sealed.iv.data(), 12), 1);
        if (before != 0) {
            Bytes first(12);
            ASSERT_EQ(EVP_CIPHER_CTX_get_original_iv(s.x(), first.data(), 12), 1);
            EXPECT_TRUE(std::equal(first.begin(), first.end(), sealed.iv.begin()));
        }
        ASSERT_EQ(EVP_EncryptFinal_ex(copy.get(), &sealed.secret[0], &made), 1);
        EVP_CIPHER_CTX_ctrl(copy.get(), EVP_CTRL_AEAD_GET_TAG, 16, sealed.tag.data());
        EXPECT_TRUE(opens(sealed, before + 32, 12, plain));
    }
}

TEST(States, WhoBringsNoInputIsAtTheEnd) {
    for (const bool given : {false, true})
        for (const char* name : {"AES-256-GCM", "AES-128-GCM"}) {
            Bytes tags[2], out(64);
            for (int side = 0; side < 2; ++side) {
                auto x = context();
                int made = -1;
                EVP_EncryptInit_ex2(x.get(), fetch(side == 0 ? theirs() : ours(), name).get(),
                                    kA.data(), kIv.data(), nullptr);
                EVP_EncryptUpdate(x.get(), out.data(), &made, kB.data(), 20);
                EXPECT_EQ(
                    EVP_EncryptUpdate(x.get(), given ? out.data() : nullptr, &made, nullptr, 16),
                    1);
                EXPECT_EQ(made, 0);
                tags[side].resize(16);
                EXPECT_EQ(
                    EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_GET_TAG, 16, tags[side].data()), 1);
                EXPECT_NE(EVP_EncryptUpdate(x.get(), out.data(), &made, kB.data(), 20), 1);
                ERR_clear_error();
            }
            EXPECT_EQ(tags[0], tags[1]);
        }
}

// A record of TLS 1.2, then an IV of one's own: what follows is under it.
TEST(States, AfterARecordAnotherIvMayBeAskedFor) {
    Bytes said[2];
    for (int side = 0; side < 2; ++side) {
        auto x = context();
        Bytes iv(12, 3), header(13, 1), record(64, 7), next(8), out(64), tag(16);
        int made = 0;
        header[11] = 0;
        header[12] = 40;
        EVP_EncryptInit_ex2(x.get(), fetch(side == 0 ? theirs() : ours(), "AES-128-GCM").get(),
                            kA.data(), nullptr, nullptr);
        EXPECT_GT(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_GCM_SET_IV_FIXED, -1, iv.data()), 0);
        EXPECT_GT(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, header.data()), 0);
        EXPECT_EQ(EVP_Cipher(x.get(), record.data(), record.data(), 64), 64);
        EXPECT_GT(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_GCM_IV_GEN, 8, next.data()), 0);
        EXPECT_EQ(EVP_EncryptUpdate(x.get(), out.data(), &made, kA.data(), 32), 1);
        EXPECT_EQ(EVP_EncryptFinal_ex(x.get(), tag.data(), &made), 1);
        EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data());
        for (const Bytes* part : {&record, &next, &out, &tag})
            said[side].insert(said[side].end(), part->begin(), part->end());
    }
    EXPECT_TRUE(said[0] == said[1]);
    ERR_clear_error();
}

// A record that needs an IV where none came: it fails, and there is still none to be had.
TEST(States, NoIvIsMadeUpForARecordWithoutOne) {
    auto x = context();
    Bytes header(13, 1), record(64, 7), iv(16, 9);
    header[11] = 0;
    header[12] = 64;
    ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), fetch(ours(), "AES-128-GCM").get(), kA.data(), nullptr,
                                  nullptr),
              1);
    ASSERT_EQ(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_SET_IVLEN, 16, nullptr), 1);
    EXPECT_GT(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, header.data()), 0);
    EXPECT_LT(EVP_Cipher(x.get(), record.data(), record.data(), 64), 0);
    EXPECT_LE(EVP_CIPHER_CTX_get_original_iv(x.get(), iv.data(), iv.size()), 0);
    EXPECT_EQ(iv, Bytes(16, 9));
    ERR_clear_error();
}

}  // namespace
