// SPDX-License-Identifier: Apache-2.0
// What the modes mean, free of any backend: counters, offsets, cutting, chaining, padding.
#include <gtest/gtest.h>

#include "modes/counter.hpp"
#include "modes/padding.hpp"
#include "modes/segment.hpp"

namespace {

using namespace dael;
using modes::counter_add;

TEST(Counter, CarriesThroughEveryByteAndWraps) {
    Block all_ones;
    all_ones.fill(0xff);
    EXPECT_EQ(counter_add(all_ones, 1), Block{});
    for (int bytes = 1; bytes < 16; ++bytes) {
        Block before{}, after{};
        std::fill(before.end() - bytes, before.end(), std::uint8_t{0xff});
        after[static_cast<std::size_t>(15 - bytes)] = 1;
        EXPECT_EQ(counter_add(before, 1), after) << bytes;
    }
    EXPECT_EQ(modes::blocks_before_wrap32(all_ones), 1u);
    EXPECT_EQ(modes::blocks_before_wrap32(Block{}), std::uint64_t{1} << 32);
}

TEST(Padding, RoundTripsAndRefusesEveryFault) {
    const std::array<std::uint8_t, 16> data{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (std::size_t size = 0; size < 16; ++size) {
        const Block block = modes::pad(std::span(data).first(size));
        const auto kept = modes::unpad(block);
        ASSERT_TRUE(kept);
        EXPECT_EQ(*kept, size);
        for (std::size_t at = size; at < 16; ++at) {
            Block wrong = block;
            wrong[at] ^= 0x80;
            EXPECT_EQ(modes::unpad(wrong).code(), Code::bad_padding) << size << " " << at;
        }
    }
    Block zero{};
    EXPECT_EQ(modes::unpad(zero).code(), Code::bad_padding);
    zero.fill(17);
    EXPECT_EQ(modes::unpad(zero).code(), Code::bad_padding);
}

}  // namespace
