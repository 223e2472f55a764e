// SPDX-License-Identifier: Apache-2.0
// The engine's GCM batches in device memory: sealed, opened, refused, and counter mode without
// tags.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/cuda/cuda_device.hpp"
#include "support/bytes.hpp"
#include "support/gcm_test.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using dael::test::Bytes;

class GcmEngine : public testing::Test {
  protected:
    static constexpr std::size_t kSizes[] = {0, 1, 1000, 8192, 70000, 1 << 20};

    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        device_ = std::move(*cuda::CudaDevice::open(0));
        engine_ = std::make_unique<Engine>(std::move(*Engine::open({.backend = "cuda"})));
        for (int i = 0; i < 2; ++i) {
            raw_.push_back(random_.bytes(16));
            keys_.push_back(std::move(*Key::import(raw_.back())));
        }
        stream_ = *device_->create_stream();
        memory_ = static_cast<std::uint8_t*>(*device_->allocate(kRoom * 4));
        data_ = random_.bytes(kRoom);
        copy(memory_, data_);
        for (const std::size_t size : kSizes) {
            GcmMessage m;
            m.in = memory_ + used_;
            m.out = memory_ + kRoom + used_;
            m.size = size;
            m.tag = memory_ + 2 * kRoom + messages_.size() * 16;
            m.nonce[3] = static_cast<std::uint8_t>(messages_.size());
            m.key = static_cast<std::uint32_t>(messages_.size() % 2);
            messages_.push_back(m);
            used_ += (size + 15) / 16 * 16;
        }
    }
    void TearDown() override {
        if (!device_) return;
        device_->release(memory_);
        device_->destroy_stream(stream_);
    }
    void copy(std::uint8_t* to, const Bytes& bytes) {
        ASSERT_TRUE(device_->copy_in(to, bytes.data(), bytes.size(), stream_));
        ASSERT_TRUE(device_->wait(stream_));
    }
    Bytes fetch(const std::uint8_t* from, std::size_t size) {
        Bytes bytes(size);
        EXPECT_TRUE(device_->copy_out(bytes.data(), from, size, stream_));
        EXPECT_TRUE(device_->wait(stream_));
        return bytes;
    }
    Bytes plain(const GcmMessage& m) const {
        const auto at = data_.begin() + (m.in - memory_);
        return {at, at + static_cast<std::ptrdiff_t>(m.size)};
    }

    static constexpr std::size_t kRoom = std::size_t{2} << 20;
    std::unique_ptr<cuda::CudaDevice> device_;
    std::unique_ptr<Engine> engine_;
    test::Random random_{77};
    std::vector<Bytes> raw_;
    std::vector<Key> keys_;
    Stream stream_;
    std::uint8_t* memory_ = nullptr;
    Bytes data_;
    std::size_t used_ = 0;
    std::vector<GcmMessage> messages_;
};

TEST_F(GcmEngine, SealsOnceAndOpensAgain) {
    auto set = engine_->prepare_keys(keys_);
    ASSERT_TRUE(set) << set.error().message;
    auto batch = engine_->prepare_gcm(*set, messages_);
    ASSERT_TRUE(batch) << batch.error().message;
    auto sealed = engine_->seal(*batch, stream_);
    ASSERT_TRUE(sealed) << sealed.error().message;
    EXPECT_EQ(sealed->backend, "cuda:0");
    EXPECT_EQ(*engine_->results(*batch, stream_), std::vector<Code>(messages_.size(), Code::ok));
    for (const GcmMessage& m : messages_) {
        const test::Sealed expected = test::gcm_oracle(raw_[m.key], m.nonce, {}, plain(m));
        EXPECT_EQ(fetch(m.out, m.size), expected.ciphertext) << m.size;
        EXPECT_EQ(fetch(m.tag, 16), expected.tag) << m.size;
    }
    EXPECT_EQ(engine_->seal(*batch, stream_).code(), Code::limit);

    std::vector<GcmMessage> back = messages_;
    for (GcmMessage& m : back) {
        m.in = m.out;
        m.out += 2 * kRoom;  // beside the tags
    }
    copy(const_cast<std::uint8_t*>(back[3].in) + 5, {0});  // a forgery, most probably
    auto again = engine_->prepare_gcm(*set, back);
    ASSERT_TRUE(again) << again.error().message;
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(engine_->open(*again, stream_));
        const auto results = *engine_->results(*again, stream_);
        for (std::size_t k = 0; k < back.size(); ++k) {
            EXPECT_EQ(results[k], k == 3 ? Code::authentication : Code::ok) << k;
            if (k == 3) continue;
            EXPECT_EQ(fetch(back[k].out, back[k].size), plain(messages_[k])) << k;
        }
    }
}

// Parquet's AES_GCM_CTR_V1: the nonce, then a 32-bit counter from 1.
TEST_F(GcmEngine, CounterModeWithoutTags) {
    auto set = engine_->prepare_keys(keys_);
    ASSERT_TRUE(set) << set.error().message;
    void* list = *device_->allocate(messages_.size() * sizeof(GcmMessage));
    ASSERT_TRUE(
        device_->copy_in(list, messages_.data(), messages_.size() * sizeof(GcmMessage), stream_));
    ASSERT_TRUE(device_->wait(stream_));
    auto batch = engine_->prepare_gcm(*set, static_cast<const GcmMessage*>(list),
                                      static_cast<std::uint32_t>(messages_.size()), 0);
    ASSERT_TRUE(batch) << batch.error().message;
    ASSERT_TRUE(engine_->seal(*batch, stream_));
    EXPECT_EQ(*engine_->results(*batch, stream_), std::vector<Code>(messages_.size(), Code::ok));
    for (const GcmMessage& m : messages_) {
        Block counter{};
        std::ranges::copy(m.nonce, counter.begin());
        counter[15] = 1;
        EXPECT_EQ(fetch(m.out, m.size),
                  test::oracle(raw_[m.key], {Mode::ctr, Direction::encrypt, counter, 0}, plain(m)))
            << m.size;
    }
    device_->release(list);
}

TEST_F(GcmEngine, WhatIsWrongIsNamed) {
    auto set = engine_->prepare_keys(keys_);
    ASSERT_TRUE(set) << set.error().message;
    messages_[2].key = 2;
    const auto refused = engine_->prepare_gcm(*set, messages_);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(refused.error().message.substr(0, 10), "message 2:") << refused.error().message;
    EXPECT_EQ(engine_->prepare_gcm(*set, messages_, 7).code(), Code::invalid_argument);
    EXPECT_EQ(engine_->prepare_gcm(*set, nullptr, 3).code(), Code::invalid_argument);
    Engine other = std::move(*Engine::open({.backend = "cuda"}));
    EXPECT_EQ(other.prepare_gcm(*set, std::span(messages_).first(1)).code(),
              Code::invalid_argument);
}

}  // namespace
