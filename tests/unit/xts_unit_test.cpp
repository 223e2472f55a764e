// SPDX-License-Identifier: Apache-2.0
// XTS keys, and cutting runs of sectors.
#include <gtest/gtest.h>

#include <type_traits>

#include "core/key_schedule.hpp"
#include "modes/xts.hpp"
#include "support/bytes.hpp"

namespace {

using namespace dael;
using namespace dael::test;

TEST(XtsKeys, TakeTwoKeysOfOneSize) {
    for (const std::size_t size : {32, 64}) {
        const Bytes raw = random_bytes(size, 1);
        const auto key = XtsKey::import(raw);
        ASSERT_TRUE(key) << key.error().message;
        EXPECT_EQ(key->bits(), static_cast<int>(4 * size));
        EXPECT_TRUE(std::ranges::equal(key->data().schedule().key(), HostIn(raw).first(size / 2)));
        EXPECT_TRUE(std::ranges::equal(key->tweak().schedule().key(), HostIn(raw).last(size / 2)));
    }
    static_assert(!std::is_copy_constructible_v<XtsKey> && !std::is_copy_assignable_v<XtsKey>);
    static_assert(std::is_nothrow_move_constructible_v<XtsKey>);
}

TEST(XtsKeys, OtherSizesAreRefusedWithTheMend) {
    for (const std::size_t size : {0, 1, 16, 24, 31, 33, 48, 63, 65, 128}) {
        const auto key = XtsKey::import(random_bytes(size, 2));
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
        const auto equal = XtsKey::import(raw);
        ASSERT_EQ(equal.code(), Code::invalid_argument);
        EXPECT_NE(equal.error().message.find("halves"), std::string::npos);
        for (std::size_t bit = 0; bit < 8 * half; ++bit) {
            Bytes other = raw;
            other[bit / 8] = static_cast<std::uint8_t>(other[bit / 8] ^ 1u << bit % 8);
            EXPECT_TRUE(XtsKey::import(other)) << "bit " << bit;
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

TEST(XtsSectors, PiecesAreWholeSectorsInOrder) {
    Bytes memory(200'000);
    for (const std::size_t sector : {16, 512, 520, 4096, 100'000})
        for (const std::size_t size : {16, 600, 65536, 199'999})
            for (const std::size_t piece : {1, 4096, 65536, 1 << 20}) {
                const auto segment =
                    modes::to_segment({5, sector, 7}, memory.data(), memory.data() + 1, size);
                std::size_t done = 0;
                for (const auto& part : modes::split_sectors(segment, sector, piece)) {
                    ASSERT_EQ(part.in, segment.in + done);
                    ASSERT_EQ(part.out, segment.out + done);
                    ASSERT_EQ(done % sector, 0u);
                    ASSERT_EQ(part.iv, modes::sector_add(segment.iv, done / sector));
                    ASSERT_LE(part.size, std::max(piece, sector));
                    ASSERT_GT(part.size, 0u);
                    done += part.size;
                }
                ASSERT_EQ(done, size);
            }
}

}  // namespace
