// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels' time must not depend on what they process: the attack of Jiang, Fei and Kaeli
// (HPCA 2016) reads keys from bank conflicts. Every layout, and a kernel with conflicts as the
// control.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "backends/cuda/device.hpp"
#include "cuda/leaky_kernel.hpp"
#include "measure/timed.hpp"

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
        stream_ = *device_->order().create_stream();
        from_ = *device_->order().create_event();
        to_ = *device_->order().create_event();
        out_ = *device_->memory().allocate(kSize);
        std::mt19937 random(7);
        std::vector<std::uint32_t> bytes(kSize / 4, 0x5a5a5a5au);
        for (int kind = 0; kind < 2; ++kind)  // fixed, then random
            for (int b = 0; b < kBuffers; ++b) {
                if (kind == 1)
                    for (auto& word : bytes) word = static_cast<std::uint32_t>(random());
                in_[kind].push_back(*device_->memory().allocate(kSize));
                ASSERT_TRUE(
                    device_->memory().copy_in(in_[kind].back(), bytes.data(), kSize, stream_));
                ASSERT_TRUE(device_->order().wait(stream_));
            }
    }
    void TearDown() override {
        if (!device_) return;
        for (auto& kind : in_)
            for (void* memory : kind) device_->memory().release(memory);
        device_->memory().release(out_);
        device_->order().destroy_event(from_);
        device_->order().destroy_event(to_);
        device_->order().destroy_stream(stream_);
    }

    // Times launch(kind, buffer, sample) on the device, the kind by the toss of a coin.
    template <class Launch>
    measure::Samples time(Launch launch) {
        std::mt19937 random(11);
        return measure::collect(kSamples, [&](bool is_fixed) {
            const unsigned kind = is_fixed ? 0 : 1;
            const void* in = in_[kind][random() % kBuffers];
            EXPECT_TRUE(device_->order().record(from_, stream_));
            launch(kind, static_cast<const std::uint8_t*>(in));
            EXPECT_TRUE(device_->order().record(to_, stream_));
            EXPECT_TRUE(device_->order().wait(to_));
            return static_cast<double>(*device_->order().elapsed_ms(from_, to_));
        });
    }

    // One message.
    void expect_constant(const Cipher& cipher, const Key& key) {
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) { run(cipher, key, in); });
        });
        const auto what =
            std::string(name(cipher.mode)) + "-" + std::string(name(cipher.direction));
        RecordProperty(what, std::to_string(t));
        EXPECT_LT(t, measure::kThreshold) << what;
    }
    void run(const Cipher& cipher, const Key& key, const std::uint8_t* in) {
        const Message message{.in = in, .out = static_cast<std::uint8_t*>(out_), .size = kSize};
        EXPECT_TRUE(device_->run(cipher, {std::span(&key, 1)}, message, stream_));
    }

    // Messages of `size` bytes, under keys of these bytes in turn.
    void expect_constant_batches(const Cipher& cipher, const std::vector<std::uint8_t>& key_bytes,
                                 std::size_t size) {
        std::vector<Key> list;
        for (const std::uint8_t byte : key_bytes)
            list.push_back(std::move(*Key::import(std::vector<std::uint8_t>(16, byte))));
        const auto tables = device_->tables(list);
        ASSERT_TRUE(tables) << tables.error().message;
        void* const tags = *device_->memory().allocate(kSize / size * 16);
        std::map<const std::uint8_t*, std::unique_ptr<core::Prepared>> batches;
        for (const auto& kind : in_)
            for (void* memory : kind) {
                std::vector<Message> messages(kSize / size);
                for (std::size_t i = 0; i < messages.size(); ++i) {
                    messages[i].in = static_cast<const std::uint8_t*>(memory) + i * size;
                    messages[i].out = static_cast<std::uint8_t*>(out_) + i * size;
                    messages[i].size = size;
                    messages[i].tag = static_cast<std::uint8_t*>(tags) + i * 16;
                    messages[i].key = static_cast<std::uint32_t>(i % list.size());
                }
                auto batch = device_->prepare(
                    cipher, {list, tables->get()},
                    {messages.data(), static_cast<std::uint32_t>(messages.size())});
                ASSERT_TRUE(batch) << batch.error().message;
                batches[static_cast<const std::uint8_t*>(memory)] = std::move(*batch);
            }
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                EXPECT_TRUE(device_->run(*batches[in], stream_));
            });
        });
        RecordProperty(std::string(name(cipher.mode)) + "-batch-" + std::to_string(size),
                       std::to_string(t));
        EXPECT_LT(t, measure::kThreshold) << "messages of " << size << " bytes";
        batches.clear();
        device_->memory().release(tags);
    }

    std::unique_ptr<cuda::CudaDevice> device_;
    Stream stream_;
    Event from_, to_;
    void* out_ = nullptr;
    std::vector<void*> in_[2];
};

TEST_P(CudaTiming, KernelsDoNotDependOnData) {
    const Key key = std::move(*Key::import(std::vector<std::uint8_t>(16, 0x3c)));
    for (const Cipher& cipher :
         {Cipher{Mode::ecb, Direction::encrypt}, Cipher{Mode::ecb, Direction::decrypt},
          Cipher{Mode::cbc, Direction::decrypt}, Cipher{Mode::cfb, Direction::decrypt},
          Cipher{Mode::ctr, Direction::encrypt}})
        expect_constant(cipher, key);
}

// XTS has tweaks besides, with shifts that depend on the lane and never on a tweak.
TEST_P(CudaTiming, XtsDoesNotDependOnData) {
    std::vector<std::uint8_t> raw(32, 0x3c);
    raw.back() = 0x3d;
    const Key key = std::move(*Key::import_xts(raw));
    for (const Direction direction : {Direction::encrypt, Direction::decrypt})
        expect_constant({Mode::xts, direction}, key);
}

// GHASH has matrices or multiplications besides; one long message and many short ones.
TEST_P(CudaTiming, GcmDoesNotDependOnData) {
    for (const std::size_t size : {kSize, std::size_t{1024}})
        expect_constant_batches({Mode::gcm, Direction::encrypt}, {0x3c}, size);
}

// Round keys in registers, not in the constant bank; a message to a thread.
TEST_P(CudaTiming, CbcWithAKeyForEachMessageDoesNotDependOnData) {
    expect_constant_batches({Mode::cbc, Direction::encrypt}, {0x3c, 0xa1}, 256);
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
    const double t = measure::smallest_of(kAttempts, [&] {
        return time([&](unsigned kind, const std::uint8_t*) {
            const Key& key = keys[random() % 63 * kind];  // both kinds draw
            run({Mode::ecb}, key, in);
        });
    });
    RecordProperty("t", std::to_string(t));
    EXPECT_LT(t, measure::kThreshold);
}

TEST_P(CudaTiming, ControlFindsBankConflicts) {
    const double t = measure::smallest_of(kAttempts, [&] {
        return time([&](unsigned, const std::uint8_t* in) {
            EXPECT_EQ(test::launch_leaky_rounds(in, out_, kSize,
                                                static_cast<cudaStream_t>(stream_.handle)),
                      cudaSuccess);
        });
    });
    RecordProperty("t", std::to_string(t));
    EXPECT_GE(t, measure::kThreshold) << "bank conflicts went unseen: the rest proves nothing";
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaTiming, testing::Values(4, 2, 1), [](const auto& instance) {
    return std::to_string(instance.param * 32) + "KiB";
});

}  // namespace
