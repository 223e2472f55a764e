// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels' time must not depend on what they process: the attack of Jiang, Fei and Kaeli
// (HPCA 2016) reads keys from bank conflicts. Every layout, and a kernel with conflicts as the
// control.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "backends/cuda/cuda_device.hpp"
#include "cuda/leaky_kernel.hpp"
#include "timing/welch.hpp"

namespace {

using namespace dael;

constexpr std::size_t kSize = std::size_t{1}
                              << 20;  // bytes of a message: long against the clock's tick
constexpr int kBuffers = 8;           // of each kind, so that caches serve both alike
constexpr int kSamples = 6000;
constexpr int kAttempts = 3;

class CudaTiming : public testing::TestWithParam<int> {  // the parameter: tables, 4, 2 or 1
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        device_ = std::move(*cuda::CudaDevice::open(0, GetParam()));
        stream_ = *device_->create_stream();
        from_ = *device_->create_event();
        to_ = *device_->create_event();
        out_ = *device_->allocate(kSize);
        std::mt19937 random(7);
        std::vector<std::uint32_t> bytes(kSize / 4, 0x5a5a5a5au);
        for (int kind = 0; kind < 2; ++kind)  // fixed, then random
            for (int b = 0; b < kBuffers; ++b) {
                if (kind == 1)
                    for (auto& word : bytes) word = static_cast<std::uint32_t>(random());
                in_[kind].push_back(*device_->allocate(kSize));
                ASSERT_TRUE(device_->copy_in(in_[kind].back(), bytes.data(), kSize, stream_));
                ASSERT_TRUE(device_->wait(stream_));
            }
    }
    void TearDown() override {
        if (!device_) return;
        for (auto& kind : in_)
            for (void* memory : kind) device_->release(memory);
        device_->release(out_);
        device_->destroy_event(from_);
        device_->destroy_event(to_);
        device_->destroy_stream(stream_);
    }

    // Times launch(kind, buffer, sample) on the device, the kind by the toss of a coin.
    template <class Launch>
    timing::Samples time(Launch launch) {
        std::mt19937 random(11);
        timing::Samples samples;
        for (int i = 0; i < kSamples; ++i) {
            const unsigned kind = random() & 1;
            const void* in = in_[kind][random() % kBuffers];
            EXPECT_TRUE(device_->record(from_, stream_));
            launch(kind, static_cast<const std::uint8_t*>(in));
            EXPECT_TRUE(device_->record(to_, stream_));
            EXPECT_TRUE(device_->wait(to_));
            if (i < kSamples / 20) continue;  // the first are cold
            (kind ? samples.random : samples.fixed).push_back(*device_->elapsed_ms(from_, to_));
        }
        return samples;
    }

    std::unique_ptr<cuda::CudaDevice> device_;
    Stream stream_;
    core::Event from_, to_;
    void* out_ = nullptr;
    std::vector<void*> in_[2];
};

TEST_P(CudaTiming, KernelsDoNotDependOnData) {
    const std::vector<std::uint8_t> raw(16, 0x3c);
    const Key key = std::move(*Key::import(raw));
    const core::Operation operations[] = {{Mode::ecb, Direction::encrypt, &key},
                                          {Mode::ecb, Direction::decrypt, &key},
                                          {Mode::cbc, Direction::decrypt, &key},
                                          {Mode::cfb, Direction::decrypt, &key},
                                          {Mode::ctr, Direction::encrypt, &key}};
    for (const auto& operation : operations) {
        const double t = timing::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                EXPECT_TRUE(device_->run(
                    operation, {in, static_cast<std::uint8_t*>(out_), kSize, {}, 0}, stream_));
            });
        });
        RecordProperty(
            std::string(name(operation.mode)) + "-" + std::string(name(operation.direction)),
            std::to_string(t));
        EXPECT_LT(t, timing::kThreshold)
            << name(operation.mode) << " " << name(operation.direction);
    }
}

// XTS has tweaks besides, with shifts that depend on the lane and never on a tweak.
TEST_P(CudaTiming, XtsDoesNotDependOnData) {
    std::vector<std::uint8_t> raw(32, 0x3c);
    raw.back() = 0x3d;
    const XtsKey key = std::move(*XtsKey::import(raw));
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        const double t = timing::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                EXPECT_TRUE(device_->xts({direction, &key, 512},
                                         {in, static_cast<std::uint8_t*>(out_), kSize, {}, 0},
                                         stream_));
            });
        });
        RecordProperty("xts-" + std::string(name(direction)), std::to_string(t));
        EXPECT_LT(t, timing::kThreshold) << name(direction);
    }
}

// GHASH has matrices or multiplications besides; one long message and many short ones.
TEST_P(CudaTiming, GcmDoesNotDependOnData) {
    const std::vector<std::uint8_t> raw(16, 0x3c), nonce(kNonceSize, 1);
    const Key key = std::move(*Key::import(raw));
    const auto keys = device_->prepare_keys(std::span(&key, 1));
    ASSERT_TRUE(keys) << keys.error().message;
    void* tags = *device_->allocate(kSize / 1024 * kTagSize);
    for (const std::size_t size : {kSize, std::size_t{1024}}) {
        std::map<const std::uint8_t*, std::unique_ptr<core::PreparedGcm>> batches;
        for (const auto& kind : in_)
            for (void* memory : kind) {
                std::vector<core::GcmSegment> messages(kSize / size);
                for (std::size_t i = 0; i < messages.size(); ++i) {
                    core::GcmSegment& m = messages[i];
                    m.in = static_cast<const std::uint8_t*>(memory) + i * size;
                    m.out = static_cast<std::uint8_t*>(out_) + i * size;
                    m.size = size;
                    m.iv = nonce.data();
                    m.iv_size = nonce.size();
                    m.tag = static_cast<std::uint8_t*>(tags) + i * kTagSize;
                }
                auto batch = device_->prepare_gcm(**keys, messages);
                ASSERT_TRUE(batch) << batch.error().message;
                batches[static_cast<const std::uint8_t*>(memory)] = std::move(*batch);
            }
        const double t = timing::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                EXPECT_TRUE(device_->gcm(Direction::encrypt, *batches[in], stream_));
            });
        });
        RecordProperty("gcm-" + std::to_string(size), std::to_string(t));
        EXPECT_LT(t, timing::kThreshold) << "messages of " << size << " bytes";
    }
    device_->release(tags);
}

// Round keys in registers, not in the constant bank; a message to a thread.
TEST_P(CudaTiming, CbcWithAKeyForEachMessageDoesNotDependOnData) {
    constexpr std::size_t kMessage = 256;
    std::vector<Key> two;
    for (const std::uint8_t byte : {std::uint8_t{0x3c}, std::uint8_t{0xa1}})
        two.push_back(std::move(*Key::import(std::vector<std::uint8_t>(16, byte))));
    const auto keys = device_->prepare_keys(two);
    ASSERT_TRUE(keys) << keys.error().message;
    std::map<const std::uint8_t*, std::unique_ptr<core::PreparedKeyed>> batches;
    for (const auto& kind : in_)
        for (void* memory : kind) {
            std::vector<KeyedMessage> messages(kSize / kMessage);
            for (std::size_t i = 0; i < messages.size(); ++i) {
                messages[i].in = static_cast<const std::uint8_t*>(memory) + i * kMessage;
                messages[i].out = static_cast<std::uint8_t*>(out_) + i * kMessage;
                messages[i].size = kMessage;
                messages[i].key = static_cast<std::uint32_t>(i % 2);
            }
            auto batch = device_->prepare_cbc_encrypt(**keys, messages);
            ASSERT_TRUE(batch) << batch.error().message;
            batches[static_cast<const std::uint8_t*>(memory)] = std::move(*batch);
        }
    const double t = timing::smallest_of(kAttempts, [&] {
        return time([&](unsigned, const std::uint8_t* in) {
            EXPECT_TRUE(device_->cbc_encrypt(*batches[in], stream_));
        });
    });
    RecordProperty("cbc-keyed", std::to_string(t));
    EXPECT_LT(t, timing::kThreshold);
}

// Where the key decides which entries are read: one key against many.
TEST_P(CudaTiming, KernelsDoNotDependOnTheKey) {
    std::mt19937 random(5);
    std::vector<Key> keys;
    for (int k = 0; k < 64; ++k) {
        std::vector<std::uint8_t> raw(16);
        for (auto& byte : raw) byte = static_cast<std::uint8_t>(random());
        keys.push_back(std::move(*Key::import(raw)));
    }
    const std::uint8_t* in = static_cast<const std::uint8_t*>(in_[1][0]);
    const double t = timing::smallest_of(kAttempts, [&] {
        return time([&](unsigned kind, const std::uint8_t*) {
            const Key& key = keys[random() % 63 * kind];  // both kinds draw
            EXPECT_TRUE(device_->run({Mode::ecb, Direction::encrypt, &key},
                                     {in, static_cast<std::uint8_t*>(out_), kSize, {}, 0},
                                     stream_));
        });
    });
    RecordProperty("t", std::to_string(t));
    EXPECT_LT(t, timing::kThreshold);
}

TEST_P(CudaTiming, ControlFindsBankConflicts) {
    const double t = timing::smallest_of(kAttempts, [&] {
        return time([&](unsigned, const std::uint8_t* in) {
            EXPECT_EQ(test::launch_leaky_rounds(in, out_, kSize,
                                                static_cast<cudaStream_t>(stream_.handle)),
                      cudaSuccess);
        });
    });
    RecordProperty("t", std::to_string(t));
    EXPECT_GE(t, timing::kThreshold) << "bank conflicts went unseen: the rest proves nothing";
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaTiming, testing::Values(4, 2, 1), [](const auto& instance) {
    return std::to_string(instance.param * 32) + "KiB";
});

}  // namespace
