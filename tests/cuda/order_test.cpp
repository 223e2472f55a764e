// SPDX-License-Identifier: Apache-2.0
// The order of work on a GPU: preparing waits for nobody, a batch's runs follow each other on any
// streams, and keys and batches may go while their work is under way.
#include <cuda_runtime_api.h>

#include <atomic>
#include <future>
#include <thread>

#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

constexpr Cipher kSeal{Mode::gcm};

class CudaOrderTest : public CudaTest {
  protected:
    static constexpr std::size_t kMessages = 64, kSize = std::size_t{1} << 20;

    void SetUp() override {
        CudaTest::SetUp();
        if (!device_) return;
        plain_ = random_.bytes(kMessages * kSize);
        in_ = put(plain_);
        out_ = allocate(plain_.size());
        tags_ = allocate(kMessages * 16);
        for (std::size_t i = 0; i < kMessages; ++i)
            messages_.push_back({.in = in_ + i * kSize,
                                 .out = out_ + i * kSize,
                                 .size = kSize - i * 17,
                                 .tag = tags_ + i * 16,
                                 .start = random_.block(),
                                 .key = static_cast<std::uint32_t>(i % 3)});
    }
    Result<std::unique_ptr<core::Prepared>> prepare(const core::KeyTables& tables) {
        return device_->prepare(kSeal, {ring_.keys, &tables},
                                {messages_.data(), static_cast<std::uint32_t>(messages_.size())});
    }
    void expect_sealed() {
        for (std::size_t i = 0; i < kMessages; i += 7) {
            Message host = messages_[i];
            host.in = plain_.data() + i * kSize;
            const Answer answer = oracle(ring_.raw[host.key], kSeal, host);
            ASSERT_EQ(difference(answer.out, get(messages_[i].out, host.size)), "") << i;
            ASSERT_EQ(difference(answer.tag, get(messages_[i].tag, 16)), "") << i;
        }
    }

    Random random_{31};
    const KeyRing ring_{random_, 3};
    Bytes plain_;
    std::uint8_t *in_ = nullptr, *out_ = nullptr, *tags_ = nullptr;
    std::vector<Message> messages_;
};

// As a framework has it: the default stream is busy for long.
TEST_F(CudaOrderTest, PreparingDoesNotWaitForStream0) {
    {  // kernels are loaded by their first use, which may wait
        auto tables = device_->tables(ring_.keys);
        ASSERT_TRUE(tables) << tables.error().message;
        ASSERT_TRUE(prepare(**tables));
    }
    std::atomic<bool> go_on = false;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(
                  nullptr,
                  [](void* flag) {
                      while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
                  },
                  &go_on),
              cudaSuccess);
    std::unique_ptr<core::KeyTables> tables;
    std::unique_ptr<core::Prepared> batch;
    auto prepared = std::async(std::launch::async, [&] {
        auto made = device_->tables(ring_.keys);
        if (!made) return false;
        tables = std::move(*made);
        auto made_batch = prepare(*tables);
        if (made_batch) batch = std::move(*made_batch);
        return batch != nullptr;
    });
    EXPECT_EQ(prepared.wait_for(std::chrono::seconds(10)), std::future_status::ready)
        << "it waits for stream 0";
    go_on = true;
    EXPECT_TRUE(prepared.get());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// A key's replacement waits on a stream of somebody's: a batch whose long messages are hashed as
// they are encrypted, the set's first, does not.
TEST_F(CudaOrderTest, PreparingDoesNotWaitForAReplacedKey) {
    auto tables = device_->tables(ring_.keys);
    ASSERT_TRUE(tables) << tables.error().message;
    ASSERT_TRUE(prepare(**tables));  // kernels are loaded, and GHASH's part of the keys is made
    for (Message& m : messages_) m.size = 100000;
    std::atomic<bool> go_on = false;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(
                  static_cast<cudaStream_t>(stream_.handle),
                  [](void* flag) {
                      while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
                  },
                  &go_on),
              cudaSuccess);
    ASSERT_TRUE((*tables)->replace(0, ring_.keys[0], stream_));
    std::unique_ptr<core::Prepared> batch;
    auto prepared = std::async(std::launch::async, [&] {
        auto made = prepare(**tables);
        if (made) batch = std::move(*made);
        return batch != nullptr;
    });
    EXPECT_EQ(prepared.wait_for(std::chrono::seconds(10)), std::future_status::ready)
        << "it waits for the stream of the replaced key";
    go_on = true;
    ASSERT_TRUE(prepared.get());
    ASSERT_TRUE(device_->run(*batch, stream_));
    wait();
    expect_sealed();
}

// Streams that do not wait for stream 0: nothing but the library itself holds the wiping back.
TEST_F(CudaOrderTest, KeysAndBatchesMayGoWhileTheyWork) {
    for (int round = 0; round < 5; ++round) {
        auto tables = device_->tables(ring_.keys);
        ASSERT_TRUE(tables) << tables.error().message;
        auto batch = prepare(**tables);
        ASSERT_TRUE(batch) << batch.error().message;
        for (int run = 0; run < 20; ++run) ASSERT_TRUE(device_->run(**batch, stream_));
        if (round % 2 == 0) tables->reset();  // before the batch, and after it
        batch->reset();
        tables->reset();
        wait();
        expect_sealed();
    }
}

TEST_F(CudaOrderTest, RunsOfABatchFollowEachOther) {
    std::vector<Stream> streams;
    for (int i = 0; i < 3; ++i) streams.push_back(*device_->order().create_stream());
    auto tables = device_->tables(ring_.keys);
    ASSERT_TRUE(tables) << tables.error().message;
    auto batch = prepare(**tables);
    ASSERT_TRUE(batch) << batch.error().message;
    for (int run = 0; run < 60; ++run) ASSERT_TRUE(device_->run(**batch, streams[run % 3]));
    for (const Stream stream : streams) {
        ASSERT_TRUE(device_->order().wait(stream));
        device_->order().destroy_stream(stream);
    }
    expect_sealed();
    // A stream that takes the place of one that is gone is another one.
    for (int run = 0; run < 10; ++run) {
        const Stream stream = *device_->order().create_stream();
        ASSERT_TRUE(device_->run(**batch, stream));
        device_->order().destroy_stream(stream);
    }
    ASSERT_TRUE(device_->run(**batch, stream_));
    wait();
    expect_sealed();
}

}  // namespace
}  // namespace dael::test
