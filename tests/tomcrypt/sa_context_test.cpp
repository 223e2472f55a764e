// SPDX-License-Identifier: Apache-2.0
// The thesis' calls: packets of a security association, sealed and opened in LibTomCrypt's manner
// over a table with keystream. What they seal plain LibTomCrypt knows.
#include <daelstrom_sa_context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace {

using Data = std::vector<unsigned char>;

struct SaContext : testing::TestWithParam<std::tuple<dael_sa_plan, dael_sa_layout, int>> {
    void SetUp() override {
        dael_engine_options options{};
        options.struct_size = sizeof options;
        options.backend = "openssl";
        options.threads = 1;
        ASSERT_EQ(dael_engine_open(&options, &engine), DAEL_OK) << dael_last_error();
        ASSERT_EQ(dael_sa_filler_open(engine, nullptr, &filler), DAEL_OK) << dael_last_error();
        dael_sa_table_options table_options{};
        table_options.struct_size = sizeof table_options;
        table_options.budget = 1 << 20;
        table_options.plan = std::get<0>(GetParam());
        for (auto& t : tables)
            ASSERT_EQ(dael_sa_table_open(filler, &table_options, &t), DAEL_OK) << dael_last_error();
    }
    void TearDown() override {
        for (auto* t : tables) dael_sa_table_close(t);
        dael_sa_filler_close(filler);
        dael_engine_close(engine);
    }

    dael_sa_options sa_options(int direction) const {
        dael_sa_options options{};
        options.struct_size = sizeof options;
        options.direction = direction;
        options.layout = std::get<1>(GetParam());
        std::memcpy(options.salt, salt.data(), 4);
        return options;
    }

    dael_engine* engine = nullptr;
    dael_sa_filler* filler = nullptr;
    dael_sa_table* tables[2] = {};  // a peer each
    std::mt19937_64 random{3};
    // A key sends once with a salt in a process.
    static inline unsigned char cases = 0;
    const std::array<unsigned char, 4> salt{'s', 'a', 'l', ++cases};
};

TEST_P(SaContext, SealsWhatPlainLibTomCryptOpensAndOpensNothingElse) {
    const auto [plan, layout, key_size] = GetParam();
    Data key(static_cast<std::size_t>(key_size));
    for (auto& byte : key) byte = static_cast<unsigned char>(random());
    const auto sending = sa_options(DAEL_SA_SENDING), receiving = sa_options(DAEL_SA_RECEIVING);
    daelstrom_sa_context here, there;
    ASSERT_EQ(daelstrom_sa_context_init(&here, tables[0], &sending, key.data(), key.size()),
              CRYPT_OK);
    ASSERT_EQ(daelstrom_sa_context_init(&there, tables[1], &receiving, key.data(), key.size()),
              CRYPT_OK);
    ltc_cipher_descriptor plain = aes_desc;
    plain.name = "plain aes";
    plain.ID = 200;
    const int aes = register_cipher(&plain);
    ASSERT_GE(aes, 0);

    const Data header{1, 2, 3, 4, 5, 6, 7, 8};
    for (int i = 0; i < 600; ++i) {
        Data data(random() % 1500);
        for (auto& byte : data) byte = static_cast<unsigned char>(random());
        Data sealed = data, opened(data.size(), 0xa5);
        unsigned char tag[16], expected[16];
        unsigned long taglen = sizeof tag;
        ASSERT_EQ(daelstrom_gcm_encrypt(&here, sealed.data(), sealed.data(), sealed.size(),
                                        header.data(), header.size(), tag, &taglen),
                  CRYPT_OK);
        ASSERT_EQ(taglen, 16u);
        if (layout == DAEL_SA_RFC4106 && i % 16 == 0) {
            unsigned char nonce[12];
            std::memcpy(nonce, salt.data(), 4);
            std::memcpy(nonce + 4, here.iv, 8);
            ASSERT_EQ(
                gcm_memory(aes, key.data(), key.size(), nonce, 12,
                           const_cast<unsigned char*>(header.data()), header.size(), opened.data(),
                           data.size(), sealed.data(), expected, &taglen, GCM_DECRYPT),
                CRYPT_OK);
            ASSERT_EQ(std::memcmp(expected, tag, 16), 0);
            ASSERT_EQ(opened, data);
            std::ranges::fill(opened, 0xa5);
        }
        std::memcpy(there.iv, here.iv, here.ivlen);
        // What was altered on its way is refused, and nothing of it is written.
        std::memcpy(expected, tag, 16);
        expected[random() % 16] ^= 0x40;
        ASSERT_EQ(daelstrom_gcm_decrypt(&there, sealed.data(), opened.data(), sealed.size(),
                                        header.data(), header.size(), expected, 16),
                  CRYPT_ERROR);
        ASSERT_TRUE(opened == Data(data.size(), 0xa5) || opened == Data(data.size()));
        ASSERT_EQ(daelstrom_gcm_decrypt(&there, sealed.data(), opened.data(), sealed.size(),
                                        header.data(), header.size(), tag, 16),
                  CRYPT_OK);
        ASSERT_EQ(opened, data);
    }
    daelstrom_sa_context_done(&here);
    daelstrom_sa_context_done(&there);
    EXPECT_EQ(here.table, nullptr);
}

TEST_P(SaContext, RefusesWhatMakesNoSense) {
    const auto sending = sa_options(DAEL_SA_SENDING);
    Data key(static_cast<std::size_t>(std::get<2>(GetParam())), 7), data(64);
    daelstrom_sa_context sa;
    EXPECT_EQ(daelstrom_sa_context_init(&sa, tables[0], &sending, key.data(), 20),
              CRYPT_INVALID_KEYSIZE);
    EXPECT_EQ(daelstrom_sa_context_init(&sa, nullptr, &sending, key.data(), key.size()),
              CRYPT_INVALID_ARG);
    ASSERT_EQ(daelstrom_sa_context_init(&sa, tables[0], &sending, key.data(), key.size()),
              CRYPT_OK);
    unsigned char tag[16];
    unsigned long taglen = 15;
    EXPECT_EQ(daelstrom_gcm_encrypt(&sa, data.data(), data.data(), 64, nullptr, 0, tag, &taglen),
              CRYPT_BUFFER_OVERFLOW);
    EXPECT_EQ(daelstrom_gcm_decrypt(&sa, data.data(), data.data(), 64, nullptr, 0, tag, 12),
              CRYPT_INVALID_ARG);
    daelstrom_sa_context_done(&sa);
    taglen = 16;
    EXPECT_EQ(daelstrom_gcm_encrypt(&sa, data.data(), data.data(), 64, nullptr, 0, tag, &taglen),
              CRYPT_INVALID_ARG);
    daelstrom_sa_context_done(&sa);
}

INSTANTIATE_TEST_SUITE_P(All, SaContext,
                         testing::Combine(testing::Values(DAEL_SA_AHEAD, DAEL_SA_DIRECT),
                                          testing::Values(DAEL_SA_RFC4106, DAEL_SA_STREAM),
                                          testing::Values(16, 32)));

}  // namespace
