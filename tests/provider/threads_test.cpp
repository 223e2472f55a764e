// SPDX-License-Identifier: Apache-2.0
// Many threads that come at once: to a module that nobody has loaded yet, to its first cipher, to
// one context that all of them copy; and fork() amid their work.
#include <barrier>
#include <thread>

#include "evp.hpp"
#include "support/child.hpp"

namespace {

using namespace dael::test;

constexpr int kThreads = 8;

template <class Run>
void by_threads(Run run) {
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            start.arrive_and_wait();
            run(i);
        });
    for (auto& thread : threads) thread.join();
}

std::string text(OSSL_PROVIDER* provider, const char* name) {
    const char* value = "";
    OSSL_PARAM asked[] = {OSSL_PARAM_construct_utf8_ptr(name, const_cast<char**>(&value), 0),
                          OSSL_PARAM_construct_end()};
    EXPECT_EQ(OSSL_PROVIDER_get_params(provider, asked), 1);
    return value;
}

// What a context makes of more data: how much, and the bytes.
Bytes more(EVP_CIPHER_CTX* x, const Bytes& plain) {
    Bytes out(plain.size() + 32);
    int made = -1;
    if (EVP_EncryptUpdate(x, out.data(), &made, plain.data(), static_cast<int>(plain.size())) != 1)
        return {};
    out.resize(static_cast<std::size_t>(made));
    return out;
}
Context begun(const Side& side, const char* name, const Bytes& plain) {
    const Bytes key(32, 7), iv(16, 9);
    const auto cipher = fetch(side, name);
    auto x = context();
    if (!cipher ||
        EVP_EncryptInit_ex2(x.get(), cipher.get(), key.data(), iv.data(), nullptr) != 1 ||
        more(x.get(), plain).size() != plain.size())
        return nullptr;
    return x;
}

// The first case: each thread loads the module into a library context of its own, and whatever it
// then finds is what the environment says, whoever was first.
TEST(Threads, LoadTheModuleAtOnce) {
    prepare();
    setenv("DAELSTROM_PROVIDER_BACKEND", "cpu", 1);
    by_threads([](int) {
        const Side side = loaded();
        ASSERT_TRUE(side.daelstrom && side.standard);
        EXPECT_EQ(text(side.daelstrom, "daelstrom-backend"), "cpu");
        EXPECT_EQ(text(side.daelstrom, OSSL_PROV_PARAM_BUILDINFO).rfind("daelstrom ", 0), 0u);
        EXPECT_TRUE(begun(side, "AES-256-GCM", Bytes(100)));
        OSSL_PROVIDER_unload(side.daelstrom);
        OSSL_PROVIDER_unload(side.standard);
        OSSL_LIB_CTX_free(side.library);
    });
}

// In one library context, which none of them has asked for a cipher before.
TEST(Threads, FetchTheirFirstCipherAtOnce) {
    for (int round = 0; round < 5; ++round) {
        const Side side = loaded();
        by_threads([&](int i) {
            const char* const names[] = {"AES-256-GCM", "AES-128-CTR", "AES-192-CBC",
                                         "AES-256-XTS"};
            EXPECT_TRUE(fetch(side, names[i % 4])) << names[i % 4];
            EXPECT_EQ(text(side.daelstrom, OSSL_PROV_PARAM_BUILDINFO).rfind("daelstrom ", 0), 0u);
        });
        OSSL_PROVIDER_unload(side.daelstrom);
        OSSL_PROVIDER_unload(side.standard);
        OSSL_LIB_CTX_free(side.library);
    }
}

// Which no copy changes: openssl-threads(7) lets threads use what they do not modify.
TEST(Threads, CopyOneContext) {
    Numbers numbers(3);
    // The beginning by the calling thread, by all cores; then what every copy goes on with.
    const Bytes small = numbers.bytes(50000), large = numbers.bytes(3000000),
                next = numbers.bytes(4096);
    for (const char* name : {"AES-256-CTR", "AES-256-CBC", "AES-256-ECB", "AES-256-GCM"}) {
        for (const Bytes* first : {&small, &large}) {
            Bytes plain = *first;
            plain.resize(plain.size() / 16 * 16);
            const auto one = begun(ours(), name, plain), oracle = begun(theirs(), name, plain);
            ASSERT_TRUE(one && oracle) << name;
            const Bytes right = more(oracle.get(), next);
            by_threads([&](int) {
                auto copy = context();
                ASSERT_EQ(EVP_CIPHER_CTX_copy(copy.get(), one.get()), 1) << name;
                EXPECT_EQ(more(copy.get(), next), right) << name;
            });
            EXPECT_EQ(more(one.get(), next), right) << name;
        }
    }
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

// The children are of one thread, and find the engine as the others left it.
TEST(Threads, WorkWhileOthersFork) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a child under ThreadSanitizer may start no threads";
#endif
    const Bytes data = Numbers(4).bytes(300000);
    const Bytes right = more(begun(theirs(), "AES-256-CTR", {}).get(), data);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            while (!stop) {
                const auto x = begun(ours(), "AES-256-CTR", {});
                EXPECT_EQ(more(x.get(), data), right);
            }
        });
    const auto x = begun(ours(), "AES-256-CTR", {}), small = begun(ours(), "AES-256-CTR", {});
    const Bytes few(data.begin(), data.begin() + 1000);
    for (int i = 0; i < 20; ++i)
        expect_in_a_child([&] {
            const Bytes made = more(small.get(), few);
            return std::equal(made.begin(), made.end(), right.begin()) &&
                   more(x.get(), data) == right;
        });
    stop = true;
    for (auto& thread : threads) thread.join();
}

}  // namespace
