// SPDX-License-Identifier: Apache-2.0
// What the modes mean, free of any backend: counters, offsets, cutting, chaining, padding.
#include <gtest/gtest.h>

#include <algorithm>

#include <daelstrom/padding.hpp>
#include "core/registry.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"
#include "modes/segment.hpp"
#include "support/bytes.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using modes::counter_add;
using test::Bytes;

// What a message becomes in one piece, by OpenSSL, and a backend for its parts.
struct Cutting : testing::Test {
    const Bytes key_bytes = test::pattern(24, 7), in = test::pattern(208, 3);
    const Result<Key> key = Key::import(key_bytes);
    const Result<std::unique_ptr<core::Backend>> backend = core::open_backend("reference");

    void SetUp() override { ASSERT_TRUE(key && backend); }

    // CTR starts within a block, next to a carry through every byte.
    static Cipher cipher(Mode mode, Direction direction) {
        Block iv;
        iv.fill(0xff);
        return {mode, direction, iv, mode == Mode::ctr ? 21u : 0u};
    }
    void run(const Cipher& cipher, const core::Segment& segment) const {
        ASSERT_TRUE(
            (*backend)->run({cipher.mode, cipher.direction, &*key}, std::span(&segment, 1)));
    }
};

constexpr Direction kDirections[] = {Direction::encrypt, Direction::decrypt};

TEST_F(Cutting, AChainOfChunksGivesWhatOneCallGives) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections)
            for (const bool in_place : {false, true})
                for (const std::size_t first : {16, 48, 208}) {
                    const Cipher how = cipher(mode, direction);
                    modes::Chain chain(mode, direction, how.iv, how.offset);
                    Bytes out = in;
                    for (std::size_t done = 0, size = first; done < in.size(); done += size) {
                        size = std::min(done == 0 ? first : 32, in.size() - done);
                        const auto* from = (in_place ? out : in).data() + done;
                        run(how, chain.begin(from, out.data() + done, size));
                        chain.end();
                    }
                    EXPECT_EQ(test::difference(test::oracle(key_bytes, how, in), out), "")
                        << name(mode) << " " << name(direction) << " " << first;
                }
}

TEST_F(Cutting, PiecesMayBeProcessedInPlaceInAnyOrder) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            if (!parallel_within_message(mode, direction)) continue;
            const Cipher how = cipher(mode, direction);
            Bytes out = in;
            const Message message{out.data(), out.data(), out.size(), how.iv, how.offset};
            ASSERT_TRUE(modes::check(mode, message));
            auto pieces = modes::split(mode, modes::to_segment(message), 48);
            EXPECT_EQ(pieces.size(), 5u) << name(mode);
            std::ranges::reverse(pieces);
            for (const auto& piece : pieces) run(how, piece);
            EXPECT_EQ(test::difference(test::oracle(key_bytes, how, in), out), "")
                << name(mode) << " " << name(direction);
        }
}

TEST(Messages, WhatCannotBeIsRefused) {
    std::array<std::uint8_t, 64> data{};
    const auto code = [&](Mode mode, Message message) {
        return modes::check(mode, message).code();
    };
    const auto a = data.data();
    EXPECT_EQ(code(Mode::ctr, {nullptr, a, 1}), Code::invalid_argument);
    EXPECT_EQ(code(Mode::ctr, {nullptr, nullptr, 0}), Code::ok);
    EXPECT_EQ(code(Mode::cbc, {a, a, 17}), Code::ragged_length);
    EXPECT_EQ(code(Mode::cfb, {a, a, 17}), Code::ok);
    EXPECT_EQ(code(Mode::ctr, {a, a + 1, 32}), Code::overlap);
    EXPECT_EQ(code(Mode::ctr, {a + 31, a, 32}), Code::overlap);
    EXPECT_EQ(code(Mode::ctr, {a + 32, a, 32}), Code::ok);
    EXPECT_EQ(code(Mode::ofb, {a, a, 16, {}, 1}), Code::invalid_argument);
    EXPECT_EQ(code(Mode::ctr, {a, a, 16, {}, ~std::uint64_t{0} - 15}), Code::limit);
    EXPECT_EQ(code(Mode::ctr, {a, a, 16, {}, ~std::uint64_t{0} - 16}), Code::ok);
}

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
    // inc32 leaves the other 96 bits alone.
    Block wrapped = all_ones;
    std::fill(wrapped.begin() + 12, wrapped.end(), std::uint8_t{0});
    EXPECT_EQ(modes::counter_add32(all_ones, 1), wrapped);
    EXPECT_EQ(modes::counter_add32(all_ones, 0), all_ones);
    EXPECT_EQ(modes::counter_add32(wrapped, 0xffffffff), all_ones);
    EXPECT_EQ(modes::counter_add32(Block{}, 0x01020304), counter_add(Block{}, 0x01020304));
    EXPECT_EQ(modes::blocks_before_wrap32(all_ones), 1u);
    EXPECT_EQ(modes::blocks_before_wrap32(Block{}), std::uint64_t{1} << 32);
}

// A message in pieces of odd sizes: the counter wraps within one, and at the end of another.
TEST(Stretches, EndWhereTheLowWordWraps) {
    Block first{};
    std::fill(first.begin(), first.end(), std::uint8_t{0xff});
    first[15] = 0xfc;  // four blocks before it wraps
    for (const std::size_t piece : {1, 7, 16, 64, 65, 200}) {
        Block counter = first;
        std::uint64_t done = 0;
        int wraps = 0;
        for (std::size_t size :
             {piece, piece, std::size_t{0}, std::size_t{300} - 2 * (piece % 100)}) {
            std::size_t expected_at = 0;
            const auto ran = modes::in_stretches(
                counter, done, size,
                [&](std::size_t at, std::size_t here, std::uint8_t skip) -> Result<> {
                    EXPECT_EQ(at, expected_at);
                    EXPECT_GT(here, 0u);
                    EXPECT_EQ(skip, (done % 16));
                    EXPECT_EQ(counter,
                              modes::counter_add32(first, static_cast<std::uint32_t>(done / 16)));
                    const std::uint64_t before = done - skip, after = done + here;
                    EXPECT_FALSE(before < 64 && after > 64) << before << " to " << after;
                    wraps += before == 64 && skip == 0;
                    expected_at += here;
                    return {};
                });
            ASSERT_TRUE(ran);
            EXPECT_EQ(expected_at, size);
        }
        EXPECT_EQ(wraps, 1) << piece;
        EXPECT_EQ(counter, modes::counter_add32(first, static_cast<std::uint32_t>(done / 16)));
    }
    // What fails is not passed.
    Block counter = first;
    std::uint64_t done = 5;
    const auto failed = modes::in_stretches(counter, done, 100,
                                            [](std::size_t, std::size_t, std::uint8_t) -> Result<> {
                                                return Error{Code::device, "no"};
                                            });
    EXPECT_EQ(failed.code(), Code::device);
    EXPECT_EQ(counter, first);
    EXPECT_EQ(done, 5u);
}

TEST(Padding, RoundTripsAndRefusesEveryFault) {
    const std::array<std::uint8_t, 16> data{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (std::size_t size = 0; size < 16; ++size) {
        const Block block = dael::pad(std::span(data).first(size));
        const auto kept = dael::unpad(block);
        ASSERT_TRUE(kept);
        EXPECT_EQ(*kept, size);
        for (std::size_t at = size; at < 16; ++at) {
            Block wrong = block;
            wrong[at] ^= 0x80;
            EXPECT_EQ(dael::unpad(wrong).code(), Code::bad_padding) << size << " " << at;
        }
    }
    Block zero{};
    EXPECT_EQ(dael::unpad(zero).code(), Code::bad_padding);
    zero.fill(17);
    EXPECT_EQ(dael::unpad(zero).code(), Code::bad_padding);
}

}  // namespace
