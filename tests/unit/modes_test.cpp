// SPDX-License-Identifier: Apache-2.0
// What the modes mean, free of any backend: counters, offsets, cutting, chaining, padding.
#include <gtest/gtest.h>

#include <algorithm>

#include <daelstrom/unauthenticated.hpp>

#include "core/registry.hpp"
#include "modes/chain.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"
#include "modes/starts.hpp"
#include "modes/traits.hpp"
#include "support/test_batch.hpp"

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
    static test::Use use(Mode mode, Direction direction) {
        Block start;
        start.fill(0xff);
        return {mode, direction, start, mode == Mode::ctr ? 21u : 0u};
    }
    static Message message(const test::Use& use, const std::uint8_t* in, Bytes& out) {
        return modes::from_offset(
            {.in = in, .out = out.data(), .size = out.size(), .start = use.start}, use.offset);
    }
    void run(const test::Use& use, const Message& message) const {
        ASSERT_TRUE((*backend)->run({use.mode, use.direction}, {std::span(&*key, 1)},
                                    std::span(&message, 1), {}));
    }
};

TEST_F(Cutting, AChainOfChunksGivesWhatOneCallGives) {
    for (const Mode mode : kModes38a)
        for (const Direction direction : test::kDirections)
            for (const bool in_place : {false, true})
                for (const std::size_t first : {16, 48, 208}) {
                    const test::Use how = use(mode, direction);
                    Bytes out = in;
                    const Message whole = message(how, in.data(), out);
                    modes::Chain chain({mode, direction}, whole.start, whole.skip);
                    for (std::size_t done = 0, size = first; done < in.size(); done += size) {
                        size = std::min(done == 0 ? first - whole.skip : 32, in.size() - done);
                        const auto* from = (in_place ? out : in).data() + done;
                        run(how, chain.next(from, out.data() + done, size));
                        chain.done();
                    }
                    EXPECT_EQ(test::difference(test::oracle(key_bytes, how, in), out), "")
                        << name(mode) << " " << name(direction) << " " << first;
                }
}

TEST_F(Cutting, PartsMayBeProcessedInPlaceInAnyOrder) {
    for (const Mode mode : kModes38a)
        for (const Direction direction : test::kDirections) {
            const Cipher cipher{mode, direction};
            EXPECT_EQ(modes::can_cut(cipher), parallel_within_message(mode, direction));
            if (!modes::can_cut(cipher)) continue;
            const test::Use how = use(mode, direction);
            Bytes out = in;
            const Message whole = message(how, out.data(), out);
            ASSERT_TRUE(modes::check(cipher, whole, 1));
            std::vector<Message> parts;
            for (std::uint64_t at = 0, size = 0; at < whole.size; at += size) {
                size = std::min<std::uint64_t>(48 - (at == 0 ? whole.skip : 0), whole.size - at);
                parts.push_back(modes::slice(cipher, whole, at, size));
            }
            std::ranges::reverse(parts);
            for (const Message& part : parts) run(how, part);
            EXPECT_EQ(test::difference(test::oracle(key_bytes, how, in), out), "")
                << name(mode) << " " << name(direction);
        }
}

TEST(Messages, WhatCannotBeIsRefused) {
    std::array<std::uint8_t, 64> data{};
    const auto code = [&](Mode mode, const Message& message) {
        const Cipher cipher{mode};
        const auto result = modes::check(cipher, message, 1);
        EXPECT_EQ(modes::takes(cipher, message, 1), static_cast<bool>(result));
        return result.code();
    };
    const auto m = [](const std::uint8_t* in, std::uint8_t* out, std::uint64_t size,
                      std::uint8_t skip = 0) {
        return Message{.in = in, .out = out, .size = size, .skip = skip};
    };
    const auto a = data.data();
    EXPECT_EQ(code(Mode::ctr, m(a, nullptr, 1)), Code::invalid_argument);
    EXPECT_EQ(code(Mode::ctr, m(nullptr, a, 1)), Code::ok);  // the keystream itself
    EXPECT_EQ(code(Mode::ofb, m(nullptr, a, 1)), Code::invalid_argument);
    EXPECT_EQ(code(Mode::ctr, m(nullptr, nullptr, 0)), Code::ok);
    EXPECT_EQ(code(Mode::cbc, m(a, a, 17)), Code::ragged_length);
    EXPECT_EQ(code(Mode::cfb, m(a, a, 17)), Code::ok);
    EXPECT_EQ(code(Mode::ctr, m(a, a + 1, 32)), Code::overlap);
    EXPECT_EQ(code(Mode::ctr, m(a + 31, a, 32)), Code::overlap);
    EXPECT_EQ(code(Mode::ctr, m(a + 32, a, 32)), Code::ok);
    EXPECT_EQ(code(Mode::ofb, m(a, a, 16, 1)), Code::invalid_argument);
    EXPECT_EQ(code(Mode::ctr, m(a, a, 16, 15)), Code::ok);
    EXPECT_EQ(code(Mode::ctr, m(a, a, 16, 16)), Code::invalid_argument);
    EXPECT_EQ(code(Mode::ctr, m(a, a, ~std::uint64_t{0})), Code::limit);
    Message wraps = m(a, a, 48);
    wraps.start.fill(0xff);
    wraps.start[15] = 0xfe;  // two blocks before the 32-bit counter wraps
    EXPECT_EQ(code(Mode::gcm_ctr, wraps), Code::limit);
    EXPECT_EQ(code(Mode::ctr, wraps), Code::ok);
    wraps.size = 32;
    EXPECT_EQ(code(Mode::gcm_ctr, wraps), Code::ok);
    wraps.skip = 1;
    EXPECT_EQ(code(Mode::gcm_ctr, wraps), Code::limit);
}

std::vector<Message> with_starts(const std::vector<std::pair<std::uint32_t, int>>& key_and_start) {
    std::vector<Message> messages;
    for (const auto& [key, start] : key_and_start) {
        Message& m = messages.emplace_back();
        m.size = 1;
        m.key = key;
        m.start[11] = static_cast<std::uint8_t>(start);
    }
    return messages;
}

TEST(Starts, ThoseThatGoUpCannotRepeat) {
    const auto in_order = [](const auto& list) {
        modes::StartsInOrder starts;
        for (const Message& m : with_starts(list)) starts.add(m);
        return starts.distinct();
    };
    EXPECT_TRUE(in_order(std::vector<std::pair<std::uint32_t, int>>{{0, 1}, {0, 2}, {0, 3}}));
    EXPECT_TRUE(in_order(std::vector<std::pair<std::uint32_t, int>>{{0, 1}, {0, 2}, {1, 1}}));
    EXPECT_TRUE(in_order(std::vector<std::pair<std::uint32_t, int>>{{1, 1}, {0, 2}, {1, 3}}));
    EXPECT_FALSE(in_order(std::vector<std::pair<std::uint32_t, int>>{{0, 1}, {0, 1}}));
    EXPECT_FALSE(in_order(std::vector<std::pair<std::uint32_t, int>>{{0, 1}, {1, 0}, {0, 1}}));
}

TEST(Starts, ARepeatIsFoundUnderTheSameKeyAlone) {
    EXPECT_FALSE(modes::find_repeat(with_starts({{0, 1}, {1, 1}, {2, 1}, {0, 2}})));
    const auto found = modes::find_repeat(with_starts({{0, 3}, {0, 1}, {1, 1}, {0, 1}}));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (std::pair<std::size_t, std::size_t>{1, 3}));
    auto empty = with_starts({{0, 1}, {0, 1}});
    empty[1].size = 0;
    EXPECT_FALSE(modes::find_repeat(empty));
    std::vector<std::pair<std::uint32_t, int>> many;
    for (int i = 0; i < 250; ++i) many.push_back({static_cast<std::uint32_t>(i % 3), i});
    EXPECT_FALSE(modes::find_repeat(with_starts(many)));
    many.push_back({2, 5});
    EXPECT_TRUE(modes::find_repeat(with_starts(many)));
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

// Sizes of the documents: SP 800-38D 5.2.1, RFC 10032, C2SP's XAES-256-GCM, RFC 8452 section 6.
TEST(Check, WhatModesThatAuthenticateTake) {
    using modes::KeyKinds, modes::kAes128, modes::kAes192, modes::kAes256, modes::kXts;
    struct {
        Mode mode;
        std::vector<int> tags;
        KeyKinds keys;
        std::uint64_t data, aad;
    } const rows[] = {
        {Mode::gcm,
         {4, 8, 12, 13, 14, 15, 16},
         modes::kAnyAes,
         (1ull << 36) - 32,
         (1ull << 61) - 1},
        {Mode::aegis128l, {16, 32}, kAes128, (1ull << 61) - 1, (1ull << 61) - 1},
        {Mode::aegis256, {16, 32}, kAes256, (1ull << 61) - 1, (1ull << 61) - 1},
        {Mode::aegis128x2, {16, 32}, kAes128, (1ull << 61) - 1, (1ull << 61) - 1},
        {Mode::aegis128x4, {16, 32}, kAes128, (1ull << 61) - 1, (1ull << 61) - 1},
        {Mode::xaes256gcm, {16}, kAes256, (1ull << 36) - 32, (1ull << 61) - 1},
        {Mode::gcm_siv, {16}, kAes128 | kAes256, 1ull << 36, 1ull << 36},
    };
    // Places that nobody reads.
    const auto at = [](std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); };
    for (const auto& row : rows) {
        ASSERT_TRUE(authenticates(row.mode));
        for (int tag = 0; tag < 256; ++tag)
            for (const KeyKinds kinds : {kAes128, kAes192, kAes256, kXts, kAes128 | kAes256}) {
                const Cipher cipher{row.mode, Direction::encrypt, static_cast<std::uint8_t>(tag)};
                const bool right = std::ranges::count(row.tags, tag) && (kinds & ~row.keys) == 0;
                ASSERT_EQ(modes::takes_kind(cipher, kinds), right) << name(row.mode) << tag;
                ASSERT_EQ(modes::check_kind(cipher, kinds).code(),
                          right ? Code::ok : Code::invalid_argument);
            }
        const Cipher cipher{row.mode};
        const auto code = [&](const Message& m) {
            const auto checked = modes::check(cipher, m, 1);
            EXPECT_EQ(modes::takes(cipher, m, 1), static_cast<bool>(checked));
            return checked.code();
        };
        Message good;
        good.in = good.out = at(1ull << 62);
        good.aad = at(1);
        good.tag = at(1ull << 63);
        good.size = row.data;
        good.aad_size = row.aad;
        EXPECT_EQ(code(good), Code::ok) << name(row.mode);
        Message bad = good;
        ++bad.size;
        EXPECT_EQ(code(bad), Code::limit) << name(row.mode);
        bad = good;
        ++bad.aad_size;
        EXPECT_EQ(code(bad), Code::limit) << name(row.mode);
        bad = good;
        bad.tag = nullptr;
        EXPECT_EQ(code(bad), Code::invalid_argument);
        bad.tag = good.out + row.data - 1;
        EXPECT_EQ(code(bad), Code::overlap);
        bad.tag = good.out - 15;
        EXPECT_EQ(code(bad), Code::overlap);
        bad.tag = good.out - 16;
        EXPECT_EQ(code(bad), Code::ok);
        bad = good;
        bad.aad = nullptr;
        EXPECT_EQ(code(bad), Code::invalid_argument);
        bad = good;
        bad.start.fill(1);
        EXPECT_EQ(code(bad), row.mode == Mode::gcm_siv ? Code::invalid_argument : Code::ok);
        bad = good;
        bad.start_rest.fill(1);
        EXPECT_EQ(code(bad), row.mode == Mode::xaes256gcm ? Code::invalid_argument : Code::ok);
    }
}

}  // namespace
