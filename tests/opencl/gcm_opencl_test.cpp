// SPDX-License-Identifier: Apache-2.0
// What is particular to GCM over OpenCL's buffers: messages spread over several of them, GHASH by
// tables and by multiplications, forgeries that leave nothing behind, and lists that must lie on
// the host.
#include <array>

#include "opencl/gcm_fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// Sizes around what a team takes, GMAC, and nothing at all; every part in a buffer of its own.
TEST_P(GcmOpenCl, ABatchAcrossManyBuffers) {
    std::vector<Scattered> messages;
    for (const std::size_t size : {0, 1, 16, 500, 1024, 4096, 70000, 300001})
        messages.push_back(message(messages.size() % 3, size, size % 7 * 5));
    messages.push_back(message(1, 0, 3000));
    messages.push_back(message(2, 0, 200000));
    for (const Scattered& m : messages) {
        put(m.in, m.plain);
        put(m.at_aad, m.aad);
    }
    EXPECT_EQ(run(Direction::encrypt, messages), std::vector<std::uint32_t>(messages.size(), kOk));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Scattered& m = messages[i];
        const Sealed sealed = expected(m);
        ASSERT_EQ(difference(sealed.ciphertext, take(m.out, m.plain.size())), "") << i;
        ASSERT_EQ(difference(sealed.tag, take(m.tag, gcm::kTagSize)), "") << i;
        put(m.in, sealed.ciphertext);
        put(m.out, Bytes(m.plain.size(), Poisoned::kPoison));
    }
    EXPECT_EQ(run(Direction::decrypt, messages), std::vector<std::uint32_t>(messages.size(), kOk));
    for (std::size_t i = 0; i < messages.size(); ++i)
        ASSERT_EQ(difference(messages[i].plain, take(messages[i].out, messages[i].plain.size())),
                  "")
            << i;
}

// Of forged messages, short and long, the output is what it was before, byte for byte; those
// between them open.
TEST_P(GcmOpenCl, ForgedMessagesLeaveTheOutputAlone) {
    std::vector<Scattered> messages;
    for (const std::size_t size : {33, 40, 2000, 2048, 90000, 600001, 1 << 20, 5})
        messages.push_back(message(0, size, 20));
    std::vector<std::uint32_t> wanted;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Scattered& m = messages[i];
        Sealed sealed = expected(m);
        wanted.push_back(i % 2 == 0 ? kForged : kOk);
        if (i % 4 == 0) sealed.tag[random_.below(gcm::kTagSize)] ^= 0x20;
        if (i % 4 == 2) sealed.ciphertext[random_.below(sealed.ciphertext.size())] ^= 1;
        put(m.in, sealed.ciphertext);
        put(m.out, Bytes(m.plain.size(), Poisoned::kPoison));
        put(m.at_aad, m.aad);
        put(m.tag, sealed.tag);
    }
    EXPECT_EQ(run(Direction::decrypt, messages), wanted);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Scattered& m = messages[i];
        const Bytes after = take(m.out, m.plain.size());
        ASSERT_EQ(after, i % 2 == 0 ? Bytes(after.size(), Poisoned::kPoison) : m.plain) << i;
    }
}

// Long messages under several keys of one size, between the same buffers: one launch has them all.
TEST_P(GcmOpenCl, ManyKeysInOneLaunch) {
    constexpr std::size_t kRoom = 160000;
    constexpr std::size_t kCount = 12;
    std::uint8_t *const in = buffer(kRoom * kCount), *const out = buffer(kRoom * kCount),
                        *const tags = buffer(gcm::kTagSize * kCount);
    std::vector<Scattered> messages;
    for (std::size_t i = 0; i < kCount; ++i) {
        const std::size_t size = i % 4 == 3 ? 100 * i : 80000 + random_.below(80000);
        // One in four at an odd place, which has neither counter caching nor whole words.
        const std::size_t at = i * kRoom + (i % 4 == 1 ? i : 0);
        messages.push_back({std::array<std::size_t, 3>{0, 3, 4}[i % 3],
                            random_.bytes(gcm::kNonceSize),
                            {},
                            random_.bytes(std::min(size, kRoom - 16)),
                            in + at,
                            out + at,
                            nullptr,
                            tags + i * gcm::kTagSize});
        put(messages.back().in, messages.back().plain);
    }
    EXPECT_EQ(run(Direction::encrypt, messages), std::vector<std::uint32_t>(kCount, kOk));
    std::vector<std::uint32_t> wanted(kCount, kOk);
    for (std::size_t i = 0; i < kCount; ++i) {
        const Scattered& m = messages[i];
        Sealed sealed = expected(m);
        ASSERT_EQ(difference(sealed.ciphertext, take(m.out, m.plain.size())), "") << i;
        ASSERT_EQ(difference(sealed.tag, take(m.tag, gcm::kTagSize)), "") << i;
        if (i % 5 == 2) {
            wanted[i] = kForged;
            sealed.ciphertext.back() ^= 0x80;
        }
        put(m.in, sealed.ciphertext);
        put(m.out, Bytes(m.plain.size(), Poisoned::kPoison));
    }
    EXPECT_EQ(run(Direction::decrypt, messages), wanted);
    for (std::size_t i = 0; i < kCount; ++i) {
        const Scattered& m = messages[i];
        const Bytes after = take(m.out, m.plain.size());
        ASSERT_EQ(after, wanted[i] == kOk ? m.plain : Bytes(after.size(), Poisoned::kPoison)) << i;
    }
}

// Nothing counts as verified before it is.
TEST_P(GcmOpenCl, ResultsAreNotOkBeforeARun) {
    const std::vector<Message> list(3, listed(message(0, 64, 16)));
    const auto batch = prepare(gcm::opening(), list);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(take((*batch)->results(), 12), Bytes(12, 0xff));
}

// Counter mode alone: any first counter, and no results.
TEST_P(GcmOpenCl, CounterModeAlone) {
    Scattered m = message(2, 100000, 0);
    put(m.in, m.plain);
    Message one = listed(m);
    for (const Direction direction : {Direction::encrypt, Direction::decrypt})
        for (const std::uint8_t skip : {std::uint8_t{0}, std::uint8_t{5}}) {
            one.start.back() = direction == Direction::encrypt ? 1 : 0;
            one.skip = skip;
            auto batch = prepare({Mode::gcm_ctr, direction}, std::span(&one, 1));
            ASSERT_TRUE(batch) << batch.error().message;
            ASSERT_TRUE(device_->run(**batch, {}));
            const Use ctr{Mode::ctr, Direction::encrypt, one.start, skip};
            EXPECT_EQ(difference(oracle(raw_[2], ctr, m.plain), take(m.out, m.plain.size())), "");
            EXPECT_EQ((*batch)->results(), nullptr);
        }
}

TEST_P(GcmOpenCl, AnEmptyBatchIsNoWork) {
    for (const Mode mode : kModes) {
        if (mode == Mode::xts) continue;  // which takes other keys
        auto batch = prepare({mode}, {});
        ASSERT_TRUE(batch) << batch.error().message;
        EXPECT_TRUE(device_->run(**batch, {}));
    }
}

TEST_P(GcmOpenCl, WhatItRefuses) {
    EXPECT_FALSE(device_->info().reads_lists);
    const auto* list = reinterpret_cast<const Message*>(buffer(sizeof(Message)));
    const auto there =
        device_->prepare(gcm::sealing(), {keys_, tables_.get()}, {list, 1, dael::Place::device});
    EXPECT_EQ(there.code(), Code::unsupported);
    EXPECT_NE(there.error().message.find("host memory"), std::string::npos);

    const Scattered m = message(0, 64, 0);
    Message too_long = listed(m), on_host = listed(m);
    too_long.size = 4096;  // beyond the buffer
    Bytes here(64);
    on_host.in = here.data();
    for (const Message& bad : {too_long, on_host})
        EXPECT_EQ(prepare(gcm::sealing(), std::span(&bad, 1)).code(), Code::invalid_argument);

    auto other = core::open_backend("opencl", {GetParam(), 0});
    ASSERT_TRUE(other);
    const Message good = listed(m);
    EXPECT_EQ(
        (*other)->device()->prepare(gcm::sealing(), {keys_, tables_.get()}, {&good, 1}).code(),
        Code::invalid_argument);
    auto batch = prepare(gcm::sealing(), std::span(&good, 1));
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ((*other)->device()->run(**batch, {}).code(), Code::invalid_argument);
}

// GHASH by multiplications where no table has room or none is wanted, else by a table where
// messages are long.
INSTANTIATE_TEST_SUITE_P(OpenCl, GcmOpenCl, ::testing::Values("tables=-1", "tables=1,teams=4"),
                         [](const auto& shape) {
                             return shape.index == 0 ? "multiplications" : "tables";
                         });

}  // namespace
