// SPDX-License-Identifier: Apache-2.0
// GCM by the provider: messages in every cut are the default provider's, its own way and back;
// tags, IVs, copies, refusals; records of TLS 1.2.
#include <algorithm>

#include "evp.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael::test;

constexpr std::uint64_t kMessages = thorough(800, 150);

struct Message {
    Bytes key, iv, aad, in;
    std::vector<std::size_t> aad_cuts, cuts;  // sizes of the updates
    int tag_size = 16;
};

std::vector<std::size_t> cut(Numbers& numbers, std::size_t size) {
    std::vector<std::size_t> cuts;
    for (std::size_t left = size; left != 0;) {
        std::size_t some = numbers.one_in(2) ? left : std::min(left, numbers.size() + 1);
        cuts.push_back(some);
        left -= some;
    }
    return cuts;
}

Message message(Numbers& numbers, std::size_t key_size) {
    Message m;
    m.key = numbers.bytes(key_size);
    m.iv = numbers.bytes(numbers.one_in(5) ? 1 + numbers.below(40) : 12);
    m.aad = numbers.bytes(numbers.one_in(3) ? numbers.size() : numbers.below(70));
    m.in = numbers.bytes(numbers.size() + (numbers.one_in(8) ? 524288 + 16 * numbers.below(3) : 0));
    m.aad_cuts = cut(numbers, m.aad.size());
    m.cuts = cut(numbers, m.in.size());
    static constexpr int kTags[] = {16, 16, 16, 12, 13, 8, 4};
    m.tag_size = kTags[numbers.below(7)];
    return m;
}

struct Outcome {
    bool ok = false;
    Bytes out, tag;
};

// One message through a context, which may have done others. `late`: the tag is set at the end.
Outcome run(EVP_CIPHER_CTX* given, const EVP_CIPHER* cipher, bool encrypts, const Message& m,
            const Bytes& tag, Numbers numbers, bool with_key = true) {
    Outcome outcome;
    const bool late = numbers.one_in(2), in_place = numbers.one_in(2), copies = numbers.one_in(4);
    Context copied;
    EVP_CIPHER_CTX* x = given;
    const auto set_tag = [&] {
        return encrypts || EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_SET_TAG, m.tag_size,
                                               const_cast<std::uint8_t*>(tag.data())) == 1;
    };
    // Given once: EVP takes the same cipher again for a context that is to begin anew.
    const bool first = !EVP_CIPHER_CTX_get0_cipher(x);
    if (EVP_CipherInit_ex2(x, first ? cipher : nullptr, nullptr, nullptr, encrypts, nullptr) != 1 ||
        EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(m.iv.size()), nullptr) !=
            1)
        return outcome;
    if (!late && !set_tag()) return outcome;  // before the key
    if (EVP_CipherInit_ex2(x, nullptr, with_key ? m.key.data() : nullptr, m.iv.data(), encrypts,
                           nullptr) != 1)
        return outcome;
    int made = 0;
    std::size_t at = 0;
    for (const std::size_t some : m.aad_cuts) {
        if (EVP_CipherUpdate(x, nullptr, &made, &m.aad[at], static_cast<int>(some)) != 1 ||
            made != static_cast<int>(some))
            return outcome;
        at += some;
    }
    outcome.out = in_place ? m.in : Bytes(m.in.size(), 0x77);
    at = 0;
    for (const std::size_t some : m.cuts) {
        if (copies && numbers.one_in(2)) {
            Context next = context();
            if (EVP_CIPHER_CTX_copy(next.get(), x) != 1) return outcome;
            copied = std::move(next);
            x = copied.get();
        }
        const std::uint8_t* const in = in_place ? &outcome.out[at] : &m.in[at];
        if (EVP_CipherUpdate(x, &outcome.out[at], &made, in, static_cast<int>(some)) != 1 ||
            made != static_cast<int>(some))
            return outcome;
        at += some;
    }
    if (late && !set_tag()) return outcome;
    std::uint8_t none[16];
    outcome.ok = EVP_CipherFinal_ex(x, none, &made) == 1;
    Bytes iv(m.iv.size());
    EXPECT_EQ(EVP_CIPHER_CTX_get_original_iv(x, iv.data(), iv.size()), 1);
    EXPECT_EQ(iv, m.iv);
    if (encrypts && outcome.ok) {
        outcome.tag.resize(static_cast<std::size_t>(m.tag_size));
        EXPECT_EQ(EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_GET_TAG, m.tag_size, outcome.tag.data()), 1);
    }
    // Nothing more without another IV, once it has ended well.
    if (outcome.ok) {
        EXPECT_NE(EVP_CipherUpdate(x, none, &made, none, 1), 1);
    }
    ERR_clear_error();
    return outcome;
}

class GcmProvider : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Bits, GcmProvider, ::testing::Values(128, 192, 256));

TEST_P(GcmProvider, MessagesInEveryCutAreTheDefaultProviders) {
    const std::string name = "AES-" + std::to_string(GetParam()) + "-GCM";
    const auto a = fetch(theirs(), name), b = fetch(ours(), name);
    ASSERT_TRUE(a && b);
    const auto parallel = counter("daelstrom-parallel-updates");
    auto lasting_a = context(), lasting_b = context();
    for (std::uint64_t seed = 1; seed <= kMessages; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Numbers numbers(seed);
        Message m = message(numbers, static_cast<std::size_t>(GetParam()) / 8);
        const bool fresh = numbers.one_in(4);
        auto new_a = context(), new_b = context();
        EVP_CIPHER_CTX* const x = fresh ? new_a.get() : lasting_a.get();
        EVP_CIPHER_CTX* const y = fresh ? new_b.get() : lasting_b.get();
        const Numbers choices(numbers.next());
        const Outcome right = run(x, a.get(), true, m, {}, choices);
        const Outcome mine = run(y, b.get(), true, m, {}, choices);
        ASSERT_TRUE(right.ok);
        ASSERT_TRUE(mine.ok);
        ASSERT_TRUE(mine.out == right.out);
        ASSERT_EQ(mine.tag, right.tag);
        // Back, with the same context, the key given again or kept; and forged.
        Message back = m;
        back.in = right.out;
        const Outcome opened = run(y, b.get(), false, back, right.tag, choices);
        ASSERT_TRUE(opened.ok);
        ASSERT_TRUE(opened.out == m.in);
        Bytes forged = right.tag;
        forged[numbers.below(forged.size())] ^= static_cast<std::uint8_t>(1 << numbers.below(8));
        const Outcome refused = run(y, b.get(), false, back, forged, choices, false);
        ASSERT_FALSE(refused.ok);
        const Outcome once_more = run(y, b.get(), false, back, right.tag, choices, false);
        ASSERT_TRUE(once_more.ok);
    }
    EXPECT_GT(counter("daelstrom-parallel-updates"), parallel);
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

// libssl's way with TLS 1.2: a fixed part of the IV, the AAD as a parameter, and each record with
// its explicit IV and its tag in one call, in place.
TEST_P(GcmProvider, RecordsOfTls12) {
    const std::string name = "AES-" + std::to_string(GetParam()) + "-GCM";
    Numbers numbers(3);
    const Bytes key = numbers.bytes(32);
    Bytes fixed = numbers.bytes(12);
    const Side* const sides[] = {&theirs(), &ours()};
    for (int sender = 0; sender < 2; ++sender) {
        Context seal = context(), open = context();
        const auto from = fetch(*sides[sender], name), to = fetch(*sides[1 - sender], name);
        for (auto* x : {&seal, &open}) {
            const bool encrypts = x == &seal;
            ASSERT_EQ(EVP_CipherInit_ex2(x->get(), encrypts ? from.get() : to.get(), key.data(),
                                         nullptr, encrypts, nullptr),
                      1);
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(x->get(), EVP_CTRL_GCM_SET_IV_FIXED, 4, fixed.data()), 1);
        }
        for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 100u, 255u, 1400u, 16384u}) {
            const Bytes plain = numbers.bytes(size);
            Bytes record(8 + size + 16);
            std::copy(plain.begin(), plain.end(), record.begin() + 8);
            Bytes aad = numbers.bytes(13);
            aad[11] = static_cast<std::uint8_t>((size + 8) >> 8);
            aad[12] = static_cast<std::uint8_t>(size + 8);
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(seal.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, aad.data()), 16);
            const auto all = static_cast<unsigned>(record.size());
            ASSERT_EQ(EVP_Cipher(seal.get(), record.data(), record.data(), all), int(all));
            aad[11] = static_cast<std::uint8_t>(record.size() >> 8);
            aad[12] = static_cast<std::uint8_t>(record.size());
            Bytes forged = record;
            forged.back() ^= 1;
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(open.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, aad.data()), 16);
            ASSERT_EQ(EVP_Cipher(open.get(), record.data(), record.data(), all), int(all));
            ASSERT_TRUE(std::equal(plain.begin(), plain.end(), record.begin() + 8));
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(open.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, aad.data()), 16);
            ASSERT_LE(EVP_Cipher(open.get(), forged.data(), forged.data(), all), 0);
        }
    }
    ERR_clear_error();
}

Bytes aad_of_record(std::size_t size) {  // with its nonce, and with its tag when it is opened
    Bytes aad(13, 0x17);
    aad[11] = static_cast<std::uint8_t>(size >> 8);
    aad[12] = static_cast<std::uint8_t>(size);
    return aad;
}

// Records from the same number on, which a size of -1 sets, are the default provider's to the byte:
// so is what happens to the number when a context is copied, when the provider's own way is left
// amid a connection, and with records that are none.
TEST_P(GcmProvider, RecordsOfTls12ToTheByte) {
    const std::string name = "AES-" + std::to_string(GetParam()) + "-GCM";
    const auto updates = counter("daelstrom-updates");
    std::vector<Bytes> all[2];
    for (int side = 0; side < 2; ++side) {
        Numbers numbers(21);
        const auto cipher = fetch(side == 0 ? theirs() : ours(), name);
        const Bytes key = numbers.bytes(32);
        Bytes iv(12, 0xff);  // whose count wraps
        const auto note = [&](long value) {
            Bytes bytes(sizeof value);
            std::memcpy(bytes.data(), &value, sizeof value);
            all[side].push_back(bytes);
        };
        auto x = context();
        EVP_CipherInit_ex2(x.get(), cipher.get(), key.data(), nullptr, 1, nullptr);
        note(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_GCM_SET_IV_FIXED, -1, iv.data()));
        for (int i = 0; i < 60; ++i) {
            const std::size_t size = numbers.size() % 16385;
            Bytes record = numbers.bytes(8 + size + 16), aad = aad_of_record(size + 8);
            if (i == 20) {
                Context copy = context();
                note(EVP_CIPHER_CTX_copy(copy.get(), x.get()));
                x = std::move(copy);
            }
            if (i == 45) {  // OpenSSL's own counting, which goes on from here
                Bytes number(8);
                note(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_GCM_IV_GEN, 8, number.data()));
                all[side].push_back(number);
            }
            note(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, aad.data()));
            if (i % 10 == 7) {  // not in place: refused, and no number is used up
                Bytes other(record.size());
                note(EVP_Cipher(x.get(), other.data(), record.data(),
                                static_cast<unsigned>(record.size())));
                continue;
            }
            if (i % 10 == 3) {  // by EVP_CipherUpdate(), which says another size
                int made = -1;
                note(EVP_CipherUpdate(x.get(), record.data(), &made, record.data(),
                                      static_cast<int>(record.size())));
                note(made);
            } else {
                note(EVP_Cipher(x.get(), record.data(), record.data(),
                                static_cast<unsigned>(record.size())));
            }
            all[side].push_back(record);
            // And back, by a context of the same side.
            auto back = context();
            EVP_CipherInit_ex2(back.get(), cipher.get(), key.data(), nullptr, 0, nullptr);
            EVP_CIPHER_CTX_ctrl(back.get(), EVP_CTRL_GCM_SET_IV_FIXED, 4, iv.data());
            Bytes opening = aad_of_record(record.size());
            if (i % 6 == 5) opening[0] ^= 1;  // forged
            note(EVP_CIPHER_CTX_ctrl(back.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, opening.data()));
            int made = -1;
            note(EVP_CipherUpdate(back.get(), record.data(), &made, record.data(),
                                  static_cast<int>(record.size())));
            note(made);
            if (i % 6 != 5) {
                all[side].push_back(record);
            } else {  // nothing of it is released
                EXPECT_TRUE(std::all_of(record.begin() + 8, record.end() - 16,
                                        [](std::uint8_t byte) { return byte == 0; }));
            }
        }
        Bytes too_short = aad_of_record(7);
        note(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, too_short.data()));
        note(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_TLS1_AAD, 12, too_short.data()));
    }
    EXPECT_EQ(all[0].size(), all[1].size());
    for (std::size_t i = 0; i < std::min(all[0].size(), all[1].size()); ++i)
        ASSERT_TRUE(all[0][i] == all[1][i]) << i;
    const char* on = nullptr;
    OSSL_PARAM asked[] = {
        OSSL_PARAM_construct_utf8_ptr("daelstrom-vectors", const_cast<char**>(&on), 0),
        OSSL_PARAM_construct_end()};
    ASSERT_EQ(OSSL_PROVIDER_get_params(ours().daelstrom, asked), 1);
    if (std::strcmp(on, "on") == 0) {
        EXPECT_GT(counter("daelstrom-updates"), updates);
    }
    ERR_clear_error();
}

// Every short length of data and of additional data, in up to three pieces each.
TEST_P(GcmProvider, EveryShortLength) {
    const std::string name = "AES-" + std::to_string(GetParam()) + "-GCM";
    const auto a = fetch(theirs(), name), b = fetch(ours(), name);
    Numbers numbers(31);
    auto x = context(), y = context();
    for (std::size_t i = 0; i < 1000; ++i) {
        SCOPED_TRACE(i);
        Message m;
        m.key = numbers.bytes(static_cast<std::size_t>(GetParam()) / 8);
        m.iv = numbers.bytes(12);
        m.aad = numbers.bytes(i % 3 == 0 ? i % 331 : i % 41);
        m.in = numbers.bytes(i % 700);
        for (auto* cuts : {&m.aad_cuts, &m.cuts}) {
            std::size_t left = cuts == &m.cuts ? m.in.size() : m.aad.size();
            for (int part = 0; part < 2 && left != 0 && numbers.one_in(2); ++part) {
                cuts->push_back(1 + numbers.below(left));
                left -= cuts->back();
            }
            if (left != 0) cuts->push_back(left);
        }
        const Numbers choices(numbers.next());
        const Outcome right = run(x.get(), a.get(), true, m, {}, choices);
        const Outcome mine = run(y.get(), b.get(), true, m, {}, choices);
        ASSERT_TRUE(right.ok && mine.ok);
        ASSERT_EQ(mine.out, right.out);
        ASSERT_EQ(mine.tag, right.tag);
        Message back = m;
        back.in = right.out;
        const Outcome opened = run(y.get(), b.get(), false, back, right.tag, choices);
        ASSERT_TRUE(opened.ok);
        ASSERT_EQ(opened.out, m.in);
    }
}

TEST_P(GcmProvider, TheOrderOfCallsIsHeld) {
    const std::string name = "AES-" + std::to_string(GetParam()) + "-GCM";
    for (const Side* side : {&theirs(), &ours()}) {
        const auto cipher = fetch(*side, name);
        Bytes key(32, 7), iv(12, 9), room(70000), tag(16);
        int made = 0;
        auto x = context();
        ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), cipher.get(), nullptr, iv.data(), nullptr), 1);
        EXPECT_NE(EVP_EncryptUpdate(x.get(), room.data(), &made, room.data(), 16), 1);  // no key
        ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), nullptr, key.data(), iv.data(), nullptr), 1);
        EXPECT_NE(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data()), 1);
        for (const int size : {100, 66000}) {
            ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), nullptr, nullptr, iv.data(), nullptr), 1);
            ASSERT_EQ(EVP_EncryptUpdate(x.get(), room.data(), &made, room.data(), size), 1);
            EXPECT_NE(EVP_EncryptUpdate(x.get(), nullptr, &made, iv.data(), 5), 1);  // AAD too late
            ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), nullptr, nullptr, iv.data(), nullptr), 1);
            ASSERT_EQ(EVP_EncryptUpdate(x.get(), room.data(), &made, room.data(), size), 1);
            ASSERT_EQ(EVP_EncryptFinal_ex(x.get(), room.data(), &made), 1);
            EXPECT_NE(EVP_EncryptFinal_ex(x.get(), room.data(), &made), 1);
        }
        auto open = context();  // no tag at all
        ASSERT_EQ(EVP_DecryptInit_ex2(open.get(), cipher.get(), key.data(), iv.data(), nullptr), 1);
        ASSERT_EQ(EVP_DecryptUpdate(open.get(), room.data(), &made, room.data(), 64), 1);
        EXPECT_NE(EVP_DecryptFinal_ex(open.get(), room.data(), &made), 1);
    }
    ERR_clear_error();
}

}  // namespace
