// SPDX-License-Identifier: Apache-2.0
// XTS keys, and cutting runs of sectors.
#include <gtest/gtest.h>

#include <type_traits>

#include <daelstrom/xts.hpp>

#include "core/key_schedule.hpp"
#include "modes/traits.hpp"
#include "support/bytes.hpp"

namespace {

using namespace dael;
using namespace dael::test;

TEST(XtsKeys, TakeTwoKeysOfOneSize) {
    for (const std::size_t size : {32, 64}) {
        const Bytes raw = random_bytes(size, 1);
        const auto key = Key::import_xts(raw);
        ASSERT_TRUE(key) << key.error().message;
        EXPECT_EQ(key->bits(), static_cast<int>(4 * size));
        EXPECT_TRUE(std::ranges::equal(key->schedule().key(), HostIn(raw).first(size / 2)));
        EXPECT_TRUE(std::ranges::equal(key->tweak().key(), HostIn(raw).last(size / 2)));
    }
    static_assert(std::is_nothrow_move_constructible_v<Key>);
}

// A key in the place of one of the other kind, which takes other memory.
TEST(XtsKeys, MoveAndAreDuplicatedAsOthers) {
    const Bytes raw = random_bytes(64, 5);
    auto key = Key::import_xts(raw);
    auto other = Key::import(random_bytes(16, 6));
    ASSERT_TRUE(key && other);
    EXPECT_TRUE(key->is_xts());
    EXPECT_FALSE(other->is_xts());
    const auto copy = key->duplicate();
    ASSERT_TRUE(copy);
    *other = std::move(*key);
    for (const Key* same : {&*copy, static_cast<const Key*>(&*other)}) {
        EXPECT_TRUE(same->is_xts());
        EXPECT_TRUE(std::ranges::equal(same->schedule().key(), HostIn(raw).first(32)));
        EXPECT_TRUE(std::ranges::equal(same->tweak().key(), HostIn(raw).last(32)));
    }
}

TEST(XtsKeys, OtherSizesAreRefusedWithTheMend) {
    for (const std::size_t size : {0, 1, 16, 24, 31, 33, 48, 63, 65, 128}) {
        const auto key = Key::import_xts(random_bytes(size, 2));
        ASSERT_EQ(key.code(), Code::key_size) << size;
        const std::string& message = key.error().message;
        EXPECT_NE(message.find(std::to_string(size) + " bytes"), std::string::npos) << message;
        EXPECT_NE(message.find("32 bytes for AES-128, 64 for AES-256"), std::string::npos)
            << message;
    }
}

TEST(XtsKeys, EqualHalvesAreRefusedAndNearlyEqualOnesAreNot) {
    for (const std::size_t half : {16, 32}) {
        Bytes raw = random_bytes(half, 3);
        raw.resize(2 * half);
        std::copy_n(raw.begin(), half, raw.begin() + static_cast<std::ptrdiff_t>(half));
        const auto equal = Key::import_xts(raw);
        ASSERT_EQ(equal.code(), Code::invalid_argument);
        EXPECT_NE(equal.error().message.find("halves"), std::string::npos);
        for (std::size_t bit = 0; bit < 8 * half; ++bit) {
            Bytes other = raw;
            other[bit / 8] = static_cast<std::uint8_t>(other[bit / 8] ^ 1u << bit % 8);
            EXPECT_TRUE(Key::import_xts(other)) << "bit " << bit;
        }
    }
}

TEST(XtsSectors, NumbersAddLikeIntegersOf128Bits) {
    Random random(4);
    for (int ones = 0; ones <= 16; ++ones) {
        Block number = random.block();
        std::fill_n(number.begin(), ones, std::uint8_t{0xff});
        for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{255},
                                         random.number(), ~std::uint64_t{0}}) {
            unsigned __int128 expected = 0;
            for (int i = 15; i >= 0; --i) expected = expected << 8 | number[i];
            expected += more;
            const Block sum = modes::sector_add(number, more);
            for (int i = 0; i < 16; ++i)
                EXPECT_EQ(sum[i], static_cast<std::uint8_t>(expected >> (8 * i)));
        }
    }
}

TEST(XtsSectors, PartsHaveTheirSectorsNumbers) {
    Bytes memory(200'000);
    for (const std::uint32_t sector : {16, 512, 520, 4096, 100'000}) {
        const Cipher cipher{Mode::xts, Direction::encrypt, 16, 0, sector};
        const Message whole{.in = memory.data(),
                            .out = memory.data(),
                            .size = 199'999,
                            .start = xts::start({5, sector, 7})};
        ASSERT_EQ(modes::traits(Mode::xts).unit(cipher), sector);
        for (std::uint64_t at = 0; at < whole.size; at += 3 * sector) {
            const Message part = modes::slice(cipher, whole, at, 16);
            EXPECT_EQ(part.in, whole.in + at);
            EXPECT_EQ(part.out, whole.out + at);
            EXPECT_EQ(part.start, modes::sector_add(whole.start, at / sector));
        }
    }
}

}  // namespace
