// SPDX-License-Identifier: Apache-2.0
// Locks: passphrases in the key's place.
#include <openssl/evp.h>

#include <chrono>
#include <cstring>

#include "formats/keysets.hpp"

namespace dael::test {
namespace {

constexpr sealed::Cost kCheap{10, 1, 1};

HostIn words(const char* text) {
    return {reinterpret_cast<const std::uint8_t*>(text), std::strlen(text)};
}

TEST(Lock, OpensWithItsPassphraseAlone) {
    auto e = engine();
    const auto locked = must(sealed::make_lock(e, words("open sesame"), 4096, kCheap));
    EXPECT_TRUE(sealed::is_lock(locked.lock));
    const Bytes made = seal(e, locked.keys, pattern(9000));
    const auto keys = must(sealed::unlock(e, words("open sesame"), locked.lock));
    EXPECT_EQ(keys.segment(), 4096u);
    EXPECT_EQ(must(open(e, keys, made)), pattern(9000));
    for (const char* wrong : {"open sesam", "open sesame ", "Open sesame", "x"})
        EXPECT_EQ(sealed::unlock(e, words(wrong), locked.lock).code(), Code::authentication)
            << wrong;
}

// By hand, with OpenSSL's one-shot scrypt and its GCM: the bytes are those of the description.
TEST(Lock, HasTheBytesOfItsDescription) {
    auto e = engine();
    const auto locked = must(sealed::make_lock(e, words("pw"), 4096, {11, 2, 3}));
    const sealed::Lock& lock = locked.lock;
    EXPECT_EQ(std::memcmp(lock.data(), "DAELSEAL\x01\x0b\x02\x03\x00\x00\x10\x00", 16), 0);
    std::array<std::uint8_t, 32> wrapping{}, key{};
    ASSERT_EQ(
        EVP_PBE_scrypt("pw", 2, lock.data() + 16, 32, 2048, 2, 3, 1 << 30, wrapping.data(), 32), 1);
    std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(EVP_CIPHER_CTX_new(),
                                                                            EVP_CIPHER_CTX_free);
    int size = 0;
    ASSERT_EQ(EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, wrapping.data(),
                                 lock.data() + 48),
              1);
    ASSERT_EQ(EVP_DecryptUpdate(context.get(), nullptr, &size, lock.data(), 60), 1);
    ASSERT_EQ(EVP_DecryptUpdate(context.get(), key.data(), &size, lock.data() + 60, 32), 1);
    ASSERT_EQ(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, 16,
                                  const_cast<std::uint8_t*>(lock.data()) + 92),
              1);
    ASSERT_EQ(EVP_DecryptFinal_ex(context.get(), key.data(), &size), 1);
    const auto bare = must(sealed::Keys::from_key(key, 4096));
    EXPECT_EQ(must(open(e, bare, seal(e, locked.keys, pattern(100)))), pattern(100));
}

TEST(Lock, EveryFlippedBitIsRefused) {
    auto e = engine();
    const auto locked = must(sealed::make_lock(e, words("pw"), 4096, kCheap));
    for (std::size_t bit = 0; bit < 8 * sealed::kLockSize; ++bit) {
        // The bits of the cost that ask for more than a test has time for; the limit has its own
        // tests.
        if (bit / 8 == 9 && bit % 8 > 2) continue;
        sealed::Lock damaged = locked.lock;
        damaged[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
        EXPECT_FALSE(sealed::unlock(e, words("pw"), damaged)) << bit;
    }
}

// A lock's bytes as they come from a stranger, and how unlock() and relock() take them.
class Costs : public ::testing::Test {
  protected:
    void asks_for(int log2_n, int r, int p) {
        lock_[9] = static_cast<std::uint8_t>(log2_n);
        lock_[10] = static_cast<std::uint8_t>(r);
        lock_[11] = static_cast<std::uint8_t>(p);
    }
    void refused(sealed::Cost cost, Code code, const char* says,
                 sealed::Cost most = sealed::kMostCost) {
        asks_for(cost.log2_n, cost.r, cost.p);
        const auto begin = std::chrono::steady_clock::now();
        const auto keys = sealed::unlock(e_, words("pw"), lock_, most);
        ASSERT_FALSE(keys);
        EXPECT_EQ(keys.code(), code) << keys.error().message;
        EXPECT_NE(keys.error().message.find(says), std::string::npos) << keys.error().message;
        EXPECT_EQ(sealed::relock(e_, words("pw"), words("new"), lock_, kCheap, most).code(), code);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
    }

    Engine e_ = engine();
    sealed::Lock lock_ = must(sealed::make_lock(e_, words("pw"), 4096, kCheap)).lock;
};

TEST_F(Costs, NoLockMayAskForMoreThanThis) {
    refused({21, 8, 1}, Code::limit, "2048 MiB of memory");
    refused({255, 255, 255}, Code::limit, "more than any lock may");
    refused({20, 8, 5}, Code::limit, "more than any lock may");
    refused({18, 2, 255}, Code::limit, "more than any lock may");
    refused({255, 255, 255}, Code::limit, "more than any lock may", {30, 255, 255});
    refused({0, 8, 1}, Code::bad_format, "makes no sense");
    refused({10, 0, 1}, Code::bad_format, "makes no sense");
    refused({10, 8, 0}, Code::bad_format, "makes no sense");
    refused({16, 1, 1}, Code::bad_format, "N must be below 2^16");
    refused({20, 1, 1}, Code::bad_format, "N must be below 2^16");
    for (const sealed::Cost cost :
         {sealed::Cost{21, 8, 1}, {0, 8, 1}, {-1, 8, 1}, {10, 256, 1}, {10, 8, 1000}})
        EXPECT_EQ(sealed::make_lock(e_, words("pw"), 4096, cost).code(), Code::invalid_argument);
}

TEST_F(Costs, WhoOpensSaysHowMuch) {
    // Of what nobody asked for, less is done than a stranger may want.
    refused({19, 8, 1}, Code::limit, "more than 256 MiB of memory", sealed::kUsualLimit);
    refused({18, 8, 2}, Code::limit, "more than 256 MiB of memory and 2097152 steps",
            sealed::kUsualLimit);
    refused({10, 4, 200}, Code::limit, "allow it", {10, 8, 1});
    EXPECT_FALSE(sealed::unlock(e_, words("pw"), lock_)) << "the usual limit is no wider";
    refused({11, 1, 1}, Code::limit, "allow it", {10, 1, 1});
    asks_for(10, 1, 1);
    EXPECT_TRUE(sealed::unlock(e_, words("pw"), lock_, {10, 1, 1}));
    EXPECT_TRUE(sealed::unlock(e_, words("pw"), lock_));
    EXPECT_TRUE(sealed::relock(e_, words("pw"), words("new"), lock_, {11, 1, 1}, {10, 1, 1}))
        << "the limit is for the old lock alone";
    for (const sealed::Cost most : {sealed::Cost{0, 8, 1}, {10, 0, 1}, {10, 8, -1}, {16, 1, 1}})
        EXPECT_EQ(sealed::unlock(e_, words("pw"), lock_, most).code(), Code::invalid_argument);
    EXPECT_EQ(sealed::cost_of(lock_).log2_n, 10);
    EXPECT_EQ(sealed::cost_of(lock_).p, 1);
}

TEST_F(Costs, WhatIsMadeWithoutACostOpensWithoutALimit) {
    const auto locked = must(sealed::make_lock(e_, words("pw")));
    EXPECT_TRUE(sealed::unlock(e_, words("pw"), locked.lock));
}

TEST(Lock, WhatIsNoLock) {
    auto e = engine();
    auto lock = must(sealed::make_lock(e, words("pw"), 4096, kCheap)).lock;
    EXPECT_FALSE(sealed::is_lock(HostIn(lock).first(7)));
    EXPECT_FALSE(sealed::is_lock({}));
    auto other = lock;
    other[8] = 2;
    EXPECT_EQ(sealed::unlock(e, words("pw"), other).code(), Code::unsupported);
    other = lock;
    other[0] = 'd';
    EXPECT_EQ(sealed::unlock(e, words("pw"), other).code(), Code::bad_format);
    other = lock;
    other[12] = 0xff;  // segments of gigabytes
    EXPECT_EQ(sealed::unlock(e, words("pw"), other).code(), Code::bad_format);
    EXPECT_EQ(sealed::make_lock(e, {}, 4096, kCheap).code(), Code::invalid_argument);
    EXPECT_EQ(sealed::make_lock(e, words("pw"), 56, kCheap).code(), Code::invalid_argument);
}

TEST(Lock, AnotherPassphraseForTheSameKey) {
    auto e = engine();
    const auto locked = must(sealed::make_lock(e, words("old"), sealed::kLargeSegment, kCheap));
    const Bytes made = seal(e, locked.keys, pattern(1000));
    const auto relocked =
        must(sealed::relock(e, words("old"), words("new"), locked.lock, {11, 1, 1}));
    EXPECT_EQ(relocked[9], 11);
    EXPECT_FALSE(std::equal(relocked.begin() + 16, relocked.end(), locked.lock.begin() + 16));
    EXPECT_EQ(must(open(e, must(sealed::unlock(e, words("new"), relocked)), made)), pattern(1000));
    EXPECT_EQ(sealed::unlock(e, words("old"), relocked).code(), Code::authentication);
    EXPECT_EQ(sealed::relock(e, words("wrong"), words("new"), locked.lock, kCheap).code(),
              Code::authentication);
    EXPECT_EQ(sealed::relock(e, words("old"), {}, locked.lock, kCheap).code(),
              Code::invalid_argument);
}

}  // namespace
}  // namespace dael::test
