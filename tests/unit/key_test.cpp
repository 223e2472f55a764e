// SPDX-License-Identifier: Apache-2.0
// Keys: what import takes and refuses, and core's expansion against FIPS 197 and the reference's
// own.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/key.hpp>

#include "backends/reference/aes.hpp"
#include "core/key_schedule.hpp"
#include "core/secure_memory.hpp"

namespace {

using namespace dael;

std::vector<std::uint8_t> random_bytes(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    return bytes;
}

static_assert(!std::is_copy_constructible_v<Key> && !std::is_copy_assignable_v<Key>);

TEST(Key, TakesThreeSizesAndNamesTheRest) {
    for (std::size_t size = 0; size <= 40; ++size) {
        const auto key = Key::import(std::vector<std::uint8_t>(size, 7));
        if (size == 16 || size == 24 || size == 32) {
            ASSERT_TRUE(key) << size;
            EXPECT_EQ(key->bits(), static_cast<int>(8 * size));
            EXPECT_EQ(key->rounds(), static_cast<int>(size / 4 + 6));
        } else {
            EXPECT_EQ(key.code(), Code::key_size);
            EXPECT_EQ(key.error().message,
                      "key is " + std::to_string(size) + " bytes; AES takes 16, 24 or 32");
        }
    }
}

TEST(Key, ExpandsAsTheReferenceDoes) {
    for (const std::size_t size : {16, 24, 32}) {
        for (unsigned seed = 0; seed < 50; ++seed) {
            const auto raw = random_bytes(size, seed);
            const reference::ExpandedKey w(raw);
            core::KeySchedule schedule;
            core::expand_key(raw, schedule);
            ASSERT_EQ(schedule.rounds, w.rounds());
            EXPECT_TRUE(std::ranges::equal(schedule.key(), raw));
            for (int round = 0; round <= w.rounds(); ++round) {
                const auto encrypt =
                    std::span(schedule.encrypt).subspan(16u * static_cast<unsigned>(round), 16);
                const auto decrypt =
                    std::span(schedule.decrypt).subspan(16u * static_cast<unsigned>(round), 16);
                EXPECT_TRUE(std::ranges::equal(encrypt, w.round_key(round)))
                    << size << " " << round;
                reference::State inverse = w.round_key(w.rounds() - round);  // FIPS 197 5.3.5
                if (round != 0 && round != w.rounds()) reference::inv_mix_columns(inverse);
                EXPECT_TRUE(std::ranges::equal(decrypt, inverse)) << size << " " << round;
            }
        }
    }
}

TEST(Key, DuplicateIsIndependentAndMovesLeaveNothingBehind) {
    auto first = Key::import(random_bytes(32, 1));
    ASSERT_TRUE(first);
    auto second = first->duplicate();
    ASSERT_TRUE(second);
    EXPECT_NE(&first->schedule(), &second->schedule());
    const core::KeySchedule* before = &second->schedule();
    Key moved = std::move(*second);
    EXPECT_EQ(&moved.schedule(), before);
    EXPECT_TRUE(std::ranges::equal(moved.schedule().key(), first->schedule().key()));
    *first = std::move(moved);
    EXPECT_EQ(&first->schedule(), before);
    Key& same = *first;
    *first = std::move(same);  // onto itself: keeps the key
    EXPECT_EQ(&first->schedule(), before);
}

// The arithmetic, element by element, against the definition in FIPS 197 4.2 by long
// multiplication.
TEST(AesMath, MatchesItsDefinitionForEveryByte) {
    const auto multiply = [](unsigned a, unsigned b) {
        unsigned product = 0;
        for (int bit = 0; bit < 8; ++bit)
            if (b >> bit & 1) product ^= a << bit;
        for (int bit = 14; bit >= 8; --bit)
            if (product >> bit & 1) product ^= 0x11bu << (bit - 8);
        return product;
    };
    for (unsigned a = 0; a < 256; ++a) {
        const auto element = static_cast<std::uint8_t>(a);
        for (unsigned b = 0; b < 256; ++b)
            ASSERT_EQ(core::gf_multiply(element, static_cast<std::uint8_t>(b)), multiply(a, b));
        EXPECT_EQ(core::square_each<1>(element), multiply(a, a));
        EXPECT_EQ(multiply(core::gf_inverse(element), a), a == 0 ? 0u : 1u);
        EXPECT_EQ(core::inv_sub_byte(core::sub_byte(element)), element);
        // Neighbours in a word must not disturb each other.
        EXPECT_EQ(core::sub_each(core::repeat<std::uint64_t>(element)),
                  core::repeat<std::uint64_t>(core::sub_byte(element)));
        EXPECT_EQ(core::sub_each<std::uint64_t>(std::uint64_t{a} << 24) >> 24 & 0xff,
                  core::sub_byte(element));
    }
}

TEST(SecureMemory, IsZeroedAlignedAndWiped) {
    void* memory = core::secure_allocate(5000);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
    auto* bytes = static_cast<std::uint8_t*>(memory);
    EXPECT_TRUE(std::all_of(bytes, bytes + 5000, [](std::uint8_t b) { return b == 0; }));
    std::fill(bytes, bytes + 5000, std::uint8_t{0xa5});
    wipe(bytes, 4999);
    EXPECT_TRUE(std::all_of(bytes, bytes + 4999, [](std::uint8_t b) { return b == 0; }));
    EXPECT_EQ(bytes[4999], 0xa5);
    core::secure_release(memory, 5000);
    wipe(nullptr, 0);  // an empty span's data() may be null
}

int mappings() {
    std::ifstream maps("/proc/self/maps");
    int lines = 0;
    for (std::string line; std::getline(maps, line);) ++lines;
    return lines;
}

// The kernel gives a process some 65,000 mappings: keys must share them, or sets of more are
// refused.
TEST(SecureMemory, NeighboursShareAMapping) {
    constexpr std::size_t kSize = 900;
    const int before = mappings();
    std::vector<void*> memories(1000);
    for (void*& memory : memories) {
        memory = core::secure_allocate(kSize);
        ASSERT_NE(memory, nullptr);
        std::memset(memory, 0xa5, kSize);
    }
    EXPECT_LT(mappings() - before, 100);
    for (void* memory : memories) core::secure_release(memory, kSize);
}

// A process that may lock no memory still gets its keys.
TEST(SecureMemory, ServesWhereNothingCanBeLocked) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    const auto key = Key::import(random_bytes(16, 2));
    setrlimit(RLIMIT_MEMLOCK, &before);
    EXPECT_TRUE(key);
}

}  // namespace
