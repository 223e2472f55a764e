// SPDX-License-Identifier: Apache-2.0
// What is on OpenSSL's queue after GCM has refused a tag: what the default provider puts there,
// which differs between OpenSSL's versions.
#include "refusals.hpp"

#include <openssl/proverr.h>

#include "evp.hpp"

namespace {

using namespace dael::test;
using dael::provider::Basis;
using dael::provider::Refusal;

// Library and reason of all that is on the queue, which is empty then.
std::vector<std::pair<int, int>> queue() {
    std::vector<std::pair<int, int>> all;
    while (const unsigned long error = ERR_get_error())
        all.emplace_back(ERR_GET_LIB(error), ERR_GET_REASON(error));
    return all;
}

// A default provider of another version: it answers with a reason of its own for each call.
struct Fake {
    static inline int final_reason = 0, set_reason = 0, get_reason = 0, cipher_reason = 0;
    static inline int library = ERR_LIB_PROV, contexts = 0;
    static inline bool has_memory = true, begins = true;
    static int raise(int reason) {
        if (reason != 0) ERR_raise(library, reason);
        return 0;
    }
    static Basis basis() {
        Basis b{};
        b.key_bytes = 16;
        b.newctx = [](void*) -> void* { return has_memory ? ++contexts, &contexts : nullptr; };
        b.freectx = [](void*) { --contexts; };
        b.encrypt_init =
            b.decrypt_init = [](void*, const unsigned char*, std::size_t, const unsigned char*,
                                std::size_t, const OSSL_PARAM*) { return begins ? 1 : 0; };
        b.final = [](void*, unsigned char*, std::size_t*, std::size_t) {
            return raise(final_reason);
        };
        b.cipher = [](void*, unsigned char*, std::size_t*, std::size_t, const unsigned char*,
                      std::size_t) { return raise(cipher_reason); };
        b.get_ctx_params = [](void*, OSSL_PARAM*) { return raise(get_reason); };
        b.set_ctx_params = [](void*, const OSSL_PARAM*) {
            return set_reason == 0 ? 1 : raise(set_reason);
        };
        return b;
    }
};

TEST(ProviderRefusals, AreAskedOfTheDefaultProviderThatIsThere) {
    using dael::provider::ask_refusal;
    const Basis gcm = Fake::basis();
    ERR_clear_error();
    ERR_raise(ERR_LIB_USER, 7);  // of the program's, which stays
    for (const auto refusal : {Refusal::wrong_tag, Refusal::no_tag, Refusal::forged_record,
                               Refusal::none_made, Refusal::not_needed})
        EXPECT_EQ(ask_refusal(gcm, refusal), 0);
    Fake::final_reason = PROV_R_BAD_DECRYPT;
    Fake::cipher_reason = PROV_R_CIPHER_OPERATION_FAILED;
    Fake::get_reason = PROV_R_TAG_NOT_SET;
    EXPECT_EQ(ask_refusal(gcm, Refusal::wrong_tag), PROV_R_BAD_DECRYPT);
    EXPECT_EQ(ask_refusal(gcm, Refusal::no_tag), PROV_R_BAD_DECRYPT);
    EXPECT_EQ(ask_refusal(gcm, Refusal::forged_record), PROV_R_CIPHER_OPERATION_FAILED);
    EXPECT_EQ(ask_refusal(gcm, Refusal::none_made), PROV_R_TAG_NOT_SET);
    Fake::set_reason = PROV_R_TAG_NOT_NEEDED;
    EXPECT_EQ(ask_refusal(gcm, Refusal::not_needed), PROV_R_TAG_NOT_NEEDED);
    EXPECT_EQ(Fake::contexts, 0);
    const std::vector<std::pair<int, int>> programs{{ERR_LIB_USER, 7}};
    EXPECT_EQ(queue(), programs);
    // Asked once.
    Fake::final_reason = PROV_R_BAD_DECRYPT;
    Fake::set_reason = 0;
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(dael::provider::refuse(gcm, Refusal::wrong_tag, "why"), 0);
        const std::vector<std::pair<int, int>> one{{ERR_LIB_PROV, PROV_R_BAD_DECRYPT}};
        EXPECT_EQ(queue(), one);
        Fake::final_reason = 0;
    }
}

// What could not be asked is no answer, and is asked again.
TEST(ProviderRefusals, AreAskedAgainWhereNobodyCouldAnswer) {
    using dael::provider::ask_refusal;
    using dael::provider::refuse;
    const Basis gcm = Fake::basis();
    ERR_clear_error();
    Fake::set_reason = Fake::final_reason = 0;
    Fake::get_reason = PROV_R_TAG_NOT_SET;
    const auto says_nothing = [&] {
        EXPECT_EQ(ask_refusal(gcm, Refusal::none_made), std::nullopt);
        EXPECT_EQ(refuse(gcm, Refusal::none_made, "why"), 0);
        EXPECT_TRUE(queue().empty());
        EXPECT_EQ(Fake::contexts, 0);
    };
    Fake::has_memory = false;
    says_nothing();
    Fake::has_memory = true;
    Fake::begins = false;
    says_nothing();
    Fake::begins = true;
    Fake::get_reason = ERR_R_MALLOC_FAILURE;
    for (const int library : {ERR_LIB_PROV, ERR_LIB_CRYPTO, ERR_LIB_EVP}) {  // whoever notes it
        Fake::library = library;
        says_nothing();
    }
    Fake::library = ERR_LIB_PROV;
    Fake::get_reason = PROV_R_TAG_NOT_SET;
    // A call before the one that would be refused.
    Fake::set_reason = ERR_R_MALLOC_FAILURE;
    for (const auto refusal : {Refusal::wrong_tag, Refusal::forged_record})
        EXPECT_EQ(ask_refusal(gcm, refusal), std::nullopt);
    Fake::set_reason = 0;
    const std::vector<std::pair<int, int>> one{{ERR_LIB_PROV, PROV_R_TAG_NOT_SET}};
    EXPECT_EQ(refuse(gcm, Refusal::none_made, "why"), 0);
    EXPECT_EQ(queue(), one);
    Fake::has_memory = false;  // known by now
    EXPECT_EQ(refuse(gcm, Refusal::none_made, "why"), 0);
    EXPECT_EQ(queue(), one);
    Fake::has_memory = true;
}

enum class Case { wrong_tag, no_tag, none_made, too_early, not_needed, too_long, none_long };

// The last of it, which is the provider's word; OpenSSL's own functions may have said why before.
std::pair<int, int> last_of_queue() {
    const auto all = queue();
    return all.empty() ? std::pair<int, int>{} : all.back();
}

// What a call that is refused leaves, for a message of so many bytes.
std::pair<int, int> refused(const EVP_CIPHER* cipher, Case which, std::size_t bytes) {
    auto x = context();
    const Bytes key(32, 1), iv(12, 2), in(bytes, 3);
    Bytes out(bytes + 16), tag(32, 4);
    int made = 0;
    const bool seals = which == Case::too_early || which == Case::not_needed;
    ERR_clear_error();
    EXPECT_EQ(EVP_CipherInit_ex2(x.get(), cipher, key.data(), iv.data(), seals, nullptr), 1);
    if (bytes != 0) {
        EXPECT_EQ(EVP_CipherUpdate(x.get(), out.data(), &made, in.data(), static_cast<int>(bytes)),
                  1);
    }
    EXPECT_TRUE(queue().empty());
    const auto control = [&](int what, int size) {
        return EVP_CIPHER_CTX_ctrl(x.get(), what, size, tag.data());
    };
    switch (which) {
        case Case::wrong_tag:
            EXPECT_EQ(control(EVP_CTRL_AEAD_SET_TAG, 16), 1);
            [[fallthrough]];
        case Case::no_tag:
            EXPECT_LE(EVP_CipherFinal_ex(x.get(), out.data(), &made), 0);
            break;
        case Case::none_made:
        case Case::too_early:
            EXPECT_LE(control(EVP_CTRL_AEAD_GET_TAG, 16), 0);
            break;
        case Case::not_needed:
            EXPECT_LE(control(EVP_CTRL_AEAD_SET_TAG, 16), 0);
            break;
        case Case::too_long:
        case Case::none_long: {
            OSSL_PARAM one[] = {
                OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag.data(),
                                                  which == Case::too_long ? 17 : 0),
                OSSL_PARAM_construct_end()};
            EXPECT_LE(EVP_CIPHER_CTX_set_params(x.get(), one), 0);
        }
    }
    return last_of_queue();
}

// By every way that a message goes: what begins, vectors or pieces, in parallel.
TEST(ProviderRefusals, LeaveOnTheQueueWhatTheDefaultProviderLeaves) {
    ASSERT_TRUE(ours().daelstrom);
    for (const char* name : {"AES-128-GCM", "AES-256-GCM"}) {
        const auto mine = fetch(ours(), name), default_one = fetch(theirs(), name);
        ASSERT_TRUE(mine && default_one);
        for (const auto which : {Case::wrong_tag, Case::no_tag, Case::none_made, Case::too_early,
                                 Case::not_needed, Case::too_long, Case::none_long})
            for (const std::size_t bytes : {0u, 100u, 5000u, 600000u})
                EXPECT_EQ(refused(mine.get(), which, bytes),
                          refused(default_one.get(), which, bytes))
                    << name << ", case " << static_cast<int>(which) << ", " << bytes << " bytes";
    }
}

std::pair<int, int> forged(const EVP_CIPHER* cipher) {
    auto x = context();
    Bytes key(16, 1), fixed(4, 2), header(13, 3), record(8 + 100 + 16, 4);
    header[11] = 0;
    header[12] = static_cast<std::uint8_t>(record.size());
    EXPECT_EQ(EVP_DecryptInit_ex2(x.get(), cipher, key.data(), nullptr, nullptr), 1);
    EXPECT_EQ(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_GCM_SET_IV_FIXED, 4, fixed.data()), 1);
    EXPECT_EQ(EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_TLS1_AAD, 13, header.data()), 16);
    EXPECT_TRUE(queue().empty());
    EXPECT_LT(
        EVP_Cipher(x.get(), record.data(), record.data(), static_cast<unsigned>(record.size())), 0);
    return last_of_queue();
}
TEST(ProviderRefusals, OfARecordLeaveWhatTheDefaultProviderLeaves) {
    const auto mine = fetch(ours(), "AES-128-GCM"), default_one = fetch(theirs(), "AES-128-GCM");
    ASSERT_TRUE(mine && default_one);
    EXPECT_EQ(forged(mine.get()), forged(default_one.get()));
}

}  // namespace
