// SPDX-License-Identifier: Apache-2.0
// A CUDA device for tests: one by number, with any layout of its tables.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device.hpp"
#include "support/device_subject.hpp"
#include "support/test_batch.hpp"

namespace dael::test {

// Skips, loudly, where there are fewer GPUs than `count`.
#define DAEL_NEEDS_GPUS(count)                                                          \
    do {                                                                                \
        std::string dael_why;                                                           \
        const int dael_found = cuda::count_devices(&dael_why);                          \
        if (dael_found < (count))                                                       \
            GTEST_SKIP() << "needs " << (count) << " NVIDIA GPUs, found " << dael_found \
                         << (dael_why.empty() ? "" : ": ") << dael_why;                 \
    } while (false)

class CudaTest : public ::testing::Test {
  protected:
    void SetUp() override {
        DAEL_NEEDS_GPUS(1);
        open(0);
    }
    void TearDown() override {
        if (!device_) return;
        for (void* memory : allocations_) device_->memory().release(memory);
        if (stream_.handle) device_->order().destroy_stream(stream_);
    }
    void open(int index) {
        auto opened = cuda::open_cuda_backend(index);
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
        device_ = static_cast<cuda::CudaDevice*>(backend_->device());
        auto stream = device_->order().create_stream();
        ASSERT_TRUE(stream) << stream.error().message;
        stream_ = *stream;
    }

    std::uint8_t* allocate(std::size_t size) {
        auto memory = device_->memory().allocate(size);
        EXPECT_TRUE(memory) << memory.error().message;
        if (!memory) return nullptr;
        allocations_.push_back(*memory);
        return static_cast<std::uint8_t*>(*memory);
    }
    std::uint8_t* put(const Bytes& bytes) {
        std::uint8_t* const memory = allocate(bytes.size() + 1);
        put(memory, bytes.data(), bytes.size());
        return memory;
    }
    void put(void* to, const void* from, std::size_t size) {
        EXPECT_TRUE(device_->memory().copy_in(to, from, size, stream_));
        wait();
    }
    Bytes get(const void* from, std::size_t size) {
        Bytes bytes(size);
        EXPECT_TRUE(device_->memory().copy_out(bytes.data(), from, size, stream_));
        wait();
        return bytes;
    }
    void wait() {
        const auto waited = device_->order().wait(stream_);
        EXPECT_TRUE(waited) << waited.error().message;
    }

    std::unique_ptr<core::Backend> backend_;
    cuda::CudaDevice* device_ = nullptr;  // of the backend
    Stream stream_;

  private:
    std::vector<void*> allocations_;
};

// Through a subject, whose memory is poisoned around every message: "" or what was wrong.
inline std::string fault_of(Subject& subject, TestBatch& batch) {
    return batch.fault_of(
        [&](const Cipher& cipher, std::span<const Key> keys, std::span<const Message> messages,
            std::span<Code> codes) { return subject.run(cipher, keys, messages, codes); });
}

// Kernels in a form that is not this GPU's own: how many tables, and how GHASH is done.
struct Form {
    int tables = 0;
    cuda::Hashing hashing = cuda::Hashing::tiles;
};
inline std::string form_name(const ::testing::TestParamInfo<Form>& info) {
    return "tables" + std::to_string(info.param.tables) +
           (info.param.hashing == cuda::Hashing::tiles ? "_tensor"
            : info.param.hashing == cuda::Hashing::mma ? "_mma"
                                                       : "_plain");
}

class CudaFormTest : public ::testing::TestWithParam<Form> {
  protected:
    void SetUp() override {
        DAEL_NEEDS_GPUS(1);
        auto opened = cuda::open_cuda_backend(0, GetParam().tables, GetParam().hashing);
        if (opened.code() == Code::invalid_argument) GTEST_SKIP() << opened.error().message;
        ASSERT_TRUE(opened) << opened.error().message;
        device_ = static_cast<cuda::CudaDevice*>((*opened)->device());
        subject_ = device_subject(std::move(*opened));
    }
    void check(TestBatch& batch) { ASSERT_EQ(fault_of(*subject_, batch), ""); }
    // One message by itself.
    void check(const KeyRing& ring, const Cipher& cipher, const Shape& shape) {
        TestBatch batch(random_, ring, cipher);
        batch.add(shape);
        check(batch);
    }

    cuda::CudaDevice* device_ = nullptr;  // of the subject
    std::unique_ptr<Subject> subject_;
    Random random_{12345};
};

}  // namespace dael::test
