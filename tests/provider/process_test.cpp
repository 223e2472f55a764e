// SPDX-License-Identifier: Apache-2.0
// What the provider is to a process: nothing before it is needed, whole after fork(), many threads
// at once, its own use of OpenSSL apart from it, and random numbers by way of it.
#include <dirent.h>
#include <openssl/rand.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "evp.hpp"

namespace {

using namespace dael::test;

int threads_here() {
    int count = 0;
    DIR* const folder = opendir("/proc/self/task");
    while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

// A message both ways, against the default provider's.
bool message_is_right(std::size_t size, std::uint64_t seed) {
    Numbers numbers(seed);
    const Bytes key = numbers.bytes(32), iv = numbers.bytes(16), plain = numbers.bytes(size);
    for (const char* name : {"AES-256-GCM", "AES-256-CTR", "AES-256-CBC"}) {
        Bytes out[2], tags[2];
        for (int i = 0; i < 2; ++i) {
            const auto cipher = fetch(i == 0 ? theirs() : ours(), name);
            auto x = context();
            int made = 0, end = 0;
            out[i].resize(size + 32);
            tags[i].resize(16);
            if (EVP_EncryptInit_ex2(x.get(), cipher.get(), key.data(), iv.data(), nullptr) != 1 ||
                EVP_EncryptUpdate(x.get(), out[i].data(), &made, plain.data(),
                                  static_cast<int>(size)) != 1 ||
                EVP_EncryptFinal_ex(x.get(), out[i].data() + made, &end) != 1)
                return false;
            if (EVP_CIPHER_get_mode(cipher.get()) == EVP_CIPH_GCM_MODE)
                EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_GET_TAG, 16, tags[i].data());
        }
        if (out[0] != out[1] || tags[0] != tags[1]) return false;
    }
    return true;
}

bool children_are_right(int count) {
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            const bool ok = message_is_right(100, 1) && message_is_right(1000000, 2 + i) &&
                            message_is_right(5000, 3);
            OPENSSL_cleanup();  // as an ordinary exit does
            _exit(ok ? 0 : 1);
        }
        children.push_back(child);
    }
    bool ok = true;
    for (const pid_t child : children) {
        int status = -1;
        waitpid(child, &status, 0);
        ok &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return ok;
}

// The first case: before anything was encrypted here.
TEST(AProcess, StartsNothingBeforeItIsNeededAndForks) {
    ASSERT_TRUE(ours().daelstrom && ours().standard);
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own, and its children may start none";
#endif
    const int before = threads_here();
    const auto cipher = fetch(ours(), "AES-256-GCM");
    auto x = context();
    Bytes key(32, 1), iv(12, 2);
    ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), cipher.get(), key.data(), iv.data(), nullptr), 1);
    EXPECT_EQ(threads_here(), before);
    EXPECT_TRUE(children_are_right(4));
    EXPECT_EQ(threads_here(), before);
    // And with an engine in the parent.
    EXPECT_TRUE(message_is_right(1000000, 9));
    EXPECT_TRUE(children_are_right(4));
    EXPECT_TRUE(message_is_right(1000000, 10));
}

TEST(AProcess, HasManyThreads) {
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&right, i] {
            for (int j = 0; j < 6; ++j)
                right += message_is_right(j % 3 == 0 ? 600000 : 1000 * (i + j), 100 + i * 10 + j);
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, 48);
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

// exit() ends a thread's own objects, the engine's among them, before it calls handlers, which may
// still encrypt: a message that the engine had begun, and new ones.
EVP_CIPHER_CTX* begun_before_exit[3];
void encrypt_at_exit() {
    static std::uint8_t room[70000];
    int made = 0;
    const bool ok = EVP_EncryptUpdate(begun_before_exit[0], room, &made, room, 60000) == 1 &&
                    EVP_EncryptUpdate(begun_before_exit[1], room, &made, room, 60000) == 1;
    // What was on all cores cannot go on, and says so.
    const bool refused = EVP_EncryptUpdate(begun_before_exit[2], room, &made, room, 60000) != 1;
    const bool anew =
        EVP_EncryptInit_ex2(begun_before_exit[2], nullptr, nullptr, room, nullptr) == 1 &&
        EVP_EncryptUpdate(begun_before_exit[2], room, &made, room, 60000) == 1;
    for (auto* x : begun_before_exit) EVP_CIPHER_CTX_free(x);
    _exit(ok && refused && anew ? 0 : 1);
}
TEST(AProcess, EncryptsInHandlersOfExit) {
    ASSERT_TRUE(ours().daelstrom);
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a child under ThreadSanitizer may start no threads";
#endif
    const pid_t child = fork();
    if (child == 0) {
        Bytes room(2000000), key(32, 5);
        const char* const names[] = {"AES-256-CTR", "AES-256-GCM", "AES-256-GCM"};
        const int sizes[] = {50000, 50000, 2000000};
        for (int i = 0; i < 3; ++i) {
            int made = 0;
            begun_before_exit[i] = EVP_CIPHER_CTX_new();
            EVP_EncryptInit_ex2(begun_before_exit[i], fetch(ours(), names[i]).get(), key.data(),
                                key.data(), nullptr);
            EVP_EncryptUpdate(begun_before_exit[i], room.data(), &made, room.data(), sizes[i]);
        }
        std::atexit(encrypt_at_exit);
        std::exit(2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// OpenSSL's own generator then uses AES-256-CTR of the provider; and the engine, which asks OpenSSL
// for ciphers too, would come back to it if it used the process's context.
TEST(AProcess, TakesEverythingFromTheProvider) {
    ASSERT_EQ(EVP_set_default_properties(ours().library, "?provider=daelstrom"), 1);
    Bytes random(5000);
    EXPECT_EQ(RAND_bytes_ex(ours().library, random.data(), random.size(), 256), 1);
    EXPECT_NE(random, Bytes(5000));
    EXPECT_TRUE(message_is_right(700000, 77));
    EVP_set_default_properties(ours().library, "");
}

// The provider is unloaded and loaded again, in contexts of their own.
TEST(AProcess, LoadsItManyTimes) {
    for (int i = 0; i < 5; ++i) {
        Side side = open_ours();
        ASSERT_TRUE(side.daelstrom);
        const auto cipher = fetch(side, "AES-128-CTR");
        auto x = context();
        Bytes room(100000), key(16, 3);
        int made = 0;
        ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), cipher.get(), key.data(), key.data(), nullptr), 1);
        ASSERT_EQ(EVP_EncryptUpdate(x.get(), room.data(), &made, room.data(), 100000), 1);
        OSSL_PROVIDER_unload(side.daelstrom);  // before the context that uses it is gone
        OSSL_PROVIDER_unload(side.standard);
        ASSERT_EQ(EVP_EncryptUpdate(x.get(), room.data(), &made, room.data(), 100000), 1);
        x.reset();
        OSSL_LIB_CTX_free(side.library);
    }
    EXPECT_TRUE(message_is_right(200000, 78));
}

}  // namespace
