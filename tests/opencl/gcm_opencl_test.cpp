// SPDX-License-Identifier: Apache-2.0
// What is particular to GCM over OpenCL's buffers: messages spread over several of them, GHASH by
// tables and by multiplications, forgeries that leave nothing behind, and lists that must lie on
// the host.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/device.hpp"
#include "core/registry.hpp"
#include "support/gcm_test.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// A message whose parts lie in buffers of their own, or share those of the one before it.
struct Scattered {
    std::size_t key;
    Bytes nonce, aad, plain;
    std::uint8_t *in = nullptr, *out = nullptr, *at_aad = nullptr, *tag = nullptr;
};

class GcmOpenCl : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend("opencl", {GetParam(), 0});
        if (!opened) {
            // A layout that the device has no room for is no fault.
            if (opened.code() != Code::unsupported && required("opencl"))
                FAIL() << opened.error().message;
            GTEST_SKIP() << opened.error().message;
        }
        backend_ = std::move(*opened);
        device_ = backend_->device();
        for (const std::size_t size : {16, 24, 32, 16, 16}) {
            raw_.push_back(random_.bytes(size));
            keys_.push_back(*Key::import(raw_.back()));
        }
        auto prepared = device_->prepare_keys(keys_);
        ASSERT_TRUE(prepared) << prepared.error().message;
        prepared_ = std::move(*prepared);
    }
    void TearDown() override {
        for (void* memory : held_) device_->release(memory);
    }

    std::uint8_t* buffer(std::size_t size) {
        auto made = device_->allocate(std::max<std::size_t>(size, 1));
        EXPECT_TRUE(made) << made.error().message;
        held_.push_back(*made);
        return static_cast<std::uint8_t*>(*made);
    }
    void put(void* to, const Bytes& bytes) {
        ASSERT_TRUE(device_->copy_in(to, bytes.data(), bytes.size(), {}));
    }
    Bytes take(const void* from, std::size_t size) {
        Bytes bytes(size);
        EXPECT_TRUE(device_->copy_out(bytes.data(), from, size, {}));
        EXPECT_TRUE(device_->wait(Stream{}));
        return bytes;
    }

    Scattered message(std::size_t key, std::size_t size, std::size_t aad_size) {
        Scattered m{key, random_.bytes(kNonceSize), random_.bytes(aad_size), random_.bytes(size)};
        m.in = buffer(size);
        m.out = buffer(size);
        m.at_aad = buffer(aad_size);
        m.tag = buffer(kTagSize);
        return m;
    }
    Sealed expected(const Scattered& m) const {
        return gcm_oracle(raw_[m.key], m.nonce, m.aad, m.plain);
    }
    static core::GcmSegment segment(const Scattered& m) {
        return {m.in,           m.out,
                m.plain.size(), m.at_aad,
                m.aad.size(),   m.nonce.data(),
                kNonceSize,     m.tag,
                kTagSize,       static_cast<std::uint32_t>(m.key)};
    }

    std::vector<std::uint32_t> run(Direction direction, const std::vector<Scattered>& messages) {
        std::vector<core::GcmSegment> segments;
        for (const Scattered& m : messages) segments.push_back(segment(m));
        auto batch = device_->prepare_gcm(*prepared_, segments);
        EXPECT_TRUE(batch) << batch.error().message;
        if (!batch) return {};
        auto ran = device_->gcm(direction, **batch, {});
        EXPECT_TRUE(ran) << ran.error().message;
        std::vector<std::uint32_t> codes(messages.size(), 99);
        EXPECT_TRUE(device_->copy_out(codes.data(), (*batch)->results(),
                                      codes.size() * sizeof codes[0], {}));
        EXPECT_TRUE(device_->wait(Stream{}));
        return codes;
    }

    Random random_{20261122};
    std::unique_ptr<core::Backend> backend_;
    core::Device* device_ = nullptr;
    std::vector<Bytes> raw_;
    std::vector<Key> keys_;
    std::unique_ptr<core::PreparedKeys> prepared_;
    std::vector<void*> held_;
};

const std::uint32_t kOk = static_cast<std::uint32_t>(Code::ok);
const std::uint32_t kForged = static_cast<std::uint32_t>(Code::authentication);

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
        ASSERT_EQ(difference(sealed.tag, take(m.tag, kTagSize)), "") << i;
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
        if (i % 4 == 0) sealed.tag[random_.below(kTagSize)] ^= 0x20;
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
                        *const tags = buffer(kTagSize * kCount);
    std::vector<Scattered> messages;
    for (std::size_t i = 0; i < kCount; ++i) {
        const std::size_t size = i % 4 == 3 ? 100 * i : 80000 + random_.below(80000);
        // One in four at an odd place, which has neither counter caching nor whole words.
        const std::size_t at = i * kRoom + (i % 4 == 1 ? i : 0);
        messages.push_back({std::array<std::size_t, 3>{0, 3, 4}[i % 3],
                            random_.bytes(kNonceSize),
                            {},
                            random_.bytes(std::min(size, kRoom - 16)),
                            in + at,
                            out + at,
                            nullptr,
                            tags + i * kTagSize});
        put(messages.back().in, messages.back().plain);
    }
    EXPECT_EQ(run(Direction::encrypt, messages), std::vector<std::uint32_t>(kCount, kOk));
    std::vector<std::uint32_t> wanted(kCount, kOk);
    for (std::size_t i = 0; i < kCount; ++i) {
        const Scattered& m = messages[i];
        Sealed sealed = expected(m);
        ASSERT_EQ(difference(sealed.ciphertext, take(m.out, m.plain.size())), "") << i;
        ASSERT_EQ(difference(sealed.tag, take(m.tag, kTagSize)), "") << i;
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
    const std::vector<core::GcmSegment> segments(3, segment(message(0, 64, 16)));
    const auto batch = device_->prepare_gcm(*prepared_, segments);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(take((*batch)->results(), 12), Bytes(12, 0xff));
}

// Counter mode alone (a tag size of 0): the counter begins at 1, and all results are ok.
TEST_P(GcmOpenCl, CounterModeAlone) {
    Scattered m = message(2, 100000, 0);
    put(m.in, m.plain);
    core::GcmSegment one = segment(m);
    one.tag_size = 0;
    auto batch = device_->prepare_gcm(*prepared_, std::span(&one, 1));
    ASSERT_TRUE(batch) << batch.error().message;
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        ASSERT_TRUE(device_->gcm(direction, **batch, {}));
        Block counter{};
        std::ranges::copy(m.nonce, counter.begin());
        counter.back() = 1;
        const Cipher ctr{Mode::ctr, Direction::encrypt, counter};
        EXPECT_EQ(difference(oracle(raw_[2], ctr, m.plain), take(m.out, m.plain.size())), "");
        EXPECT_EQ(take((*batch)->results(), 4), Bytes(4));
    }
}

// CBC encryption with a key for each message, of all sizes, between two pairs of buffers.
TEST_P(GcmOpenCl, CbcWithAKeyForEachMessage) {
    constexpr std::size_t kCount = 100, kRoom = 1024;
    std::uint8_t* const from[] = {buffer(kRoom * kCount), buffer(kRoom * kCount)};
    std::uint8_t* const to[] = {buffer(kRoom * kCount), from[1]};  // the second pair is in place
    std::vector<Bytes> plain;
    std::vector<KeyedMessage> messages;
    for (std::size_t i = 0; i < kCount; ++i) {
        plain.push_back(random_.bytes(random_.below(kRoom / 16 + 1) * 16));
        const std::size_t at = i * kRoom;
        KeyedMessage m{from[i % 2] + at, to[i % 2] + at, plain[i].size()};
        m.iv = random_.block();
        m.key = static_cast<std::uint32_t>(random_.below(raw_.size()));
        messages.push_back(m);
        put(from[i % 2] + at, plain[i]);
    }
    auto batch = device_->prepare_cbc_encrypt(*prepared_, messages);
    ASSERT_TRUE(batch) << batch.error().message;
    const auto ran = device_->cbc_encrypt(**batch, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(take((*batch)->results(), kCount * 4), Bytes(kCount * 4));
    for (std::size_t i = 0; i < kCount; ++i) {
        const Cipher cbc{Mode::cbc, Direction::encrypt, messages[i].iv};
        ASSERT_EQ(difference(oracle(raw_[messages[i].key], cbc, plain[i]),
                             take(messages[i].out, plain[i].size())),
                  "")
            << i;
    }
    EXPECT_EQ(device_->prepare_cbc_encrypt(*prepared_, nullptr, 0).code(), Code::unsupported);
}

TEST_P(GcmOpenCl, AnEmptyBatchIsNoWork) {
    auto batch = device_->prepare_gcm(*prepared_, std::span<const core::GcmSegment>{});
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_TRUE(device_->gcm(Direction::encrypt, **batch, {}));
}

TEST_P(GcmOpenCl, WhatItRefuses) {
    const auto* list = reinterpret_cast<const GcmMessage*>(buffer(sizeof(GcmMessage)));
    const auto listed = device_->prepare_gcm(*prepared_, list, 1, kTagSize);
    EXPECT_EQ(listed.code(), Code::unsupported);
    EXPECT_NE(listed.error().message.find("host memory"), std::string::npos);

    const Scattered m = message(0, 64, 0);
    core::GcmSegment odd_tag = segment(m), too_long = segment(m), on_host = segment(m);
    odd_tag.tag_size = 7;
    too_long.size = 4096;  // beyond the buffer
    Bytes here(64);
    on_host.in = here.data();
    for (const core::GcmSegment& bad : {odd_tag, too_long, on_host})
        EXPECT_EQ(device_->prepare_gcm(*prepared_, std::span(&bad, 1)).code(),
                  Code::invalid_argument);

    auto other = core::open_backend("opencl", {GetParam(), 0});
    ASSERT_TRUE(other);
    const core::GcmSegment good = segment(m);
    EXPECT_EQ((*other)->device()->prepare_gcm(*prepared_, std::span(&good, 1)).code(),
              Code::invalid_argument);
    auto batch = device_->prepare_gcm(*prepared_, std::span(&good, 1));
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ((*other)->device()->gcm(Direction::encrypt, **batch, {}).code(),
              Code::invalid_argument);
}

// GHASH by multiplications where no table has room or none is wanted, else by a table where
// messages are long.
INSTANTIATE_TEST_SUITE_P(OpenCl, GcmOpenCl, ::testing::Values("tables=-1", "tables=1,teams=4"),
                         [](const auto& shape) {
                             return shape.index == 0 ? "multiplications" : "tables";
                         });

}  // namespace
