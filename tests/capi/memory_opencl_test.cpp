// SPDX-License-Identifier: Apache-2.0
// The same for OpenCL's own objects, with a real driver: PoCL will do. What it allocates by
// malloc() does not fail here.
#include <gtest/gtest.h>

#include <daelstrom/daelstrom_opencl.h>
#include <dlfcn.h>

#include <string>

#include "capi/little_memory.hpp"
#include "support/subject.hpp"

namespace {

using dael::test::making;
using dael::test::then;
using dael::test::with_little_memory;

class LittleMemoryOpenCl : public testing::Test {
  protected:
    void SetUp() override {
        if (!dael::test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
        dael_engine_options options{};
        options.struct_size = sizeof options;
        options.backend = "opencl";
        options.uncalibrated = 1;
        if (dael_engine_open(&options, &engine_) != DAEL_OK) {
            const std::string why = dael_last_error();
            if (dael::test::required("opencl")) FAIL() << why;
            GTEST_SKIP() << why;
        }
        ASSERT_EQ(dael_device_of(engine_, nullptr, &device_), DAEL_OK) << dael_last_error();
        ASSERT_EQ(dael_opencl_native(engine_, &context_, &id_, &queue_), DAEL_OK);
        dael::test::fail_here_alone(true);
    }
    void TearDown() override {
        dael::test::fail_here_alone(false);
        dael_device_free(device_);
        dael_engine_close(engine_);
    }

    dael_engine* engine_ = nullptr;
    dael_device* device_ = nullptr;
    struct _cl_context* context_ = nullptr;
    struct _cl_device_id* id_ = nullptr;
    struct _cl_command_queue* queue_ = nullptr;
};

TEST_F(LittleMemoryOpenCl, Engines) {
    with_little_memory("dael_opencl_native",
                       [&] { return dael_opencl_native(engine_, &context_, &id_, &queue_); });
    making<dael_engine>(
        "dael_opencl_open",
        [&](dael_engine** made) { return dael_opencl_open(context_, id_, nullptr, made); },
        dael_engine_close);
}

TEST_F(LittleMemoryOpenCl, WhatTheCallerHas) {
    with_little_memory("dael_opencl_stream", [&] {
        void* stream = &stream;
        const int status = dael_opencl_stream(engine_, queue_, &stream);
        EXPECT_EQ(status == DAEL_OK, stream != nullptr);
        return status;
    });
    void* const loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (!loader) GTEST_SKIP() << "no libOpenCL.so.1 to make a buffer by";
    const auto create =
        reinterpret_cast<struct _cl_mem* (*)(struct _cl_context*, std::uint64_t, std::size_t, void*,
                                             std::int32_t*)>(dlsym(loader, "clCreateBuffer"));
    const auto release =
        reinterpret_cast<std::int32_t (*)(struct _cl_mem*)>(dlsym(loader, "clReleaseMemObject"));
    ASSERT_TRUE(create && release);
    std::int32_t fault = 0;
    struct _cl_mem* const buffer = create(context_, 1, 4096, nullptr, &fault);
    ASSERT_TRUE(buffer);
    void* memory = nullptr;
    const auto adopt = [&] {
        const int status = dael_opencl_adopt(engine_, buffer, &memory, nullptr);
        EXPECT_EQ(status == DAEL_OK, memory != nullptr);
        return status;
    };
    const auto forget = [&] { return dael_opencl_forget(engine_, memory); };
    with_little_memory("dael_opencl_adopt", [&] { return then(adopt(), forget); });
    ASSERT_EQ(adopt(), DAEL_OK) << dael_last_error();
    with_little_memory("dael_opencl_forget", [&] { return then(forget(), adopt); });
    EXPECT_EQ(forget(), DAEL_OK);
    EXPECT_EQ(release(buffer), 0);
    alignas(64) static unsigned char shared[4096];
    const int right = dael_opencl_adopt_shared(engine_, shared, sizeof shared);
    if (right == DAEL_OK) {
        EXPECT_EQ(dael_opencl_forget(engine_, shared), DAEL_OK);
    }
    with_little_memory(
        "dael_opencl_adopt_shared",
        [&] {
            return then(dael_opencl_adopt_shared(engine_, shared, sizeof shared),
                        [&] { return dael_opencl_forget(engine_, shared); });
        },
        [] {}, right);
}

TEST_F(LittleMemoryOpenCl, Memory) {
    with_little_memory("dael_device_allocate", [&] {
        void* memory = nullptr;
        const int status = dael_device_allocate(device_, 4096, &memory);
        const dael::test::MemoryEnough enough;
        dael_device_release(device_, memory);
        return status;
    });
    with_little_memory("dael_device_allocate_pinned", [&] {
        void* memory = nullptr;
        const int status = dael_device_allocate_pinned(device_, 4096, &memory);
        const dael::test::MemoryEnough enough;
        dael_device_release_pinned(device_, memory);
        return status;
    });
    with_little_memory("dael_stream_create", [&] {
        void* stream = nullptr;
        const int status = dael_stream_create(device_, 0, &stream);
        const dael::test::MemoryEnough enough;
        dael_stream_destroy(device_, stream);
        return status;
    });
}

}  // namespace
