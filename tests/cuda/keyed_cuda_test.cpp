// SPDX-License-Identifier: Apache-2.0
// CBC encryption with a key for each message on CUDA: both kinds of list in device memory, every
// table layout, against OpenSSL; bad messages among good ones; batches of host memory through it.
#include <gtest/gtest.h>

#include <numeric>

#include "backends/cuda/cuda_device.hpp"
#include "support/keyed_job.hpp"

namespace {

using namespace dael;
using namespace dael::test;

std::vector<std::size_t> whole_blocks(std::size_t count, std::size_t longest) {
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(i * 16 % (longest + 16));
    return sizes;
}

class KeyedCuda : public testing::TestWithParam<int> {  // the parameter: tables, 4, 2 or 1
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        auto opened = cuda::CudaDevice::open(0, GetParam());
        ASSERT_TRUE(opened) << opened.error().message;
        device_ = std::move(*opened);
        stream_ = *device_->create_stream();
    }
    void TearDown() override {
        if (!device_) return;
        for (void* memory : allocations_) device_->release(memory);
        device_->destroy_stream(stream_);
    }
    std::uint8_t* allocate(std::size_t size) {
        auto memory = device_->allocate(size);
        EXPECT_TRUE(memory) << memory.error().message;
        allocations_.push_back(*memory);
        return static_cast<std::uint8_t*>(*memory);
    }
    void put(void* to, const void* from, std::size_t size) {
        ASSERT_TRUE(device_->copy_in(to, from, size, stream_));
        ASSERT_TRUE(device_->wait(stream_));
    }
    template <class T>
    std::vector<T> get(const T* from, std::size_t count) {
        std::vector<T> items(count);
        EXPECT_TRUE(device_->copy_out(items.data(), from, count * sizeof(T), stream_));
        EXPECT_TRUE(device_->wait(stream_));
        return items;
    }

    // The job's messages in device memory, `gap` bytes apart and poison between them: `gap` 16
    // keeps all aligned, another one few.
    struct Layout {
        std::vector<std::size_t> at;
        std::size_t size = 0;
        std::uint8_t* out = nullptr;
    };
    Layout move_in(KeyedJob& job, std::size_t gap, bool in_place) {
        Layout layout;
        for (const Bytes& plain : job.plain) {
            layout.at.push_back(layout.size += gap);
            layout.size += plain.size();
        }
        layout.size += gap;
        Bytes image(layout.size, Poisoned::kPoison);
        std::uint8_t* in = allocate(layout.size);
        layout.out = in_place ? in : allocate(layout.size);
        put(layout.out, image.data(), image.size());
        for (std::size_t i = 0; i < job.plain.size(); ++i) {
            std::ranges::copy(job.plain[i],
                              image.begin() + static_cast<std::ptrdiff_t>(layout.at[i]));
            job.cbc[i].in = in + layout.at[i];
            job.cbc[i].out = layout.out + layout.at[i];
        }
        put(in, image.data(), image.size());
        return layout;
    }
    // Runs the batch and compares every byte of the output, and every result. What is not ok is as
    // it was: poison, or in place the input.
    void check(const core::PreparedKeys& keys, const KeyedJob& job, const Layout& layout,
               bool in_place, bool list_on_host, const std::vector<Code>& codes) {
        const std::size_t count = job.cbc.size();
        void* list = allocate(count * sizeof(KeyedMessage));
        put(list, job.cbc.data(), count * sizeof(KeyedMessage));
        auto batch = list_on_host
                         ? device_->prepare_cbc_encrypt(keys, job.cbc)
                         : device_->prepare_cbc_encrypt(keys, static_cast<KeyedMessage*>(list),
                                                        static_cast<std::uint32_t>(count));
        ASSERT_TRUE(batch) << batch.error().message;
        const auto ran = device_->cbc_encrypt(**batch, stream_);
        ASSERT_TRUE(ran) << ran.error().message;
        ASSERT_TRUE(device_->wait(stream_));
        Bytes expected(layout.size, Poisoned::kPoison);
        for (std::size_t i = 0; i < count; ++i) {
            const Bytes& bytes = codes[i] == Code::ok ? job.expected[i] : job.plain[i];
            if (codes[i] == Code::ok || in_place)
                std::ranges::copy(bytes,
                                  expected.begin() + static_cast<std::ptrdiff_t>(layout.at[i]));
        }
        EXPECT_EQ(difference(expected, get(layout.out, layout.size)), "");
        const auto results = get((*batch)->results(), count);
        for (std::size_t i = 0; i < count; ++i)
            EXPECT_EQ(static_cast<Code>(results[i]), codes[i]) << i;
    }

    std::unique_ptr<cuda::CudaDevice> device_;
    Stream stream_;
    std::vector<void*> allocations_;
    Random random_{4711};
};

TEST_P(KeyedCuda, EveryLengthUnderKeysOfEverySize) {
    const KeyRing ring(random_, 11);
    const auto keys = device_->prepare_keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    for (const bool list_on_host : {true, false})
        for (const bool in_place : {true, false})
            for (const std::size_t gap : {16, 5}) {
                KeyedJob job(random_, ring, Mode::cbc, whole_blocks(1000, 2048));
                const auto layout = move_in(job, gap, in_place);
                check(**keys, job, layout, in_place, list_on_host,
                      std::vector<Code>(job.cbc.size(), Code::ok));
            }
}

TEST_P(KeyedCuda, ManyMoreMessagesThanThreads) {
    const KeyRing ring(random_, 3000);
    const auto keys = device_->prepare_keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    const std::size_t count =
        static_cast<std::size_t>(device_->info().multiprocessors) * 512 + 12345;
    for (const bool list_on_host : {true, false}) {
        KeyedJob job(random_, ring, Mode::cbc, whole_blocks(count, 48));
        const auto layout = move_in(job, 16, false);
        check(**keys, job, layout, false, list_on_host, std::vector<Code>(count, Code::ok));
    }
}

// As a kernel may have made them: nobody has checked the list.
TEST_P(KeyedCuda, BadMessagesOfAListFailAlone) {
    for (const std::size_t key_count : {1, 5}) {
        const KeyRing ring(random_, key_count);
        const auto keys = device_->prepare_keys(ring.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        KeyedJob job(random_, ring, Mode::cbc, whole_blocks(300, 512));
        const auto layout = move_in(job, 16, false);
        std::vector<Code> codes(job.cbc.size(), Code::ok);
        job.cbc[3].key = static_cast<std::uint32_t>(key_count);
        job.cbc[40].key = 0xffffffff;
        job.cbc[41].in = nullptr;
        job.cbc[42].out = nullptr;
        codes[3] = codes[40] = codes[41] = codes[42] = Code::invalid_argument;
        job.cbc[100].size += 1;
        job.cbc[299].size = 15;
        codes[100] = codes[299] = Code::ragged_length;
        check(**keys, job, layout, false, false, codes);
    }
}

TEST_P(KeyedCuda, NothingToDo) {
    const KeyRing ring(random_, 1);
    const auto keys = device_->prepare_keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    auto batch = device_->prepare_cbc_encrypt(**keys, {});
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_TRUE(device_->cbc_encrypt(**batch, stream_));
    batch = device_->prepare_cbc_encrypt(**keys, nullptr, 0);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_TRUE(device_->cbc_encrypt(**batch, stream_));
    EXPECT_TRUE(device_->wait(stream_));
}

INSTANTIATE_TEST_SUITE_P(Tables, KeyedCuda, testing::Values(4, 2, 1),
                         [](const auto& tables) { return std::to_string(tables.param); });

class KeyedCudaEngine : public testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        engine_ = std::make_unique<Engine>(std::move(*Engine::open({.backend = "cuda"})));
    }
    std::unique_ptr<Engine> engine_;
    Random random_{99};
};

TEST_F(KeyedCudaEngine, HostMemoryThroughTheDevice) {
    const KeyRing ring(random_, 5);
    const auto keys = engine_->prepare_keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    std::vector<std::size_t> sizes(400);
    std::iota(sizes.begin(), sizes.end(), std::size_t{0});
    sizes.push_back(std::size_t{3} << 20);
    for (const Mode mode : {Mode::ctr, Mode::cbc})
        for (const bool in_place : {false, true}) {
            KeyedJob job(random_, ring, mode, sizes, in_place);
            const auto ran = job.run(*engine_, *keys);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, "cuda:0");
            for (std::size_t i = 0; i < sizes.size(); ++i)
                ASSERT_EQ(job.fault(i), "") << name(mode) << ", message " << i;
        }
}

// The engine's own calls over device memory, the results as it fetches them.
TEST_F(KeyedCudaEngine, DeviceMemory) {
    auto device = std::move(*cuda::CudaDevice::open(0));
    const Stream stream = *device->create_stream();
    const KeyRing ring(random_, 3);
    const auto keys = engine_->prepare_keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    KeyedJob job(random_, ring, Mode::cbc, {64, 4096, 0, 16});
    auto* memory = static_cast<std::uint8_t*>(*device->allocate(8192));
    for (std::size_t i = 0, used = 0; i < job.cbc.size(); used += job.plain[i++].size()) {
        job.cbc[i].in = job.cbc[i].out = memory + used;
        ASSERT_TRUE(
            device->copy_in(memory + used, job.plain[i].data(), job.plain[i].size(), stream));
    }
    auto batch = engine_->prepare_cbc_encrypt(*keys, job.cbc);
    ASSERT_TRUE(batch) << batch.error().message;
    const auto ran = engine_->run(*batch, stream);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(*engine_->results(*batch, stream), std::vector<Code>(4, Code::ok));
    for (std::size_t i = 0; i < job.cbc.size(); ++i) {
        Bytes out(job.plain[i].size());
        ASSERT_TRUE(device->copy_out(out.data(), job.cbc[i].out, out.size(), stream));
        ASSERT_TRUE(device->wait(stream));
        EXPECT_EQ(difference(job.expected[i], out), "") << i;
    }
    job.cbc[1].key = 3;
    EXPECT_EQ(engine_->prepare_cbc_encrypt(*keys, job.cbc).code(), Code::invalid_argument);
    device->release(memory);
    device->destroy_stream(stream);
}

}  // namespace
