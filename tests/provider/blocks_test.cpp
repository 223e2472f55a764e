// SPDX-License-Identifier: Apache-2.0
// ECB, CBC, CFB, OFB, CTR, XTS and ciphertext stealing: whatever a program does with a context, the
// bytes, the lengths and the parameters are the default provider's. Random walks over EVP's calls,
// the same on both sides.
#include <algorithm>

#include "evp.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael::test;

constexpr const char* kCiphers[] = {
    "AES-128-ECB", "AES-192-ECB", "AES-256-ECB",     "AES-128-CBC",     "AES-192-CBC",
    "AES-256-CBC", "AES-128-CFB", "AES-192-CFB",     "AES-256-CFB",     "AES-128-OFB",
    "AES-192-OFB", "AES-256-OFB", "AES-128-CTR",     "AES-192-CTR",     "AES-256-CTR",
    "AES-128-XTS", "AES-256-XTS", "AES-128-CBC-CTS", "AES-192-CBC-CTS", "AES-256-CBC-CTS"};

class Blocks : public ::testing::TestWithParam<const char*> {};

std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
    std::string name = info.param;
    std::erase(name, '-');
    return name;
}
INSTANTIATE_TEST_SUITE_P(All, Blocks, ::testing::ValuesIn(kCiphers), name_of);

// Both sides, which take the same steps.
struct Pair {
    Context a = context(), b = context();  // theirs, ours
};

Bytes parameter(EVP_CIPHER_CTX* context, const char* name) {
    Bytes value(16, 0xee);
    OSSL_PARAM asked[] = {OSSL_PARAM_construct_octet_string(name, value.data(), value.size()),
                          OSSL_PARAM_construct_end()};
    const int ok = EVP_CIPHER_CTX_get_params(context, asked);
    value.push_back(static_cast<std::uint8_t>(ok == 1));
    return value;
}

void compare_state(const Pair& pair, bool has_iv) {
    if (has_iv) {
        EXPECT_EQ(parameter(pair.a.get(), OSSL_CIPHER_PARAM_UPDATED_IV),
                  parameter(pair.b.get(), OSSL_CIPHER_PARAM_UPDATED_IV));
        EXPECT_EQ(parameter(pair.a.get(), OSSL_CIPHER_PARAM_IV),
                  parameter(pair.b.get(), OSSL_CIPHER_PARAM_IV));
    }
    EXPECT_EQ(EVP_CIPHER_CTX_get_num(pair.a.get()), EVP_CIPHER_CTX_get_num(pair.b.get()));
}

// Returns false where the walk is over: OpenSSL failed, and so did we.
bool step(Numbers& numbers, Pair& pair, bool whole_blocks) {
    std::size_t size = numbers.size();
    if (whole_blocks) size = size / 16 * 16;
    const Bytes in = numbers.bytes(size);
    const bool in_place = numbers.one_in(3);
    Bytes out_a(size + 32, 0x5a), out_b(size + 32, 0x5a);
    if (in_place) {
        std::copy(in.begin(), in.end(), out_a.begin());
        out_b = out_a;
    }
    int made_a = -1, made_b = -1;
    const int a = EVP_CipherUpdate(pair.a.get(), out_a.data(), &made_a,
                                   in_place ? out_a.data() : in.data(), static_cast<int>(size));
    const int b = EVP_CipherUpdate(pair.b.get(), out_b.data(), &made_b,
                                   in_place ? out_b.data() : in.data(), static_cast<int>(size));
    EXPECT_EQ(a, b) << size;
    if (a != 1 || b != 1) return false;
    EXPECT_EQ(made_a, made_b) << size;
    EXPECT_TRUE(out_a == out_b) << size << (in_place ? " in place" : "");
    return made_a == made_b && out_a == out_b;
}

void walk(const char* name, std::uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Numbers numbers(seed);
    const auto a = fetch(theirs(), name), b = fetch(ours(), name);
    ASSERT_TRUE(a && b);
    const auto key_size = static_cast<std::size_t>(EVP_CIPHER_get_key_length(b.get()));
    const int mode = EVP_CIPHER_get_mode(b.get());
    const bool has_iv = mode != EVP_CIPH_ECB_MODE;
    const bool once =
        std::string(name).find("CTS") != std::string::npos || mode == EVP_CIPH_XTS_MODE;
    Pair pair;
    Bytes key = numbers.bytes(key_size), iv = numbers.bytes(16);
    if (numbers.one_in(4))  // a counter that carries
        for (int i = 4; i < 16; ++i) iv[i] = 0xff;
    const int encrypts = static_cast<int>(numbers.below(2));
    for (const auto* side : {&pair.a, &pair.b})
        ASSERT_EQ(EVP_CipherInit_ex2(side->get(), side == &pair.a ? a.get() : b.get(), key.data(),
                                     iv.data(), encrypts, nullptr),
                  1);
    const bool padded = !once && numbers.one_in(2);
    EVP_CIPHER_CTX_set_padding(pair.a.get(), padded);
    EVP_CIPHER_CTX_set_padding(pair.b.get(), padded);
    const bool mostly_whole = numbers.one_in(2);
    for (int steps = 0; steps < 10; ++steps) {
        const std::size_t what = once ? 10 : numbers.below(12);
        if (what == 0) {  // the same message goes on in a copy
            Pair copy;
            ASSERT_EQ(EVP_CIPHER_CTX_copy(copy.a.get(), pair.a.get()), 1);
            ASSERT_EQ(EVP_CIPHER_CTX_copy(copy.b.get(), pair.b.get()), 1);
            pair = std::move(copy);
        } else if (what == 1) {
            compare_state(pair, has_iv);
        } else if (what == 2) {  // another key, another IV, one of them, neither; the other way
            const Bytes fresh_key = numbers.bytes(key_size), fresh_iv = numbers.bytes(16);
            const bool with_key = numbers.one_in(2), with_iv = numbers.one_in(2);
            const int way = static_cast<int>(numbers.below(3)) - 1;
            for (const auto* side : {&pair.a, &pair.b})
                ASSERT_EQ(
                    EVP_CipherInit_ex2(side->get(), nullptr, with_key ? fresh_key.data() : nullptr,
                                       with_iv ? fresh_iv.data() : nullptr, way, nullptr),
                    1);
        } else if (what == 3) {
            Bytes out_a(32, 1), out_b(32, 1);
            int made_a = -1, made_b = -1;
            const int ended_a = EVP_CipherFinal_ex(pair.a.get(), out_a.data(), &made_a);
            const int ended_b = EVP_CipherFinal_ex(pair.b.get(), out_b.data(), &made_b);
            ASSERT_EQ(ended_a, ended_b);
            if (ended_a == 1) {
                ASSERT_EQ(made_a, made_b);
                ASSERT_EQ(out_a, out_b);
            }
            for (const auto* side : {&pair.a, &pair.b})
                ASSERT_EQ(EVP_CipherInit_ex2(side->get(), nullptr, nullptr, iv.data(), -1, nullptr),
                          1);
        } else {
            if (!step(numbers, pair, mostly_whole && !numbers.one_in(5))) return;
            if (!once) continue;
            for (const auto* side : {&pair.a, &pair.b})
                ASSERT_EQ(EVP_CipherInit_ex2(side->get(), nullptr, nullptr, iv.data(), -1, nullptr),
                          1);
        }
    }
    compare_state(pair, has_iv);
}

TEST_P(Blocks, RandomWalksAreTheDefaultProviders) {
    constexpr std::uint64_t kWalks = 250, kFewer = thorough(kWalks, std::uint64_t{60});
    const auto before = counter("daelstrom-updates"),
               parallel = counter("daelstrom-parallel-updates");
    // The engine has its part, where README.md of provider/ says so. From what size on depends on
    // the processor where that is measured (provider/contest.hpp), so few walks may not do.
    const std::string name = GetParam();
    const bool shared = name.find("XTS") == name.npos && name.find("OFB") == name.npos &&
                        name.find("CTS") == name.npos;
    const auto had_its_part = [&] {
        return counter("daelstrom-updates") > before &&
               counter("daelstrom-parallel-updates") > parallel;
    };
    for (std::uint64_t seed = 1;
         seed <= (shared && !had_its_part() ? kWalks : kFewer) && !HasFailure(); ++seed)
        walk(GetParam(), seed);
    EXPECT_EQ(counter("daelstrom-updates") > before, shared);
    EXPECT_EQ(counter("daelstrom-parallel-updates") > parallel, shared);
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

// One context for messages of every short length, each with an IV of its own and now and then a
// key, in one piece or two; what is asked for in between begins nothing anew.
TEST_P(Blocks, MessagesOfEveryShortLengthAreTheDefaultProviders) {
    const std::string name = GetParam();
    const auto a = fetch(theirs(), name), b = fetch(ours(), name);
    const int mode = EVP_CIPHER_get_mode(b.get());
    if (mode == EVP_CIPH_XTS_MODE || name.find("CTS") != name.npos)
        GTEST_SKIP() << "as it is there";
    const bool padded_too = mode == EVP_CIPH_ECB_MODE || mode == EVP_CIPH_CBC_MODE;
    const bool has_iv = mode != EVP_CIPH_ECB_MODE;
    Numbers numbers(11);
    for (const bool padding : {false, true}) {
        if (padding && !padded_too) continue;
        Pair pair;
        for (int i = 0; i < 1400 && !HasFailure(); ++i) {
            SCOPED_TRACE(i);
            std::size_t size = static_cast<std::size_t>(i) / 2;
            if (padded_too && !padding) size = size / 16 * 16;
            const int encrypts = i & 1;
            Bytes in = numbers.bytes(size), iv = numbers.bytes(16);
            if (numbers.one_in(3)) std::fill(iv.begin() + 2, iv.end(), 0xff);
            const Bytes key = numbers.bytes(64);
            if (padding && !encrypts) in.resize((size + 15) / 16 * 16);
            const std::size_t first = numbers.one_in(2) ? in.size() : numbers.below(in.size() + 1);
            const bool asks = numbers.one_in(4), keyed = i < 2 || padded_too || numbers.one_in(3);
            Bytes out[2];
            std::vector<int> answers[2];
            for (int side = 0; side < 2; ++side) {
                EVP_CIPHER_CTX* const x = side == 0 ? pair.a.get() : pair.b.get();
                const auto answer = [&](int value) { answers[side].push_back(value); };
                answer(EVP_CipherInit_ex2(x, i == 0 ? (side == 0 ? a.get() : b.get()) : nullptr,
                                          keyed ? key.data() : nullptr, iv.data(), encrypts,
                                          nullptr));
                if (i == 0) answer(EVP_CIPHER_CTX_set_padding(x, padding));
                out[side].assign(in.size() + 48, 0x33);
                std::size_t at = 0;
                int made = 0;
                answer(EVP_CipherUpdate(x, out[side].data(), &made, in.data(), int(first)));
                at += static_cast<std::size_t>(made);
                if (asks) {
                    answer(EVP_CIPHER_CTX_get_num(x));
                    if (has_iv) {
                        const Bytes now = parameter(x, OSSL_CIPHER_PARAM_UPDATED_IV);
                        answers[side].insert(answers[side].end(), now.begin(), now.end());
                    }
                }
                answer(EVP_CipherUpdate(x, &out[side][at], &made, in.data() + first,
                                        int(in.size() - first)));
                at += static_cast<std::size_t>(made);
                made = 0;
                const int ended = EVP_CipherFinal_ex(x, &out[side][at], &made);
                answer(ended);
                // Padding that is wrong: what is given out for it is nothing, and not compared.
                out[side].resize(at + static_cast<std::size_t>(ended == 1 ? made : 0));
            }
            EXPECT_EQ(answers[0], answers[1]);
            EXPECT_EQ(out[0], out[1]);
        }
    }
    ERR_clear_error();
}

// A last block whose padding is of every size, right and wrong in one byte.
TEST_P(Blocks, PaddingIsJudgedAsThere) {
    const std::string name = GetParam();
    const auto a = fetch(theirs(), name), b = fetch(ours(), name);
    const int mode = EVP_CIPHER_get_mode(b.get());
    if ((mode != EVP_CIPH_ECB_MODE && mode != EVP_CIPH_CBC_MODE) || name.find("CTS") != name.npos)
        GTEST_SKIP() << "takes no padding";
    Numbers numbers(12);
    const Bytes key = numbers.bytes(32), iv = numbers.bytes(16);
    for (unsigned padding = 0; padding < 20; ++padding)
        for (int wrong = -1; wrong < 16; ++wrong) {
            Bytes plain = numbers.bytes(32), secret(48);
            for (unsigned i = 0; i < std::min(padding, 16u); ++i)
                plain[31 - i] = static_cast<std::uint8_t>(padding);
            if (padding == 0) plain[31] = 0;
            if (wrong >= 0) plain[16 + static_cast<std::size_t>(wrong)] ^= 0x41;
            int made = 0;
            auto seal = context();
            EVP_EncryptInit_ex2(seal.get(), a.get(), key.data(), iv.data(), nullptr);
            EVP_CIPHER_CTX_set_padding(seal.get(), 0);
            ASSERT_EQ(EVP_EncryptUpdate(seal.get(), secret.data(), &made, plain.data(), 32), 1);
            int ends[2], sizes[2];
            Bytes out[2];
            for (int side = 0; side < 2; ++side) {
                auto x = context();
                int end = 0;
                out[side].assign(64, 0);
                EVP_DecryptInit_ex2(x.get(), side == 0 ? a.get() : b.get(), key.data(), iv.data(),
                                    nullptr);
                ASSERT_EQ(EVP_DecryptUpdate(x.get(), out[side].data(), &made, secret.data(), 32),
                          1);
                ends[side] = EVP_DecryptFinal_ex(x.get(), &out[side][16], &end);
                sizes[side] = made + (ends[side] == 1 ? end : 0);
            }
            EXPECT_EQ(ends[0], ends[1]) << padding << " " << wrong;
            EXPECT_EQ(sizes[0], sizes[1]) << padding << " " << wrong;
            EXPECT_EQ(out[0], out[1]);
        }
    ERR_clear_error();
}

TEST_P(Blocks, PartialOverlapIsTreatedAsThere) {
    const auto a = fetch(theirs(), GetParam()), b = fetch(ours(), GetParam());
    Numbers numbers(5);
    const Bytes key = numbers.bytes(64), iv = numbers.bytes(16), data = numbers.bytes(20000);
    for (const int encrypts : {1, 0})
        for (const std::size_t shift : {1, 8, 16, 4000}) {
            Bytes room_a = data, room_b = data;
            int made_a = 0, made_b = 0;
            Pair pair;
            EVP_CipherInit_ex2(pair.a.get(), a.get(), key.data(), iv.data(), encrypts, nullptr);
            EVP_CipherInit_ex2(pair.b.get(), b.get(), key.data(), iv.data(), encrypts, nullptr);
            EVP_CIPHER_CTX_set_padding(pair.a.get(), 0);
            EVP_CIPHER_CTX_set_padding(pair.b.get(), 0);
            EXPECT_EQ(EVP_CipherUpdate(pair.a.get(), &room_a[shift], &made_a, &room_a[0], 8192),
                      EVP_CipherUpdate(pair.b.get(), &room_b[shift], &made_b, &room_b[0], 8192));
            EXPECT_EQ(made_a, made_b);
            EXPECT_TRUE(room_a == room_b) << shift;
        }
}

TEST_P(Blocks, WhatCannotBeIsRefusedAsThere) {
    std::vector<int> answers[2];
    for (int side = 0; side < 2; ++side) {
        const auto answer = [&](int value) { answers[side].push_back(value); };
        const auto cipher = fetch(side == 0 ? theirs() : ours(), GetParam());
        auto x = context();
        Bytes room(6000), key(64);
        for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
        int made = 0;
        for (std::size_t wrong : {15, 33, 64}) {
            answer(EVP_CipherInit_ex2(x.get(), cipher.get(), nullptr, nullptr, 1, nullptr));
            OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_KEYLEN, &wrong),
                                   OSSL_PARAM_construct_end()};
            answer(EVP_CIPHER_CTX_set_params(x.get(), params));
            const int begun =
                EVP_CipherInit_ex2(x.get(), nullptr, key.data(), key.data(), 1, nullptr);
            answer(begun);
            if (begun == 1)
                answer(EVP_CipherUpdate(x.get(), room.data(), &made, room.data(), 5120));
        }
        // Blocks that are not full, with and without padding.
        for (const int padding : {0, 1}) {
            answer(EVP_CipherInit_ex2(x.get(), cipher.get(), key.data(), key.data(), 1, nullptr));
            answer(EVP_CIPHER_CTX_set_padding(x.get(), padding));
            answer(EVP_CipherUpdate(x.get(), room.data(), &made, room.data(), 5121));
            answer(EVP_CipherFinal_ex(x.get(), room.data(), &made));
            answer(made);
        }
        std::size_t ten = 10;
        OSSL_PARAM number[] = {OSSL_PARAM_construct_size_t("no-such-parameter", &ten),
                               OSSL_PARAM_construct_end()};
        answer(EVP_CIPHER_CTX_set_params(x.get(), number));
        answer(EVP_CIPHER_CTX_get_params(x.get(), number));
    }
    EXPECT_EQ(answers[0], answers[1]);
    ERR_clear_error();
}

TEST_P(Blocks, HasTheSameNamesAndParameters) {
    const auto a = fetch(theirs(), GetParam()), b = fetch(ours(), GetParam());
    ASSERT_TRUE(a && b);
    EXPECT_STREQ(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(b.get())), "daelstrom");
    std::vector<std::string> names[2];
    const auto take = [](const char* name, void* to) {
        static_cast<std::vector<std::string>*>(to)->push_back(name);
    };
    EVP_CIPHER_names_do_all(a.get(), take, &names[0]);
    EVP_CIPHER_names_do_all(b.get(), take, &names[1]);
    for (auto& list : names) std::sort(list.begin(), list.end());
    EXPECT_EQ(names[0], names[1]);
    for (const auto& name : names[0]) EXPECT_TRUE(fetch(ours(), name)) << name;
    EXPECT_EQ(EVP_CIPHER_get_flags(a.get()), EVP_CIPHER_get_flags(b.get()));
    EXPECT_EQ(EVP_CIPHER_get_block_size(a.get()), EVP_CIPHER_get_block_size(b.get()));
    EXPECT_EQ(EVP_CIPHER_get_iv_length(a.get()), EVP_CIPHER_get_iv_length(b.get()));
    const auto same = [](const OSSL_PARAM* x, const OSSL_PARAM* y) {
        ASSERT_EQ(x == nullptr, y == nullptr);
        for (; x && x->key; ++x, ++y) {
            ASSERT_NE(y->key, nullptr);
            EXPECT_STREQ(x->key, y->key);
        }
        EXPECT_TRUE(!y || !y->key);
    };
    same(EVP_CIPHER_gettable_params(a.get()), EVP_CIPHER_gettable_params(b.get()));
    same(EVP_CIPHER_gettable_ctx_params(a.get()), EVP_CIPHER_gettable_ctx_params(b.get()));
    same(EVP_CIPHER_settable_ctx_params(a.get()), EVP_CIPHER_settable_ctx_params(b.get()));
}

}  // namespace
