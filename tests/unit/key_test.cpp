// SPDX-License-Identifier: Apache-2.0
// Keys: what import takes and refuses, and core's expansion against FIPS 197 and the reference's
// own.
#include <gtest/gtest.h>

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

}  // namespace
