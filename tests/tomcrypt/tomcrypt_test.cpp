// SPDX-License-Identifier: Apache-2.0
// daelstrom below LibTomCrypt: LibTomCrypt's own self-tests pass, and every hook gives what plain
// LibTomCrypt and OpenSSL give.
#include <daelstrom_tomcrypt.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/child.hpp"
#include "tomcrypt/plain.hpp"

namespace {

using Data = std::vector<unsigned char>;

struct TomCrypt : testing::Test {
    void SetUp() override {
        ours = daelstrom_tomcrypt_register();
        ASSERT_GE(ours, 0);
        ASSERT_GE(plain_aes(), 0);
        ASSERT_NE(ours, plain_aes());
    }
    int ours = -1;
    std::mt19937_64 random{7};

    Data bytes(std::size_t size) {
        Data data(size);
        for (auto& byte : data) byte = static_cast<unsigned char>(random());
        return data;
    }
};

// What a piece of work did to its output; everything around it has to stay.
constexpr unsigned char kPoison = 0xa5;
constexpr std::size_t kAround = 32;

// Runs work(in, out) apart, in place, and unaligned; all three must agree.
template <class Work>
Data run(const Data& in, Work work) {
    Data first;
    for (const int manner : {0, 1, 2}) {
        Data source(in.size() + 3), target(in.size() + 2 * kAround + 3, kPoison);
        unsigned char* const out = target.data() + kAround + (manner == 2 ? 3 : 0);
        const unsigned char* from = source.data() + (manner == 2 ? 1 : 0);
        std::copy(in.begin(), in.end(), source.begin() + (manner == 2 ? 1 : 0));
        if (manner == 1) {
            std::copy(in.begin(), in.end(), out);
            from = out;
        }
        work(from, out);
        const Data result(out, out + in.size());
        for (std::size_t i = 0; i < kAround; ++i) {
            EXPECT_EQ(out[-1 - static_cast<std::ptrdiff_t>(i)], kPoison);
            EXPECT_EQ(out[in.size() + i], kPoison);
        }
        if (manner == 0)
            first = result;
        else
            EXPECT_TRUE(result == first) << "manner " << manner << ", " << in.size() << " bytes";
    }
    return first;
}

// One message through OpenSSL's cipher of that name.
Data openssl(const std::string& mode, const Data& key, const Data& iv, const Data& in,
             bool encrypts) {
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
        EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    const std::size_t bits = key.size() * (mode == "XTS" ? 4 : 8);
    const std::string name = "AES-" + std::to_string(bits) + "-" + mode;
    Data out(in.size() + 16);
    int some = 0;
    EXPECT_EQ(EVP_CipherInit_ex(context.get(), EVP_get_cipherbyname(name.c_str()), nullptr,
                                key.data(), iv.data(), encrypts),
              1)
        << name;
    EVP_CIPHER_CTX_set_padding(context.get(), 0);
    EXPECT_EQ(
        EVP_CipherUpdate(context.get(), out.data(), &some, in.data(), static_cast<int>(in.size())),
        1);
    out.resize(in.size());
    return out;
}

constexpr std::array kKeySizes{16, 24, 32};
// Blocks: below what is handed to daelstrom, around it, and across its chunks.
constexpr std::array kBlocks{1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000};

// The first of all, since the first call of a process opens the engine and makes the table: a child
// is not to find that half done.
TEST_F(TomCrypt, ForksWhileAnotherThreadIsAmidItsFirstCall) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a child under ThreadSanitizer may start no threads";
#endif
    const Data key = bytes(32), iv = bytes(12), in = bytes(5000);
    const auto sealed = [&] {
        Data plain = in, out(in.size());
        unsigned char tag[16];
        unsigned long length = 16;
        return gcm_memory(ours, key.data(), 32, iv.data(), 12, nullptr, 0, plain.data(),
                          plain.size(), out.data(), tag, &length, GCM_ENCRYPT) == CRYPT_OK
                   ? out
                   : Data();
    };
    const Data right = openssl("GCM", key, iv, in, true);
    std::atomic<bool> begins{false}, ends{false};
    std::thread thread([&] {
        begins = true;
        while (!ends) EXPECT_EQ(sealed(), right);
    });
    while (!begins) std::this_thread::yield();
    for (int child = 0; child < 10; ++child)
        dael::test::expect_in_a_child([&] { return sealed() == right; });
    ends = true;
    thread.join();
}

TEST_F(TomCrypt, PassesLibTomCryptsOwnTests) {
    const auto before = daelstrom_tomcrypt_served();
    EXPECT_EQ(cipher_descriptor[ours].test(), CRYPT_OK);
    EXPECT_GT(daelstrom_tomcrypt_served(), before);
    const std::pair<const char*, int (*)()> tests[] = {
        {"ctr", ctr_test},   {"lrw", lrw_test},   {"f8", f8_test_mode}, {"gcm", gcm_test},
        {"ccm", ccm_test},   {"eax", eax_test},   {"ocb", ocb_test},    {"ocb3", ocb3_test},
        {"omac", omac_test}, {"pmac", pmac_test}, {"xcbc", xcbc_test}};
    for (const auto& [name, test] : tests) EXPECT_EQ(test(), CRYPT_OK) << name;
    // Its hooks are its own at the end: ours again.
    EXPECT_EQ(xts_test(), CRYPT_OK);
    EXPECT_EQ(daelstrom_tomcrypt_register(), ours);
    EXPECT_EQ(cipher_descriptor[ours].accel_xts_encrypt, daelstrom_aes_desc.accel_xts_encrypt);
}

TEST_F(TomCrypt, EcbIsOpenSslsAndServedByDaelstrom) {
    for (const int size : kKeySizes) {
        const Data key = bytes(static_cast<std::size_t>(size));
        for (const int blocks : kBlocks) {
            const Data in = bytes(static_cast<std::size_t>(blocks) * 16);
            symmetric_ECB ecb;
            ASSERT_EQ(ecb_start(ours, key.data(), size, 0, &ecb), CRYPT_OK);
            const auto before = daelstrom_tomcrypt_served();
            const Data out = run(in, [&](const unsigned char* from, unsigned char* to) {
                EXPECT_EQ(ecb_encrypt(from, to, in.size(), &ecb), CRYPT_OK);
            });
            EXPECT_EQ(out, openssl("ECB", key, {}, in, true));
            EXPECT_EQ(run(out,
                          [&](const unsigned char* from, unsigned char* to) {
                              EXPECT_EQ(ecb_decrypt(from, to, in.size(), &ecb), CRYPT_OK);
                          }),
                      in);
            const auto served = daelstrom_tomcrypt_served() - before;
            EXPECT_EQ(served, blocks >= 32 ? 6u : blocks < 4 ? 0u : served);
            EXPECT_EQ(ecb_done(&ecb), CRYPT_OK);
        }
    }
}

TEST_F(TomCrypt, CbcIsOpenSslsAndGoesOnAcrossCalls) {
    for (const int size : kKeySizes) {
        const Data key = bytes(static_cast<std::size_t>(size)), iv = bytes(16);
        for (const int blocks : kBlocks) {
            const Data in = bytes(static_cast<std::size_t>(blocks) * 16);
            const auto work = [&](auto call) {
                return [&, call](const unsigned char* from, unsigned char* to) {
                    symmetric_CBC cbc;
                    EXPECT_EQ(cbc_start(ours, iv.data(), key.data(), size, 0, &cbc), CRYPT_OK);
                    // In two calls, cut anywhere.
                    const std::size_t cut = random() % (static_cast<std::size_t>(blocks) + 1) * 16;
                    EXPECT_EQ(call(from, to, cut, &cbc), CRYPT_OK);
                    EXPECT_EQ(call(from + cut, to + cut, in.size() - cut, &cbc), CRYPT_OK);
                    EXPECT_EQ(cbc_done(&cbc), CRYPT_OK);
                };
            };
            const Data out = run(in, work(cbc_encrypt));
            EXPECT_EQ(out, openssl("CBC", key, iv, in, true));
            EXPECT_EQ(run(out, work(cbc_decrypt)), in);
        }
    }
}

// Both endiannesses, every width, and starts whose carries leave the counter's lowest bytes, in
// streams that are cut in pieces of any size.
TEST_F(TomCrypt, CtrIsLibTomCryptsForEveryCounterAndEveryCut) {
    for (int round = 0; round < 400; ++round) {
        const int size = kKeySizes[random() % 3];
        const Data key = bytes(static_cast<std::size_t>(size));
        Data iv = bytes(16);
        const bool big = random() % 2;
        const int width = static_cast<int>(random() % 17);  // 0 stands for 16
        // A few counts away from a carry out of some of the lowest bytes.
        const int full = static_cast<int>(random() % 17);
        for (int i = 0; i < full; ++i) iv[static_cast<std::size_t>(big ? 15 - i : i)] = 0xff;
        iv[big ? 15 : 0] = static_cast<unsigned char>(0xff - random() % 64);
        const int mode = (big ? CTR_COUNTER_BIG_ENDIAN : CTR_COUNTER_LITTLE_ENDIAN) | width |
                         (random() % 4 == 0 ? LTC_CTR_RFC3686 : 0);
        const Data in = bytes(random() % 9000);
        symmetric_CTR ctr[2];
        Data out[2] = {Data(in.size()), Data(in.size())};
        for (const int who : {0, 1}) {
            const int cipher = who == 0 ? ours : plain_aes();
            ASSERT_EQ(ctr_start(cipher, iv.data(), key.data(), size, 0, mode, &ctr[who]), CRYPT_OK);
        }
        for (std::size_t at = 0; at < in.size();) {
            const std::size_t some =
                std::min(in.size() - at, random() % 3 == 0 ? random() % 6000 : random() % 100);
            for (const int who : {0, 1})
                ASSERT_EQ(ctr_encrypt(in.data() + at, out[who].data() + at, some, &ctr[who]),
                          CRYPT_OK);
            at += some;
            unsigned char left[2][16];
            for (const int who : {0, 1}) {
                unsigned long length = 16;
                ASSERT_EQ(ctr_getiv(left[who], &length, &ctr[who]), CRYPT_OK);
            }
            ASSERT_EQ(std::memcmp(left[0], left[1], 16), 0);
        }
        ASSERT_EQ(out[0], out[1]) << "width " << width << (big ? " big" : " little") << " "
                                  << in.size();
        // LibTomCrypt's first counter is the IV, unless RFC 3686 was asked for.
        if (big && width % 16 == 0 && !(mode & LTC_CTR_RFC3686)) {
            ASSERT_EQ(out[0], openssl("CTR", key, iv, in, true));
        }
        for (const int who : {0, 1}) ctr_done(&ctr[who]);
    }
}

TEST_F(TomCrypt, XtsIsOpenSslsAndGoesOnAcrossCalls) {
    for (const int size : {16, 32}) {
        const Data key = bytes(static_cast<std::size_t>(size) * 2);
        for (std::size_t length = 16; length < 3000; length += 1 + random() % 13) {
            const Data in = bytes(length), tweak = bytes(16);
            const auto work = [&](auto call, int cipher) {
                return [&, call, cipher](const unsigned char* from, unsigned char* to) {
                    symmetric_xts xts;
                    Data t = tweak;
                    EXPECT_EQ(xts_start(cipher, key.data(), key.data() + size,
                                        static_cast<unsigned long>(size), 0, &xts),
                              CRYPT_OK);
                    EXPECT_EQ(call(from, length, to, t.data(), &xts), CRYPT_OK);
                    xts_done(&xts);
                };
            };
            const Data out = run(in, work(xts_encrypt, ours));
            ASSERT_EQ(out, openssl("XTS", key, tweak, in, true)) << length;
            ASSERT_EQ(run(out, work(xts_decrypt, ours)), in) << length;
        }
    }
    // What the tweak is afterwards: LibTomCrypt's, for keys that OpenSSL refuses too.
    const Data key = bytes(24), in = bytes(16 * 700);
    Data left[2], out[2] = {Data(in.size()), Data(in.size())};
    for (const int who : {0, 1}) {
        symmetric_xts xts;
        left[who] = Data(16, 0x5a);
        ASSERT_EQ(xts_start(who == 0 ? ours : plain_aes(), key.data(), key.data(), 24, 0, &xts),
                  CRYPT_OK);
        for (const std::size_t at : {std::size_t{0}, in.size() / 2})
            ASSERT_EQ(xts_encrypt(in.data() + at, in.size() / 2, out[who].data() + at,
                                  left[who].data(), &xts),
                      CRYPT_OK);
        xts_done(&xts);
    }
    EXPECT_EQ(left[0], left[1]);
    EXPECT_EQ(out[0], out[1]);
}

// GF(2^128) in GCM's order of bits (SP 800-38D 6.3), to find the IV that leads to a counter.
using Field = unsigned __int128;
Field load(const unsigned char* from) {
    Field value = 0;
    for (int i = 0; i < 16; ++i) value = value << 8 | from[i];
    return value;
}
Field times(Field x, Field y) {
    Field z = 0;
    for (int i = 127; i >= 0; --i) {
        if (x >> i & 1) z ^= y;
        y = y & 1 ? y >> 1 ^ static_cast<Field>(0xe1) << 120 : y >> 1;
    }
    return z;
}
Field inverse(Field a) {
    Field z = static_cast<Field>(1) << 127;
    for (int bit = 1; bit < 128; ++bit) z = times(z, a = times(a, a));
    return z;
}
// Of 16 bytes, for J0 = GHASH(IV, 64 zero bits, 128 as 64 bits).
Data iv_for(const Data& key, const Data& j0) {
    Data h(16), iv(16);
    symmetric_key schedule;
    EXPECT_EQ(rijndael_setup(key.data(), static_cast<int>(key.size()), 0, &schedule), CRYPT_OK);
    EXPECT_EQ(rijndael_ecb_encrypt(h.data(), h.data(), &schedule), CRYPT_OK);
    const Field back = inverse(load(h.data()));
    Field value = times(times(load(j0.data()), back) ^ 128, back);
    for (int i = 15; i >= 0; --i, value >>= 8)
        iv[static_cast<std::size_t>(i)] = (unsigned char)value;
    return iv;
}

// The counter of 32 bits begins anywhere after an IV of other than 12 bytes, and so may wrap.
TEST_F(TomCrypt, GcmOpensWhatItSealsWhereTheCounterWraps) {
    for (const int size : kKeySizes)
        for (const unsigned before : {0u, 1u, 4u, 5u, 16u, 300u})  // blocks before it does
            for (const std::size_t bytes : {100u, 256u, 5000u, 70000u}) {
                const Data key = this->bytes(static_cast<std::size_t>(size));
                Data j0 = this->bytes(16);
                const std::uint32_t counter = 0u - before - 1;
                for (unsigned i = 0; i < 4; ++i)
                    j0[12 + i] = static_cast<unsigned char>(counter >> (24 - 8 * i));
                const Data iv = iv_for(key, j0), aad = this->bytes(20), in = this->bytes(bytes);
                Data out[2] = {Data(bytes), Data(bytes)}, back(bytes);
                unsigned char tags[3][16];
                unsigned long length = 16;
                for (int who = 0; who < 2; ++who) {
                    Data plain = in;
                    ASSERT_EQ(gcm_memory(who == 0 ? ours : plain_aes(), key.data(), key.size(),
                                         iv.data(), iv.size(), aad.data(), aad.size(), plain.data(),
                                         bytes, out[who].data(), tags[who], &length, GCM_ENCRYPT),
                              CRYPT_OK);
                }
                EXPECT_TRUE(out[0] == out[1]);
                ASSERT_EQ(gcm_memory(ours, key.data(), key.size(), iv.data(), iv.size(), aad.data(),
                                     aad.size(), back.data(), bytes, out[0].data(), tags[2],
                                     &length, GCM_DECRYPT),
                          CRYPT_OK)
                    << before << " blocks, " << bytes << " bytes";
                EXPECT_TRUE(back == in);
                for (const int who : {1, 2}) EXPECT_EQ(std::memcmp(tags[0], tags[who], 16), 0);
            }
}

// gcm_memory() has plain LibTomCrypt's manners: any IV, any tag up to 16 bytes, and when it
// decrypts it gives the tag and leaves the comparison to the caller.
TEST_F(TomCrypt, GcmIsLibTomCryptsAndOpenSsls) {
    for (int round = 0; round < 150; ++round) {
        const int size = kKeySizes[random() % 3];
        const Data key = bytes(static_cast<std::size_t>(size));
        const Data iv = bytes(round % 3 == 0 ? random() % 40 : 12), aad = bytes(random() % 60);
        const Data in = bytes(round % 10 == 0 ? random() % 20000 : random() % 700);
        unsigned char tags[2][16];
        unsigned long lengths[2];
        const unsigned long wanted = random() % 4 == 0 ? random() % 17 : 16;
        Data out[2];
        for (const int who : {0, 1}) {
            const int cipher = who == 0 ? ours : plain_aes();
            out[who] = run(in, [&](const unsigned char* from, unsigned char* to) {
                std::memset(tags[who], kPoison, 16);
                lengths[who] = wanted;
                EXPECT_EQ(gcm_memory(cipher, key.data(), key.size(), iv.data(), iv.size(),
                                     aad.data(), aad.size(), const_cast<unsigned char*>(from),
                                     in.size(), to, tags[who], &lengths[who], GCM_ENCRYPT),
                          CRYPT_OK);
            });
        }
        ASSERT_EQ(out[0], out[1]);
        ASSERT_EQ(lengths[0], lengths[1]);
        ASSERT_EQ(std::memcmp(tags[0], tags[1], 16), 0) << "and nothing behind the tag";
        if (iv.size() == 12 && !in.empty()) {
            ASSERT_EQ(out[0], openssl("GCM", key, iv, in, true));
        }
        // Decrypting a ciphertext that was altered: the tag that it would have.
        if (!in.empty() && round % 2) out[0][random() % in.size()] ^= 1;
        Data back[2];
        for (const int who : {0, 1}) {
            const int cipher = who == 0 ? ours : plain_aes();
            back[who] = run(out[0], [&](const unsigned char* from, unsigned char* to) {
                lengths[who] = 16;
                EXPECT_EQ(
                    gcm_memory(cipher, key.data(), key.size(), iv.data(), iv.size(), aad.data(),
                               aad.size(), to, in.size(), const_cast<unsigned char*>(from),
                               tags[who], &lengths[who], GCM_DECRYPT),
                    CRYPT_OK);
            });
        }
        ASSERT_EQ(back[0], back[1]);
        ASSERT_EQ(std::memcmp(tags[0], tags[1], 16), 0) << in.size();
    }
    unsigned char tag[16];
    unsigned long length = 16;
    const Data key = bytes(20);
    EXPECT_EQ(gcm_memory(ours, key.data(), 20, key.data(), 12, nullptr, 0, nullptr, 0, nullptr, tag,
                         &length, GCM_ENCRYPT),
              CRYPT_INVALID_KEYSIZE);
}

TEST_F(TomCrypt, CcmIsLibTomCryptsAndReleasesNothingThatWasAltered) {
    for (int round = 0; round < 300; ++round) {
        const int size = kKeySizes[random() % 3];
        const Data key = bytes(static_cast<std::size_t>(size)), nonce = bytes(7 + random() % 7);
        const Data header = bytes(round % 50 == 0 ? 65270 + random() % 40 : random() % 60);
        const Data in = bytes(round % 20 == 0 ? random() % 70000 : random() % 900);
        const unsigned long wanted = 4 + 2 * (random() % 7);
        const bool scheduled = random() % 2;
        unsigned char tags[2][16];
        Data out[2] = {Data(in.size()), Data(in.size())}, back(in.size(), kPoison);
        for (const int who : {0, 1}) {
            const int cipher = who == 0 ? ours : plain_aes();
            symmetric_key ready;
            ASSERT_EQ(cipher_descriptor[cipher].setup(key.data(), size, 0, &ready), CRYPT_OK);
            const auto ccm = [&](const unsigned char* pt, const unsigned char* ct, int direction) {
                unsigned long length = wanted;
                return ccm_memory(cipher, key.data(), key.size(), scheduled ? &ready : nullptr,
                                  nonce.data(), nonce.size(), header.data(), header.size(),
                                  const_cast<unsigned char*>(pt), in.size(),
                                  const_cast<unsigned char*>(ct), tags[who], &length, direction);
            };
            unsigned char some = 0;
            const auto at = [&some](Data& data) { return data.empty() ? &some : data.data(); };
            Data pt = in;
            ASSERT_EQ(ccm(at(pt), at(out[who]), CCM_ENCRYPT), CRYPT_OK);
            ASSERT_EQ(ccm(at(back), at(out[who]), CCM_DECRYPT), CRYPT_OK);
            ASSERT_EQ(back, in);
            if (in.empty()) continue;
            pt = out[who];
            pt[random() % in.size()] ^= 4;
            std::ranges::fill(back, kPoison);
            ASSERT_EQ(ccm(at(back), at(pt), CCM_DECRYPT), CRYPT_ERROR);
            ASSERT_EQ(back, Data(in.size()));
            ASSERT_EQ(ccm(at(pt), at(pt), CCM_DECRYPT), CRYPT_ERROR);  // in place
            ASSERT_EQ(pt, Data(in.size()));
            cipher_descriptor[cipher].done(&ready);
        }
        ASSERT_EQ(out[0], out[1]);
        ASSERT_EQ(std::memcmp(tags[0], tags[1], wanted), 0);
    }
}

TEST_F(TomCrypt, OmacIsLibTomCrypts) {
    for (std::size_t length = 0; length < 2200; length += 1 + length / 40) {
        const int size = kKeySizes[random() % 3];
        const Data key = bytes(static_cast<std::size_t>(size)), in = bytes(length + 1);
        unsigned char macs[2][16] = {};
        unsigned long lengths[2];
        for (const int who : {0, 1}) {
            lengths[who] = length % 5 == 0 ? 8 : 30;
            ASSERT_EQ(omac_memory(who == 0 ? ours : plain_aes(), key.data(), key.size(), in.data(),
                                  length, macs[who], &lengths[who]),
                      CRYPT_OK);
        }
        ASSERT_EQ(lengths[0], lengths[1]);
        ASSERT_EQ(std::memcmp(macs[0], macs[1], 16), 0) << length;
    }
}

// Buffers that overlap are nothing that daelstrom takes; what LibTomCrypt makes of them stays.
TEST_F(TomCrypt, WhatOverlapsIsDoneBlockByBlockAsBefore) {
    const Data key = bytes(16), iv = bytes(16);
    for (const int shift : {-48, -16, -5, 5, 16}) {
        Data memory[2];
        memory[0] = memory[1] = bytes(4096 + 128);
        for (const int who : {0, 1}) {
            unsigned char* const in = memory[who].data() + 64;
            symmetric_CTR ctr;
            ASSERT_EQ(ctr_start(who == 0 ? ours : plain_aes(), iv.data(), key.data(), 16, 0,
                                CTR_COUNTER_BIG_ENDIAN, &ctr),
                      CRYPT_OK);
            ASSERT_EQ(ctr_encrypt(in, in + shift, 4096, &ctr), CRYPT_OK);
            symmetric_CBC cbc;
            ASSERT_EQ(cbc_start(who == 0 ? ours : plain_aes(), iv.data(), key.data(), 16, 0, &cbc),
                      CRYPT_OK);
            ASSERT_EQ(cbc_encrypt(in, in + shift, 4096, &cbc), CRYPT_OK);
        }
        // Forward, a plain loop eats its own output in units of its own: only backward is defined.
        if (shift < 0) {
            EXPECT_EQ(memory[0], memory[1]) << shift;
        }
    }
}

// Contexts are memory that programs copy and abandon, and that may have been set up before.
TEST_F(TomCrypt, ContextsMayBeCopiedAbandonedAndOlderThanTheirDescriptor) {
    const Data key = bytes(32), iv(16), in = bytes(4096);
    daelstrom_tomcrypt_unregister();
    const auto fresh = [&] {
        symmetric_CTR ctr;
        std::memset(&ctr, 0xee, sizeof ctr);
        EXPECT_EQ(ctr_start(ours, iv.data(), key.data(), 32, 0, CTR_COUNTER_BIG_ENDIAN, &ctr),
                  CRYPT_OK);
        return ctr;
    };
    const auto encrypted = [&](symmetric_CTR& ctr) {
        Data out(in.size());
        EXPECT_EQ(ctr_encrypt(in.data(), out.data(), in.size(), &ctr), CRYPT_OK);
        return out;
    };
    symmetric_CTR older = fresh();
    const symmetric_CTR same = older;
    ASSERT_EQ(daelstrom_tomcrypt_register(), ours);
    const Data wanted = openssl("CTR", key, iv, in, true);
    EXPECT_EQ(encrypted(older), wanted);
    symmetric_CTR first = fresh(), copy = first;
    EXPECT_EQ(encrypted(first), wanted);
    EXPECT_EQ(ctr_done(&first), CRYPT_OK);
    EXPECT_EQ(encrypted(copy), wanted);
    // Hundreds that nobody ends, more than there are places.
    for (int i = 0; i < 300; ++i) {
        symmetric_CTR abandoned = fresh();
        ASSERT_EQ(encrypted(abandoned), wanted);
    }
    // And one that outlives the descriptor.
    symmetric_CTR later = fresh();
    daelstrom_tomcrypt_unregister();
    EXPECT_EQ(encrypted(later), wanted);
    symmetric_CTR plain_again = same;
    EXPECT_EQ(encrypted(plain_again), wanted);
}

TEST_F(TomCrypt, DoneWipesTheContext) {
    const Data key = bytes(32);
    symmetric_key scheduled;
    std::memset(&scheduled, 0, sizeof scheduled);
    ASSERT_EQ(cipher_descriptor[ours].setup(key.data(), 32, 0, &scheduled), CRYPT_OK);
    Data data(4096);
    ASSERT_EQ(cipher_descriptor[ours].accel_ecb_encrypt(data.data(), data.data(), 256, &scheduled),
              CRYPT_OK);
    cipher_descriptor[ours].done(&scheduled);
    const auto* const raw = reinterpret_cast<const unsigned char*>(&scheduled);
    EXPECT_TRUE(std::all_of(raw, raw + sizeof scheduled, [](unsigned char b) { return b == 0; }));
}

TEST_F(TomCrypt, RegistersInThePlaceOfAesUnderItsName) {
    daelstrom_tomcrypt_unregister();
    EXPECT_EQ(cipher_descriptor[ours].accel_gcm_memory, nullptr);
    EXPECT_EQ(find_cipher("aes"), ours);
    // One that was registered as "rijndael" keeps that name.
    ASSERT_EQ(unregister_cipher(&aes_desc), CRYPT_OK);
    const int index = register_cipher(&rijndael_desc);
    EXPECT_EQ(daelstrom_tomcrypt_register(), index);
    EXPECT_EQ(find_cipher("rijndael"), index);
    EXPECT_EQ(find_cipher("aes"), -1);
    EXPECT_EQ(register_cipher(&aes_desc), index) << "the ID is taken";
    EXPECT_NE(cipher_descriptor[index].accel_gcm_memory, nullptr);
    // Back to what the other cases found.
    cipher_descriptor[index].name = nullptr;
    EXPECT_EQ(daelstrom_tomcrypt_register(), index);
    EXPECT_EQ(find_cipher("aes"), index);
}

// Where no engine opens, LibTomCrypt does all of it.
TEST_F(TomCrypt, WithoutAnEngineItIsPlainLibTomCrypt) {
    daelstrom_tomcrypt_unregister();
    setenv("DAELSTROM_BACKEND", "opencl:99", 1);
    ASSERT_EQ(daelstrom_tomcrypt_register(), ours);
    const Data key = bytes(16), iv = bytes(12), in = bytes(2000);
    // The named one is absent, the next one is openssl: it still serves.
    Data out(in.size());
    unsigned char tag[16];
    unsigned long length = 16;
    ASSERT_EQ(gcm_memory(ours, key.data(), 16, iv.data(), 12, nullptr, 0,
                         const_cast<unsigned char*>(in.data()), in.size(), out.data(), tag, &length,
                         GCM_ENCRYPT),
              CRYPT_OK);
    EXPECT_EQ(out, openssl("GCM", key, iv, in, true));
    unsetenv("DAELSTROM_BACKEND");
    daelstrom_tomcrypt_unregister();
}

TEST_F(TomCrypt, WorksOnAnEngineOfTheProgramsOwn) {
    dael_engine_options options{};
    options.struct_size = sizeof options;
    options.backend = "openssl";
    dael_engine* engine = nullptr;
    ASSERT_EQ(dael_engine_open(&options, &engine), DAEL_OK);
    daelstrom_tomcrypt_use(engine);
    const Data key = bytes(16), in = bytes(4096);
    Data out(in.size());
    symmetric_ECB ecb;
    ASSERT_EQ(ecb_start(ours, key.data(), 16, 0, &ecb), CRYPT_OK);
    ASSERT_EQ(ecb_encrypt(in.data(), out.data(), in.size(), &ecb), CRYPT_OK);
    EXPECT_EQ(out, openssl("ECB", key, {}, in, true));
    daelstrom_tomcrypt_use(nullptr);
    ASSERT_EQ(ecb_encrypt(in.data(), out.data(), in.size(), &ecb), CRYPT_OK);
    EXPECT_EQ(out, openssl("ECB", key, {}, in, true));
    daelstrom_tomcrypt_forget();
    dael_engine_close(engine);
}

// Threads with contexts and keys of their own, one context of all, and one who forgets.
TEST_F(TomCrypt, ThreadsShareIt) {
    const Data shared_key = bytes(16), in = bytes(2048);
    symmetric_key shared;
    ASSERT_EQ(cipher_descriptor[ours].setup(shared_key.data(), 16, 0, &shared), CRYPT_OK);
    const Data wanted = openssl("ECB", shared_key, {}, in, true);
    std::vector<Data> keys;
    for (int i = 0; i < 4; ++i) keys.push_back(bytes(32));
    std::vector<std::thread> threads;
    std::array<int, 4> wrong{};
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            Data out(in.size());
            const Data iv(12), own = openssl("GCM", keys[t], iv, in, true);
            for (int i = 0; i < 300; ++i) {
                const auto& aes = cipher_descriptor[ours];
                aes.accel_ecb_encrypt(in.data(), out.data(), in.size() / 16, &shared);
                wrong[t] += out != wanted;
                unsigned char tag[16];
                unsigned long length = 16;
                gcm_memory(ours, keys[t].data(), 32, iv.data(), 12, nullptr, 0,
                           const_cast<unsigned char*>(in.data()), in.size(), out.data(), tag,
                           &length, GCM_ENCRYPT);
                wrong[t] += out != own;
                symmetric_ECB ecb;
                ecb_start(ours, shared_key.data(), 16, 0, &ecb);
                ecb_encrypt(in.data(), out.data(), in.size(), &ecb);
                wrong[t] += out != wanted;
                ecb_done(&ecb);
                if (t == 0 && i % 16 == 0) daelstrom_tomcrypt_forget();
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, (std::array<int, 4>{}));
    cipher_descriptor[ours].done(&shared);
}

}  // namespace
