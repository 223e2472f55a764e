// SPDX-License-Identifier: Apache-2.0
// OpenCL's own handles at an engine: contexts, buffers and queues of the caller's, shared virtual
// memory.
#include <daelstrom/ctr.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/opencl.hpp>

#include "backends/opencl/pieces.hpp"
#include "formats/keysets.hpp"
#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class OpenClApi : public OpenClTest {
  protected:
    void SetUp() override {
        OpenClTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        mine_ = opencl::find_devices().front().device;
        context_ = cl::Context(mine_);
        queue_ = cl::CommandQueue(context_, mine_);
        auto opened = opencl::open(context_(), mine_(), {.threads = 1, .calibrated = false});
        ASSERT_TRUE(opened) << opened.error().message;
        engine_ = std::make_unique<Engine>(std::move(*opened));
    }
    cl::Buffer buffer_with(const Bytes& content) const {
        const cl::Buffer made(context_, CL_MEM_READ_WRITE, content.size());
        EXPECT_EQ(queue_.enqueueWriteBuffer(made, CL_TRUE, 0, content.size(), content.data()),
                  CL_SUCCESS);
        return made;
    }
    Bytes content_of(const cl::Buffer& buffer, std::size_t size) const {
        Bytes content(size);
        EXPECT_EQ(queue_.enqueueReadBuffer(buffer, CL_TRUE, 0, size, content.data()), CL_SUCCESS);
        return content;
    }

    cl::Device mine_;
    cl::Context context_;
    cl::CommandQueue queue_;
    std::unique_ptr<Engine> engine_;
    Bytes raw_ = pattern(32);
    Key key_ = *Key::import(raw_);
};

TEST_F(OpenClApi, TheEngineIsOnTheCallersContext) {
    const auto native = opencl::native(*engine_);
    ASSERT_TRUE(native) << native.error().message;
    EXPECT_EQ(native->context, context_());
    EXPECT_EQ(native->device, mine_());
    const cl::CommandQueue queue(native->queue, true);
    EXPECT_EQ(queue.getInfo<CL_QUEUE_CONTEXT>()(), context_());
    EXPECT_EQ(engine_->backends(), std::vector<std::string>{"opencl:0"});
    // It keeps what it needs.
    const cl_uint references = context_.getInfo<CL_CONTEXT_REFERENCE_COUNT>();
    EXPECT_GT(references, 1u);
}

TEST_F(OpenClApi, AnAdoptedBufferOnTheCallersQueue) {
    const Bytes in = pattern(200'000);
    const cl::Buffer buffer = buffer_with(in);
    const auto data = opencl::adopt(*engine_, buffer());
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(data->size, in.size());
    const auto stream = opencl::stream(*engine_, queue_());
    ASSERT_TRUE(stream) << stream.error().message;
    const Cipher cipher{Mode::cbc, Direction::decrypt};
    const Block iv = random_block(1);
    // The middle of it, by arithmetic on the address.
    auto* middle = static_cast<std::uint8_t*>(data->data) + 1000;
    const Message part = message(middle, middle, 160'000, iv);
    const auto ran = engine_->run(cipher, key_, part, *stream);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->backend, "opencl:0");
    Bytes expected = in;
    std::ranges::copy(
        oracle(raw_, {cipher.mode, cipher.direction, iv}, std::span(in).subspan(1000, 160'000)),
        expected.begin() + 1000);
    EXPECT_EQ(difference(expected, content_of(buffer, in.size())), "");

    DAEL_EXPECT_REFUSED(opencl::adopt(*engine_, buffer()), Code::invalid_argument, "already");
    ASSERT_TRUE(opencl::forget(*engine_, *data));
    DAEL_EXPECT_REFUSED(engine_->run(cipher, key_, part, *stream), Code::invalid_argument, "adopt");
    DAEL_EXPECT_REFUSED(opencl::forget(*engine_, *data), Code::invalid_argument, "begins here");
    EXPECT_EQ(difference(expected, content_of(buffer, in.size())), "");
}

TEST_F(OpenClApi, TheEngineKeepsABufferUntilItIsForgotten) {
    cl::Buffer buffer = buffer_with(pattern(64));
    const auto references = [&] { return buffer.getInfo<CL_MEM_REFERENCE_COUNT>(); };
    const cl_uint before = references();
    const auto data = opencl::adopt(*engine_, buffer());
    ASSERT_TRUE(data);
    EXPECT_EQ(references(), before + 1);
    ASSERT_TRUE(opencl::forget(*engine_, *data));
    EXPECT_EQ(references(), before);
    ASSERT_TRUE(opencl::adopt(*engine_, buffer()));
    engine_.reset();
    EXPECT_EQ(references(), before);
}

TEST_F(OpenClApi, ABatchKeepsItsBuffers) {
    const Bytes in = pattern(4800);
    const cl::Buffer buffer = buffer_with(in);
    const auto data = opencl::adopt(*engine_, buffer());
    ASSERT_TRUE(data);
    auto* const bytes = static_cast<std::uint8_t*>(data->data);
    const Message one = message(bytes, bytes, in.size());
    auto keys = engine_->keys(std::span(&key_, 1));
    ASSERT_TRUE(keys) << keys.error().message;
    auto batch = engine_->prepare({Mode::ecb}, *keys, {&one, 1});
    ASSERT_TRUE(batch) << batch.error().message;
    ASSERT_TRUE(opencl::forget(*engine_, *data));
    EXPECT_GT(buffer.getInfo<CL_MEM_REFERENCE_COUNT>(), 1u);  // ours, and the batch's
    const auto stream = opencl::stream(*engine_, queue_());
    ASSERT_TRUE(engine_->launch(*batch, *stream));
    EXPECT_EQ(difference(oracle(raw_, {Mode::ecb, Direction::encrypt, {}, 0}, in),
                         content_of(buffer, in.size())),
              "");
}

TEST_F(OpenClApi, HostMemoryOfABufferIsAligned) {
    alignas(64) static std::uint8_t memory[256];
    const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
    for (const std::size_t at : {1, 8, 16, 64}) {
        cl_int status = CL_SUCCESS;
        const cl::Buffer buffer(context_, flags, 64, memory + at, &status);
        if (status != CL_SUCCESS) continue;  // a driver that refuses it itself
        const auto data = opencl::adopt(*engine_, buffer());
        EXPECT_EQ(static_cast<bool>(data), at % 16 == 0) << at;
        if (!data) expect_refused(data.error(), Code::invalid_argument, "multiple of 16");
    }
}

// Its lists of messages would lie in device memory.
TEST_F(OpenClApi, SealedFilesDoNotOpenIntoTheDevice) {
    auto host = Engine::open({.backend = "openssl"});
    ASSERT_TRUE(host);
    const auto keys = must(sealed::Keys::from_key(Bytes(16, 1), sealed::kSmallSegment));
    const Bytes plain = pattern(10'000), stream = seal(*host, keys, plain);
    auto file = sealed::File::open(
        *engine_, keys, {},
        [&](std::uint64_t at, HostOut out) -> Result<> {
            std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
            return {};
        },
        stream.size());
    ASSERT_TRUE(file) << file.error().message;
    const Bytes before(plain.size(), Poisoned::kPoison);
    const cl::Buffer buffer = buffer_with(before);
    const auto data = opencl::adopt(*engine_, buffer());
    ASSERT_TRUE(data);
    DAEL_EXPECT_REFUSED(file->read_all(*data, Stream{}), Code::unsupported, "'cuda'");
    EXPECT_EQ(difference(before, content_of(buffer, before.size())), "");
}

// Once aad() has returned, its bytes may be overwritten, from page-locked memory too.
TEST_F(OpenClApi, AdditionalDataHasBeenReadWhenTheCallReturns) {
    const auto& keys = tables(std::span(&key_, 1));
    const Bytes aad = pattern(3'000'000);
    const gcm::Nonce iv{1, 2, 3};
    const auto memory = device_->memory().allocate_pinned(aad.size());
    ASSERT_TRUE(memory);
    auto* bytes = static_cast<std::uint8_t*>(*memory);
    std::ranges::copy(aad, bytes);
    const auto pieces =
        opencl::begin_pieces(*device_, Direction::encrypt, keys, 0, key_, gcm::start(iv));
    ASSERT_TRUE(pieces) << pieces.error().message;
    ASSERT_TRUE((*pieces)->aad({bytes, aad.size()}));
    std::fill_n(bytes, aad.size(), Poisoned::kPoison);
    const auto tag = (*pieces)->finish();
    ASSERT_TRUE(tag);
    EXPECT_EQ(difference(gcm_oracle(raw_, iv, aad, {}).tag, *tag), "");
    device_->memory().release_pinned(bytes);
}

TEST_F(OpenClApi, WhatWasAllocatedIsNotForgotten) {
    const auto memory = device_->memory().allocate(64);
    ASSERT_TRUE(memory) << memory.error().message;
    DAEL_EXPECT_REFUSED(device_->forget(*memory), Code::invalid_argument, "not adopted");
    EXPECT_TRUE(device_->memory().owns(*memory));
    device_->memory().release(*memory);
    DAEL_EXPECT_REFUSED(device_->forget(*memory), Code::invalid_argument, "begins here");
}

TEST_F(OpenClApi, AnEngineOfItsOwnTakesBuffersOfItsContext) {
    auto engine = Engine::open({.backend = "opencl", .calibrated = false});
    ASSERT_TRUE(engine) << engine.error().message;
    const auto native = opencl::native(*engine);
    ASSERT_TRUE(native);
    const cl::Context theirs(native->context, true);
    const cl::CommandQueue queue(native->queue, true);
    const Bytes in = pattern(5000);
    const cl::Buffer buffer(theirs, CL_MEM_READ_WRITE, in.size());
    ASSERT_EQ(queue.enqueueWriteBuffer(buffer, CL_FALSE, 0, in.size(), in.data()), CL_SUCCESS);
    const auto data = opencl::adopt(*engine, buffer());
    ASSERT_TRUE(data) << data.error().message;
    ASSERT_TRUE(ctr::crypt(*engine, key_, {}, *data, *data, Stream{}));
    Bytes got(in.size());
    ASSERT_EQ(queue.enqueueReadBuffer(buffer, CL_TRUE, 0, got.size(), got.data()), CL_SUCCESS);
    EXPECT_EQ(difference(oracle(raw_, {Mode::ctr, Direction::encrypt, {}, 0}, in), got), "");
    // And none of another.
    DAEL_EXPECT_REFUSED(opencl::adopt(*engine, buffer_with(in)()), Code::invalid_argument,
                        "another context");
}

TEST_F(OpenClApi, WhatDoesNotFitIsRefused) {
    const cl::Context other(mine_);
    const cl::CommandQueue foreign(other, mine_);
    DAEL_EXPECT_REFUSED(opencl::stream(*engine_, foreign()), Code::invalid_argument,
                        "another context");
    DAEL_EXPECT_REFUSED(opencl::stream(*engine_, nullptr), Code::invalid_argument, "null");
    DAEL_EXPECT_REFUSED(opencl::adopt(*engine_, nullptr), Code::invalid_argument, "null");
    cl_int status = CL_SUCCESS;
    const cl::CommandQueue loose(context_, mine_, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &status);
    if (status == CL_SUCCESS)
        DAEL_EXPECT_REFUSED(opencl::stream(*engine_, loose()), Code::invalid_argument,
                            "out of order");
    DAEL_EXPECT_REFUSED(opencl::open(context_(), nullptr), Code::invalid_argument, "null");
    DAEL_EXPECT_REFUSED(opencl::open(nullptr, mine_()), Code::invalid_argument, "null");
    DAEL_EXPECT_REFUSED(opencl::open(context_(), mine_(), {.backend = "cpu"}),
                        Code::invalid_argument, "'cpu'");
    DAEL_EXPECT_REFUSED(opencl::open(context_(), mine_(), {.form = "teams=5"}),
                        Code::invalid_argument, "teams=5");
    DAEL_EXPECT_REFUSED(opencl::open(context_(), mine_(), {.threads = -1}), Code::invalid_argument,
                        "threads");
    auto host = Engine::open({.backend = "openssl"});
    ASSERT_TRUE(host);
    const cl::Buffer buffer = buffer_with(pattern(16));
    DAEL_EXPECT_REFUSED(opencl::native(*host), Code::unsupported, "'opencl'");
    DAEL_EXPECT_REFUSED(opencl::adopt(*host, buffer()), Code::unsupported, "'opencl'");
    DAEL_EXPECT_REFUSED(opencl::stream(*host, queue_()), Code::unsupported, "'opencl'");
    DAEL_EXPECT_REFUSED(opencl::forget(*host, DeviceIn{}), Code::unsupported, "'opencl'");
}

TEST_F(OpenClApi, SharedVirtualMemory) {
    if (!device_->info().shared_memory) {
        alignas(64) static std::uint8_t memory[64];
        DAEL_EXPECT_REFUSED(opencl::adopt_shared(*engine_, memory, sizeof memory),
                            Code::unsupported, "no shared virtual memory");
        GTEST_SKIP() << "this device has none, and says so";
    }
    const std::size_t size = (std::size_t{1} << 20) + 16 * 3;
    auto* memory = static_cast<std::uint8_t*>(clSVMAlloc(context_(), CL_MEM_READ_WRITE, size, 64));
    ASSERT_NE(memory, nullptr);
    const auto data = opencl::adopt_shared(*engine_, memory, size);
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(data->data, memory);
    const auto stream = opencl::stream(*engine_, queue_());
    ASSERT_TRUE(stream);
    const Bytes in = pattern(size);
    for (const Mode mode : {Mode::ctr, Mode::cbc}) {
        const Cipher cipher{mode, Direction::decrypt};
        const Block iv = random_block(2);
        ASSERT_EQ(
            clEnqueueSVMMemcpy(queue_(), CL_TRUE, memory, in.data(), size, 0, nullptr, nullptr),
            CL_SUCCESS);
        const auto ran = engine_->run(cipher, key_, message(memory, memory, size, iv), *stream);
        ASSERT_TRUE(ran) << ran.error().message;
        Bytes got(size);
        ASSERT_EQ(
            clEnqueueSVMMemcpy(queue_(), CL_TRUE, got.data(), memory, size, 0, nullptr, nullptr),
            CL_SUCCESS);
        EXPECT_EQ(difference(oracle(raw_, {mode, Direction::decrypt, iv}, in), got), "")
            << name(mode);
    }
    ASSERT_TRUE(opencl::forget(*engine_, *data));
    clSVMFree(context_(), memory);
}

}  // namespace
