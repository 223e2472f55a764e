// SPDX-License-Identifier: Apache-2.0
// Sealed streams opened straight into GPU memory: the bytes that a host backend sealed, and zeros
// where anything is wrong.
#include <gtest/gtest.h>

#include "backends/cuda/device.hpp"
#include "formats/keysets.hpp"

namespace dael::test {
namespace {

class SealedToGpu : public testing::TestWithParam<std::uint32_t> {
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        device_ = must(cuda::CudaDevice::open(0));
        stream_ = must(device_->order().create_stream());
    }
    void TearDown() override {
        if (memory_) device_->memory().release(memory_);
        if (device_) device_->order().destroy_stream(stream_);
    }
    void seal_random(std::size_t size) {
        auto host = engine("cpu");
        plain_ = random_bytes(size, GetParam());
        sealed_ = seal(host, keys_, plain_, aad_);
        if (memory_) device_->memory().release(memory_);
        memory_ = must(device_->memory().allocate(size));
        must_fill();
    }
    void must_fill() {
        ASSERT_TRUE(device_->memory().fill(memory_, 0xa5, plain_.size(), stream_));
        ASSERT_TRUE(device_->order().wait(stream_));
    }
    Result<Ran> open_all(Engine& on) {
        auto file = sealed::File::open(
            on, keys_, aad_,
            [&](std::uint64_t at, HostOut out) -> Result<> {
                std::copy_n(sealed_.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                            out.begin());
                return {};
            },
            sealed_.size());
        if (!file) return std::move(file).error();
        EXPECT_EQ(file->size(), plain_.size());
        return file->read_all({memory_, plain_.size()}, stream_);
    }
    Bytes fetch() {
        Bytes bytes(plain_.size());
        EXPECT_TRUE(device_->memory().copy_out(bytes.data(), memory_, bytes.size(), stream_));
        EXPECT_TRUE(device_->order().wait(stream_));
        return bytes;
    }

    std::unique_ptr<cuda::CudaDevice> device_;
    Stream stream_;
    void* memory_ = nullptr;
    sealed::Keys keys_ = must(sealed::Keys::from_key(Bytes(32, 5), GetParam()));
    Bytes aad_ = pattern(11), plain_, sealed_;
};

TEST_P(SealedToGpu, OpensWhatTheHostSealed) {
    for (const std::size_t chunk : {0, 1 << 20, 3 << 20}) {
        auto on = must(Engine::open({.backend = "cuda", .chunk = chunk}));
        for (const std::size_t size : {1, 4000, 5'300'123, 70'000'001}) {
            SCOPED_TRACE(std::to_string(size) + " bytes in chunks of " + std::to_string(chunk));
            seal_random(size);
            const auto ran = open_all(on);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, "cuda:0");
            EXPECT_EQ(difference(plain_, fetch()), "");
        }
    }
}

TEST_P(SealedToGpu, UnderAutoToo) {
    auto on = engine("auto");
    seal_random(5'300'123);
    const auto ran = open_all(on);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->backend, "cuda:0");
    EXPECT_EQ(difference(plain_, fetch()), "");
}

TEST_P(SealedToGpu, AFlippedBitIsRefusedAndTheMemoryIsZero) {
    auto on = must(Engine::open({.backend = "cuda", .chunk = 2 << 20}));
    seal_random(5'300'123);
    const std::size_t last = (sealed_.size() - 1) / GetParam();
    for (const std::size_t segment : {std::size_t{1}, last / 2, last}) {
        const std::size_t at = segment * GetParam() + 77;
        must_fill();
        sealed_[at] ^= 0x10;
        const auto ran = open_all(on);
        sealed_[at] ^= 0x10;
        ASSERT_FALSE(ran);
        EXPECT_EQ(ran.code(), Code::authentication);
        EXPECT_NE(ran.error().message.find("segment " + std::to_string(segment) +
                                           (segment == last ? "," : " ")),
                  std::string::npos)
            << ran.error().message;
        EXPECT_EQ(difference(Bytes(plain_.size(), 0), fetch()), "");
    }
    ASSERT_TRUE(open_all(on));
    EXPECT_EQ(difference(plain_, fetch()), "");
}

TEST_P(SealedToGpu, HostMemoryIsRefused) {
    auto on = engine("cuda");
    seal_random(5000);
    Bytes elsewhere(plain_.size(), 0xa5);
    auto file = must(sealed::File::open(
        on, keys_, aad_,
        [&](std::uint64_t at, HostOut out) -> Result<> {
            std::copy_n(sealed_.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
            return {};
        },
        sealed_.size()));
    EXPECT_EQ(file.read_all({elsewhere.data(), elsewhere.size()}, stream_).code(),
              Code::invalid_argument);
    EXPECT_EQ(elsewhere, Bytes(plain_.size(), 0xa5));
}

INSTANTIATE_TEST_SUITE_P(Segments, SealedToGpu,
                         testing::Values(sealed::kSmallSegment, sealed::kLargeSegment));

}  // namespace
}  // namespace dael::test
