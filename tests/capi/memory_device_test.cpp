// SPDX-License-Identifier: Apache-2.0
// The same for devices: all of their calls on the device made of threads, whose own threads have
// memory enough; and those of OpenCL and of devices by engines that have none, which are refused.
#include <gtest/gtest.h>

#include <daelstrom/daelstrom_opencl.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "capi/little_memory.hpp"
#include "capi/shared.hpp"
#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/bytes.hpp"
#include "support/host_device.hpp"
#include "support/short_memory_child.hpp"

namespace {

using dael::test::Bytes;
using dael::test::expect_in_children_with_little_memory;
using dael::test::HostDevice;
using dael::test::HostDeviceBackend;
using dael::test::making;
using dael::test::pattern;
using dael::test::with_little_memory;

class LittleMemoryDevice : public testing::Test {
  protected:
    void SetUp() override {
        if (!dael::test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
        engine_ = new dael_engine{
            dael::pipeline::make_engine(std::make_unique<dael::test::HostDeviceBackend>(device_),
                                        {.backend = "threads", .threads = 2})};
        const Bytes raw = pattern(16);
        ASSERT_EQ(dael_key_import(raw.data(), 16, &key_), DAEL_OK);
        const dael_key* const key = key_;
        ASSERT_EQ(dael_key_set_make(engine_, &key, 1, &set_), DAEL_OK);
        ASSERT_EQ(dael_device_of(engine_, nullptr, &its_), DAEL_OK) << dael_last_error();
        ASSERT_EQ(dael_device_allocate(its_, 4096, &memory_), DAEL_OK);
        ASSERT_EQ(dael_device_allocate_pinned(its_, 256, &host_), DAEL_OK);
        ASSERT_EQ(dael_stream_create(its_, 0, &stream_), DAEL_OK);
        dael::test::fail_here_alone(true);
    }
    void TearDown() override {
        dael::test::fail_here_alone(false);
        if (!its_) return;
        std::memset(host_, 0, 256);
        EXPECT_EQ(dael_device_fill(its_, memory_, 0, 4096, stream_), DAEL_OK);
        EXPECT_EQ(dael_stream_wait(its_, stream_), DAEL_OK);
        dael_device_release(its_, memory_);
        dael_device_release_pinned(its_, host_);
        dael_stream_destroy(its_, stream_);
        dael_key_set_free(set_);
        dael_key_free(key_);
        dael_device_free(its_);
        dael_engine_close(engine_);
        expect_clean(device_);
    }
    // Until its threads are done, they free what calls have made.
    int after(int status) {
        const dael::test::MemoryEnough enough;
        EXPECT_EQ(dael_stream_wait(its_, stream_), DAEL_OK);
        return status;
    }
    dael_message message(std::size_t size) const {
        auto* const at = static_cast<std::uint8_t*>(memory_);
        dael_message m{};
        m.in = m.out = at;
        m.size = size;
        m.tag = at + 2048;
        return m;
    }

    dael::test::HostDevice device_;
    dael_engine* engine_ = nullptr;
    dael_key* key_ = nullptr;
    dael_key_set* set_ = nullptr;
    dael_device* its_ = nullptr;
    void *memory_ = nullptr, *host_ = nullptr, *stream_ = nullptr;
};

TEST_F(LittleMemoryDevice, MemoryAndOrder) {
    making<dael_device>(
        "dael_device_of",
        [&](dael_device** made) { return dael_device_of(engine_, nullptr, made); },
        dael_device_free);
    EXPECT_NE(dael_device_describe(its_), nullptr);
    const auto native = [&](const char* what, const std::function<int(void**)>& make,
                            const std::function<void(void*)>& release) {
        with_little_memory(what, [&] {
            void* made = &made;
            const int status = make(&made);
            EXPECT_EQ(status == DAEL_OK, made != nullptr);
            release(made);
            return after(status);
        });
    };
    native(
        "dael_device_allocate", [&](void** made) { return dael_device_allocate(its_, 64, made); },
        [&](void* made) { dael_device_release(its_, made); });
    native(
        "dael_device_allocate_pinned",
        [&](void** made) { return dael_device_allocate_pinned(its_, 64, made); },
        [&](void* made) { dael_device_release_pinned(its_, made); });
    native(
        "dael_stream_create", [&](void** made) { return dael_stream_create(its_, 1, made); },
        [&](void* made) { dael_stream_destroy(its_, made); });
    native(
        "dael_event_create", [&](void** made) { return dael_event_create(its_, made); },
        [&](void* made) { dael_event_destroy(its_, made); });
    std::uint64_t free_bytes = 0;
    with_little_memory("dael_device_free_memory",
                       [&] { return dael_device_free_memory(its_, &free_bytes); });
    const Bytes bytes = pattern(256);
    std::memcpy(host_, bytes.data(), 256);
    auto* const at = static_cast<std::uint8_t*>(memory_);
    EXPECT_EQ(dael_device_owns(its_, at), 1);
    EXPECT_EQ(dael_device_is_pinned(its_, host_, 16), 1);
    with_little_memory("dael_device_copy_in",
                       [&] { return after(dael_device_copy_in(its_, at, host_, 256, stream_)); });
    with_little_memory("dael_device_copy_within", [&] {
        return after(dael_device_copy_within(its_, at + 512, at, 256, stream_));
    });
    with_little_memory("dael_device_copy_out", [&] {
        return after(dael_device_copy_out(its_, host_, at + 512, 256, stream_));
    });
    EXPECT_EQ(std::memcmp(host_, bytes.data(), 256), 0);
    with_little_memory("dael_device_fill",
                       [&] { return after(dael_device_fill(its_, at, 0, 256, stream_)); });
    void *event = nullptr, *later = nullptr;
    ASSERT_EQ(dael_event_create(its_, &event), DAEL_OK);
    ASSERT_EQ(dael_event_create(its_, &later), DAEL_OK);
    with_little_memory("dael_event_record",
                       [&] { return after(dael_event_record(its_, event, stream_)); });
    with_little_memory("dael_event_record",
                       [&] { return after(dael_event_record(its_, later, stream_)); });
    with_little_memory("dael_stream_wait_event",
                       [&] { return after(dael_stream_wait_event(its_, stream_, event)); });
    with_little_memory("dael_event_wait", [&] { return dael_event_wait(its_, event); });
    float milliseconds = 0;
    with_little_memory("dael_event_elapsed_ms",
                       [&] { return dael_event_elapsed_ms(its_, event, later, &milliseconds); });
    with_little_memory("dael_stream_wait", [&] { return dael_stream_wait(its_, stream_); });
    dael_event_destroy(its_, event);
    dael_event_destroy(its_, later);
}

TEST_F(LittleMemoryDevice, MessagesAndBatches) {
    const dael_cipher ctr{DAEL_CTR, DAEL_ENCRYPT, 0, 0, 0}, seal{DAEL_GCM, DAEL_ENCRYPT, 16, 0, 0},
        ecb{DAEL_ECB, DAEL_ENCRYPT, 0, 0, 0};  // which alone may be launched again
    const dael_message m = message(1000);
    const std::uint8_t start[16] = {};
    with_little_memory("dael_run_device", [&] {
        return after(dael_run_device(engine_, &ctr, key_, &m, stream_, nullptr));
    });
    with_little_memory("dael_ctr_crypt_device", [&] {
        return after(
            dael_ctr_crypt_device(engine_, key_, start, 0, m.in, m.out, 1000, stream_, nullptr));
    });
    with_little_memory("dael_launch_messages", [&] {
        return after(dael_launch_messages(engine_, &seal, set_, &m, 1, stream_, nullptr, nullptr));
    });
    std::uint8_t tag[16] = {};
    dael_message whole{};
    whole.tag = tag;
    const dael_shard shards[] = {{m.in, m.out, 512, stream_},
                                 {m.in + 512, m.out + 512, 9, stream_}};
    with_little_memory("dael_run_shards", [&] {
        return after(dael_run_shards(engine_, &seal, set_, &whole, shards, 2, nullptr));
    });
    making<dael_batch>(
        "dael_prepare",
        [&](dael_batch** made) { return dael_prepare(engine_, &seal, set_, &m, 1, nullptr, made); },
        dael_batch_free);
    dael_batch* batch = nullptr;
    dael_message blocks = message(1024);
    blocks.tag = nullptr;
    ASSERT_EQ(dael_prepare(engine_, &ecb, set_, &blocks, 1, nullptr, &batch), DAEL_OK);
    std::int32_t code = 0;
    with_little_memory("dael_launch",
                       [&] { return after(dael_launch(engine_, batch, stream_, nullptr)); });
    (void)dael_batch_codes(batch);
    with_little_memory("dael_results", [&] { return dael_results(batch, stream_, &code, 1); });
    dael_batch_free(batch);
    dael_engine_trim(engine_);
}

// Without a device, or on one of another kind: refused, or for want of memory.
TEST_F(LittleMemoryDevice, WhatIsRefused) {
    int buffer = 0;
    void* memory = nullptr;
    auto* const object = reinterpret_cast<struct _cl_mem*>(&buffer);
    auto* const queue = reinterpret_cast<struct _cl_command_queue*>(&buffer);
    with_little_memory(
        "dael_opencl_native",
        [&] { return dael_opencl_native(engine_, nullptr, nullptr, nullptr); }, [] {},
        DAEL_UNSUPPORTED);
    with_little_memory(
        "dael_opencl_adopt", [&] { return dael_opencl_adopt(engine_, object, &memory, nullptr); },
        [] {}, DAEL_UNSUPPORTED);
    with_little_memory(
        "dael_opencl_adopt_shared", [&] { return dael_opencl_adopt_shared(engine_, memory_, 16); },
        [] {}, DAEL_UNSUPPORTED);
    with_little_memory(
        "dael_opencl_forget", [&] { return dael_opencl_forget(engine_, memory_); }, [] {},
        DAEL_UNSUPPORTED);
    with_little_memory(
        "dael_opencl_stream", [&] { return dael_opencl_stream(engine_, queue, &memory); }, [] {},
        DAEL_UNSUPPORTED);
}

// What the process pins by is chosen once; here it is the device made of threads, since it is the
// one in use. Whatever lacks memory, there is memory of another kind or none, and the next is
// pinned.
HostDevice* in_use = nullptr;
constexpr dael::core::BackendEntry kInUse{
    .name = "threads",
    .summary = "a device made of threads",
    .count = [](std::string*) { return 1; },
    .open = [](const dael::core::BackendOptions&)
        -> dael::Result<std::unique_ptr<dael::core::Backend>> {
        return std::unique_ptr<dael::core::Backend>(std::make_unique<HostDeviceBackend>(*in_use));
    },
    .in_use = [] { return 0; }};

TEST(LittleMemoryPinned, AllocatedFirst) {
    if (!dael::test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    if (dlopen("libcuda.so.1", RTLD_NOW)) GTEST_SKIP() << "CUDA's driver is here";
    expect_in_children_with_little_memory([](long nth, bool& failed) {
        HostDevice device;
        in_use = &device;
        if (!dael::core::add_backend(kInUse)) return false;
        const auto allocates = [] {
            void* const memory = dael_pinned_alloc(5000);
            if (memory) std::memset(memory, 1, 5000);
            return memory;
        };
        dael::test::fail_here_alone(true);
        dael::test::fail_allocation(nth);
        void* const first = allocates();
        failed = dael::test::fail_allocation(0);
        void* const then = allocates();
        const bool pinned = then && device.is_pinned(then, 5000);
        dael_pinned_free(first);
        dael_pinned_free(then);
        return pinned && device.live() == 0;
    });
}

TEST(LittleMemoryPinned, AllocatedLater) {
    if (!dael::test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    dael::test::expect_in_a_child([] {
        HostDevice device;
        in_use = &device;
        EXPECT_TRUE(dael::core::add_backend(kInUse));
        dael::test::fail_here_alone(true);
        with_little_memory("dael_pinned_alloc", [] {
            void* const memory = dael_pinned_alloc(5000);
            const dael::test::MemoryEnough enough;  // the device made of threads takes some
            dael_pinned_free(memory);
            return memory ? DAEL_OK : DAEL_OUT_OF_MEMORY;
        });
        return !testing::Test::HasFailure();
    });
}

// Without drivers, which may end the process where they themselves lack memory.
TEST(LittleMemoryBackends, Listed) {
    if (!dael::test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    if (dlopen("libcuda.so.1", RTLD_NOW)) GTEST_SKIP() << "CUDA's driver is here";
    dael::test::expect_in_a_child([] {
        setenv("OCL_ICD_VENDORS", "/nowhere", 1);
        dael::test::fail_here_alone(true);
        with_little_memory("dael_list_backends", [] {
            int seen = 0;
            const int status = dael_list_backends(
                [](void* count, const dael_backend* backend) {
                    EXPECT_TRUE(backend->present || *backend->missing);
                    ++*static_cast<int*>(count);
                },
                &seen);
            EXPECT_EQ(status == DAEL_OK, seen >= 5);
            return status;
        });
        return !testing::Test::HasFailure();
    });
}

}  // namespace
