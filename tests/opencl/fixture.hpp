// SPDX-License-Identifier: Apache-2.0
// A device of OpenCL for tests: the first there is.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include <daelstrom/xts.hpp>

#include "backends/opencl/device.hpp"
#include "support/oracle.hpp"
#include "support/subject.hpp"

namespace dael::test {

class OpenClTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        if (opencl::count_devices(&why) == 0) {
            if (required("opencl")) FAIL() << why;
            GTEST_SKIP() << why;
        }
        device_ = open();
    }
    // Another one on the same hardware, with a context of its own.
    static Result<std::unique_ptr<opencl::OpenClDevice>> try_open(const std::string& shape) {
        const cl::Device device = opencl::find_devices().front().device;
        return opencl::OpenClDevice::open(std::make_shared<opencl::Context>(cl::Context(device)),
                                          device, shape);
    }
    static std::unique_ptr<opencl::OpenClDevice> open(const std::string& shape = {}) {
        auto opened = try_open(shape);
        if (opened) return std::move(*opened);
        ADD_FAILURE() << opened.error().message;
        return nullptr;
    }
    cl::Context context() const {
        return cl::Context(static_cast<cl_context>(device_->native().context), true);
    }
    cl::Buffer buffer(std::size_t size) const {
        return cl::Buffer(context(), CL_MEM_READ_WRITE, size);
    }

    // Memory of device_, which goes with it.
    std::uint8_t* allocate(std::size_t size) {
        auto memory = device_->memory().allocate(size);
        if (memory) return static_cast<std::uint8_t*>(*memory);
        ADD_FAILURE() << memory.error().message;
        return nullptr;
    }
    std::uint8_t* put(const Bytes& bytes) {
        auto* memory = allocate(bytes.size());
        EXPECT_TRUE(device_->memory().copy_in(memory, bytes.data(), bytes.size(), {}));
        return memory;
    }
    Bytes get(const void* from, std::size_t size, Stream stream = {}) {
        Bytes bytes(size);
        const auto copied = device_->memory().copy_out(bytes.data(), from, size, stream);
        EXPECT_TRUE(copied) << copied.error().message;
        EXPECT_TRUE(device_->order().wait(stream));
        return bytes;
    }

    static Message message(const std::uint8_t* in, std::uint8_t* out, std::uint64_t size,
                           const Block& start = {}, std::uint8_t skip = 0) {
        return {.in = in, .out = out, .size = size, .start = start, .skip = skip};
    }
    Result<> run(const Cipher& cipher, const Key& key, const Message& message, Stream stream = {}) {
        return device_->run(cipher, {std::span(&key, 1)}, message, stream);
    }
    // Keys made ready on device_, which go after every batch.
    opencl::OpenClKeys& tables(std::span<const Key> keys) {
        auto made = opencl::OpenClKeys::create(*device_, keys);
        EXPECT_TRUE(made) << made.error().message;
        tables_.push_back(std::move(*made));
        return *tables_.back();
    }
    Result<std::unique_ptr<core::Prepared>> prepare(const Cipher& cipher, std::span<const Key> keys,
                                                    std::span<const Message> list) {
        return device_->prepare(cipher, {keys, &tables(keys)},
                                {list.data(), static_cast<std::uint32_t>(list.size())});
    }
    Result<std::unique_ptr<core::Prepared>> prepare(const Cipher& cipher, const Key& key,
                                                    const Message& one) {
        return prepare(cipher, std::span(&key, 1), std::span(&one, 1));
    }

    std::unique_ptr<opencl::OpenClDevice> device_;
    std::vector<std::unique_ptr<opencl::OpenClKeys>> tables_;
};

// The same in the form of kernels that is the parameter; skips where the device has no room for
// it.
class OpenClShapeTest : public OpenClTest, public ::testing::WithParamInterface<const char*> {
  protected:
    void SetUp() override {
        OpenClTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        auto opened = try_open(GetParam());
        if (opened) {
            device_ = std::move(*opened);
            return;
        }
        ASSERT_EQ(opened.code(), Code::unsupported) << opened.error().message;
        GTEST_SKIP() << opened.error().message;
    }
    bool computed() const { return device_->in_use().starts_with("tables=-1"); }
};

// A call that must be refused, with a message that says `said`.
inline void expect_refused(const Error& error, Code code, const std::string& said) {
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_NE(error.message.find(said), std::string::npos) << error.message;
}
#define DAEL_EXPECT_REFUSED(call, code, said)                           \
    do {                                                                \
        const auto dael_refused = (call);                               \
        ASSERT_FALSE(dael_refused);                                     \
        ::dael::test::expect_refused(dael_refused.error(), code, said); \
    } while (false)

}  // namespace dael::test
