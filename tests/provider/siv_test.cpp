// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV by the provider, where OpenSSL has it (3.2): EVP's calls in any order on a context of
// the default provider and on one of ours, which do the same. With an older OpenSSL nothing of it
// is offered, which is tested there.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "evp.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael::test;

class ProviderSiv : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        ASSERT_TRUE(ours().daelstrom);
        for (int side = 0; side < 2; ++side)
            cipher_[side] = fetch(side == 0 ? theirs() : ours(), GetParam());
        if (cipher_[0]) return;
        ERR_clear_error();
        EXPECT_FALSE(cipher_[1]);
        GTEST_SKIP() << "OpenSSL has GCM-SIV from 3.2 on; this is "
                     << OpenSSL_version(OPENSSL_VERSION);
    }
    std::size_t key_size() const {
        return static_cast<std::size_t>(EVP_CIPHER_get_key_length(cipher_[0].get()));
    }

    Cipher cipher_[2];
};
std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
    std::string name = info.param;
    std::erase(name, '-');
    return name;
}
INSTANTIATE_TEST_SUITE_P(All, ProviderSiv,
                         ::testing::Values("AES-128-GCM-SIV", "AES-192-GCM-SIV", "AES-256-GCM-SIV"),
                         name_of);

struct Both {
    Context x[2];
    std::string log;

    template <class Call>
    int operator()(const std::string& what, Call call) {
        log += "  " + what + "\n";
        int result[2];
        for (int side : {0, 1}) {
            ERR_clear_error();
            result[side] = call(x[side].get(), side) > 0;
            EXPECT_FALSE(result[side] && ERR_peek_error()) << log;
        }
        ERR_clear_error();
        EXPECT_EQ(result[0], result[1]) << "theirs, ours:\n" << log;
        return result[0];
    }
};

// A message sealed and opened as programs do, in place and apart, under contexts that are used
// again; forged, it is refused, and ours hands nothing out.
TEST_P(ProviderSiv, SealsAndOpensAsThere) {
    Numbers numbers(9);
    const auto before = counter("daelstrom-bytes") + counter("daelstrom-parallel-bytes");
    Both both;
    for (auto& x : both.x) x = context();
    for (int round = 0; round < thorough(300, 60); ++round) {
        const Bytes key = numbers.bytes(key_size()), nonce = numbers.bytes(12),
                    aad = numbers.bytes(numbers.below(3) == 0 ? numbers.below(100) : 0),
                    plain = numbers.bytes(numbers.size());
        const bool in_place = numbers.below(2) != 0, fresh = numbers.below(3) == 0;
        both.log.clear();
        if (fresh)
            for (auto& x : both.x) x = context();
        const auto begin = [&](bool seals) {
            both("init " + std::to_string(seals), [&](EVP_CIPHER_CTX* x, int side) {
                return EVP_CipherInit_ex2(x, cipher_[side].get(), key.data(), nonce.data(), seals,
                                          nullptr);
            });
            // Of no AAD none is left, whatever the version.
            for (const Bytes& part : {Bytes(), aad})
                both("aad " + std::to_string(part.size()), [&](EVP_CIPHER_CTX* x, int) {
                    int written = 0;
                    return EVP_CipherUpdate(x, nullptr, &written, nonce.data(), 0) > 0 &&
                           (part.empty() || EVP_CipherUpdate(x, nullptr, &written, part.data(),
                                                             static_cast<int>(part.size())) > 0);
                });
        };
        Bytes made[2], tag[2];
        begin(true);
        both("data " + std::to_string(plain.size()), [&](EVP_CIPHER_CTX* x, int side) {
            made[side] = in_place ? plain : Bytes(plain.size(), 0xa5);
            made[side].push_back(0);  // of nothing, too, there is an address
            int written = 0;
            return EVP_CipherUpdate(x, made[side].data(), &written,
                                    in_place ? made[side].data() : plain.data(),
                                    static_cast<int>(plain.size()));
        });
        both("final", [&](EVP_CIPHER_CTX* x, int) {
            Bytes unused(16);
            int written = 0;
            return EVP_CipherFinal_ex(x, unused.data(), &written);
        });
        ASSERT_TRUE(both("tag", [&](EVP_CIPHER_CTX* x, int side) {
            tag[side].resize(16);
            return EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_GET_TAG, 16, tag[side].data());
        }));
        ASSERT_EQ(made[0], made[1]) << both.log;
        ASSERT_EQ(tag[0], tag[1]) << both.log;
        for (const bool forged : {true, false}) {
            Bytes sent = tag[0], opened[2];
            sent[numbers.below(16)] ^= forged ? 4 : 0;
            begin(false);
            both("set tag", [&](EVP_CIPHER_CTX* x, int) {
                return EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_SET_TAG, 16, sent.data());
            });
            both("opened", [&](EVP_CIPHER_CTX* x, int side) {
                opened[side] = in_place ? made[0] : Bytes(made[0].size(), 0xa5);
                int written = 0;
                return EVP_CipherUpdate(x, opened[side].data(), &written,
                                        in_place ? opened[side].data() : made[0].data(),
                                        static_cast<int>(plain.size()));
            });
            EXPECT_EQ(both("final",
                           [&](EVP_CIPHER_CTX* x, int) {
                               Bytes unused(16);
                               int written = 0;
                               return EVP_CipherFinal_ex(x, unused.data(), &written);
                           }),
                      !forged);
            if (!forged) {
                opened[1].pop_back();
                ASSERT_EQ(opened[1], plain) << both.log;
            }
        }
        if (HasFailure()) return;
    }
    if (key_size() == 24) return;  // the default provider's
    EXPECT_GT(counter("daelstrom-bytes") + counter("daelstrom-parallel-bytes"), before);
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

// In place, by a context that has its key and nonce: what is there then, and the tag.
Bytes sealed_in_place(const EVP_CIPHER_CTX* begun, Bytes data) {
    const Context x = context();
    Bytes tag(16);
    int written = 0;
    if (EVP_CIPHER_CTX_copy(x.get(), begun) != 1 ||
        EVP_CipherUpdate(x.get(), data.data(), &written, data.data(),
                         static_cast<int>(data.size())) != 1 ||
        EVP_CipherFinal_ex(x.get(), tag.data(), &written) != 1 ||
        EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data()) != 1)
        return {};
    data.insert(data.end(), tag.begin(), tag.end());
    return data;
}

// Copies of one context by threads at once, and by a child of fork() after the engine was used.
TEST_P(ProviderSiv, IsThereForThreadsAndChildren) {
    Numbers numbers(3);
    const Bytes key = numbers.bytes(key_size()), nonce = numbers.bytes(12);
    for (const std::size_t size : {std::size_t{100}, std::size_t{5000}, std::size_t{200'000}}) {
        const Bytes plain = numbers.bytes(size);
        Context begun[2] = {context(), context()};
        for (int side : {0, 1}) {
            int written = 0;
            ASSERT_EQ(EVP_EncryptInit_ex2(begun[side].get(), cipher_[side].get(), key.data(),
                                          nonce.data(), nullptr),
                      1);
            ASSERT_EQ(EVP_EncryptUpdate(begun[side].get(), nullptr, &written, nonce.data(), 5), 1);
        }
        const Bytes expected = sealed_in_place(begun[0].get(), plain);
        ASSERT_FALSE(expected.empty());
        std::array<Bytes, 4> made;
        std::vector<std::thread> threads;
        for (Bytes& one : made)
            threads.emplace_back([&] {
                for (int i = 0; i < 8; ++i) one = sealed_in_place(begun[1].get(), plain);
            });
        for (auto& thread : threads) thread.join();
        for (const Bytes& one : made) EXPECT_EQ(one, expected);
        const pid_t child = fork();
        if (child == 0) _exit(sealed_in_place(begun[1].get(), plain) == expected ? 0 : 1);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << size << ": " << status;
        EXPECT_EQ(sealed_in_place(begun[1].get(), plain), expected);
    }
}

// Calls in any order: parts missing, twice, too late; copies amid a message.
TEST_P(ProviderSiv, WalksAsThere) {
    for (Walks walks(GetParam(), thorough<std::uint64_t>(2000, 300));
         walks.next() && !HasFailure();) {
        Numbers numbers(walks.seed());
        const auto below = [&](std::size_t n) { return numbers.below(n); };
        Both both;
        for (auto& x : both.x) x = context();
        bool seals = true, first = true, comparable = true, tagged = false, data_came = false;
        for (int step = 0; step < 24 && !HasFailure(); ++step) {
            const Bytes key = numbers.bytes(key_size()), nonce = numbers.bytes(12);
            switch (first ? 0 : below(9)) {
                case 0:
                case 1: {
                    const bool with_key = first || below(2), with_nonce = first || below(4);
                    seals = below(2) != 0;
                    both(std::string("init ") + (seals ? "seal" : "open") +
                             (with_key ? " key" : "") + (with_nonce ? " nonce" : ""),
                         [&](EVP_CIPHER_CTX* x, int side) {
                             return EVP_CipherInit_ex2(
                                 x, first || below(1) ? cipher_[side].get() : nullptr,
                                 with_key ? key.data() : nullptr,
                                 with_nonce ? nonce.data() : nullptr, seals, nullptr);
                         });
                    first = data_came = false;
                    comparable = true;
                    break;
                }
                case 2: {
                    const Bytes aad = numbers.bytes(below(40));
                    both("aad " + std::to_string(aad.size()), [&](EVP_CIPHER_CTX* x, int) {
                        int written = 0;
                        return EVP_CipherUpdate(x, nullptr, &written, nonce.data(), 0) > 0 &&
                               EVP_CipherUpdate(x, nullptr, &written, aad.data(),
                                                static_cast<int>(aad.size()));
                    });
                    break;
                }
                case 3:
                    if (seals) break;
                    both("set tag", [&](EVP_CIPHER_CTX* x, int) {
                        Bytes tag(nonce);
                        tag.resize(16);
                        return EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_SET_TAG, 16, tag.data());
                    });
                    tagged = true;
                    break;
                case 4:
                case 5: {
                    const Bytes in = numbers.bytes(below(3) == 0 ? numbers.size() : below(50));
                    Bytes out[2];
                    both("data " + std::to_string(in.size()), [&](EVP_CIPHER_CTX* x, int side) {
                        out[side].assign(in.size() + 1, 0xa5);
                        int written = 0;
                        return EVP_CipherUpdate(x, out[side].data(), &written, in.data(),
                                                static_cast<int>(in.size()));
                    });
                    if (seals && comparable && !data_came) {
                        EXPECT_EQ(out[0], out[1]) << both.log;
                    }
                    data_came = true;
                    break;
                }
                case 6:
                    both("final", [&](EVP_CIPHER_CTX* x, int) {
                        Bytes unused(16);
                        int written = 0;
                        return EVP_CipherFinal_ex(x, unused.data(), &written);
                    });
                    break;
                case 7: {
                    Bytes tag[2] = {Bytes(16), Bytes(16)};
                    if (both("get tag", [&](EVP_CIPHER_CTX* x, int side) {
                            return EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_AEAD_GET_TAG, 16,
                                                       tag[side].data());
                        })) {
                        EXPECT_EQ(tag[0], tag[1]) << both.log;
                    }
                    EXPECT_EQ(EVP_CIPHER_CTX_get_key_length(both.x[0].get()),
                              EVP_CIPHER_CTX_get_key_length(both.x[1].get()));
                    EXPECT_EQ(EVP_CIPHER_CTX_get_tag_length(both.x[0].get()),
                              EVP_CIPHER_CTX_get_tag_length(both.x[1].get()));
                    break;
                }
                default: {
                    Context copy[2] = {context(), context()};
                    if (both("copy",
                             [&](EVP_CIPHER_CTX* x, int side) {
                                 return EVP_CIPHER_CTX_copy(copy[side].get(), x);
                             }) &&
                        below(2))
                        for (int side : {0, 1}) std::swap(both.x[side], copy[side]);
                    break;
                }
            }
            walks.step();
        }
        (void)tagged;
        EXPECT_FALSE(HasFailure()) << walks.text() << "\n" << both.log;
    }
}

}  // namespace
