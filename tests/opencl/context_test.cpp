// SPDX-License-Identifier: Apache-2.0
// Contexts, which engines of a process share, and the page-locked memory that is made in them.
#include <atomic>
#include <thread>

#include <daelstrom/ctr.hpp>
#include <daelstrom/opencl.hpp>

#include "core/registry.hpp"
#include "opencl/fixture.hpp"
#include "support/child.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class OpenClContext : public OpenClTest {
  protected:
    static std::unique_ptr<core::Backend> open_by_name() {
        auto opened = core::open_backend("opencl");
        if (opened) return std::move(*opened);
        ADD_FAILURE() << opened.error().message;
        return nullptr;
    }
    static cl::Device first() { return opencl::find_devices().front().device; }
};

TEST_F(OpenClContext, PinnedMemoryIsKnownToEveryEngineOnTheDevice) {
    const auto one = open_by_name(), other = open_by_name();
    ASSERT_TRUE(one && other);
    EXPECT_EQ(one->device()->adoption()->native().context,
              other->device()->adoption()->native().context);
    const auto memory = one->device()->memory().allocate_pinned(5000);
    ASSERT_TRUE(memory) << memory.error().message;
    const auto* begin = static_cast<const std::uint8_t*>(*memory);
    EXPECT_TRUE(other->device()->memory().is_pinned(begin, 1));
    EXPECT_TRUE(other->device()->memory().is_pinned(begin + 4999, 1));
    EXPECT_FALSE(other->device()->memory().is_pinned(begin + 5000, 1));
    // But not to one in another context, whose driver would not know it either.
    EXPECT_FALSE(device_->memory().is_pinned(begin, 1));
    other->device()->memory().release_pinned(*memory);  // any of them may
    EXPECT_FALSE(one->device()->memory().is_pinned(begin, 1));
}

TEST_F(OpenClContext, PinnedMemoryOutlivesTheDeviceThatMadeIt) {
    auto one = open_by_name(), other = open_by_name();
    ASSERT_TRUE(one && other);
    const auto memory = one->device()->memory().allocate_pinned(100);
    ASSERT_TRUE(memory);
    one.reset();
    EXPECT_TRUE(other->device()->memory().is_pinned(*memory, 1));
    std::fill_n(static_cast<std::uint8_t*>(*memory), 100, std::uint8_t{7});
    other->device()->memory().release_pinned(*memory);
}

TEST_F(OpenClContext, OneForADeviceWhileItIsInUse) {
    cl::Context handle;
    {
        const auto made = opencl::Context::of(first());
        ASSERT_TRUE(made) << made.error().message;
        EXPECT_EQ(*opencl::Context::of(first()), *made);
        EXPECT_EQ(opencl::Context::of(**made->get()), *made);  // by its own handle
        handle = **made->get();
        EXPECT_GT(handle.getInfo<CL_CONTEXT_REFERENCE_COUNT>(), 1u);
    }
    EXPECT_EQ(handle.getInfo<CL_CONTEXT_REFERENCE_COUNT>(), 1u);  // ours
    const auto next = opencl::Context::of(first());
    ASSERT_TRUE(next);
    EXPECT_NE((**next)(), handle());
}

TEST_F(OpenClContext, OneForAContextOfTheCallers) {
    const cl::Context mine(first()), other(first());
    const auto known = opencl::Context::of(mine);
    EXPECT_EQ((*known)(), mine());
    EXPECT_EQ(opencl::Context::of(mine), known);
    EXPECT_NE(opencl::Context::of(other), known);
    const cl::CommandQueue queue(mine, first());
    const auto memory = known->allocate_pinned(1, queue);
    ASSERT_TRUE(memory);
    EXPECT_TRUE(opencl::Context::of(mine)->is_pinned(*memory, 1));
    EXPECT_FALSE(opencl::Context::of(other)->is_pinned(*memory, 1));
    known->release_pinned(*memory, queue);
    known->release_pinned(*memory, queue);  // not known any more: nothing happens
}

// A copy from memory that is page-locked in its first bytes only must not go on after the call,
// when the rest may be gone.
TEST_F(OpenClContext, ARangeIsPinnedIfAllOfItIs) {
    const cl::Context mine(first());
    const auto known = opencl::Context::of(mine);
    const cl::CommandQueue queue(mine, first());
    const auto memory = known->allocate_pinned(5000, queue);
    ASSERT_TRUE(memory) << memory.error().message;
    const auto* begin = static_cast<const std::uint8_t*>(*memory);
    EXPECT_TRUE(known->is_pinned(begin, 5000));
    EXPECT_TRUE(known->is_pinned(begin + 4999, 1));
    EXPECT_FALSE(known->is_pinned(begin, 5001));
    EXPECT_FALSE(known->is_pinned(begin + 4999, 2));
    EXPECT_FALSE(known->is_pinned(begin + 1, SIZE_MAX));
    EXPECT_FALSE(known->is_pinned(begin - 1, 2));
    known->release_pinned(*memory, queue);
}

// A child of fork() has none of the driver's threads: it hears so at once, and can let go.
TEST_F(OpenClContext, SaysSoAfterAFork) {
    auto engine = Engine::open({.backend = "opencl"});
    ASSERT_TRUE(engine) << engine.error().message;
    const Key key = *Key::import(pattern(16));
    Bytes data(5000);
    ASSERT_TRUE(ctr::crypt(*engine, key, {}, HostIn(data), HostOut(data)));
    auto* const memory = put(data);
    const auto pinned = device_->memory().allocate_pinned(100);
    ASSERT_TRUE(pinned);
    const cl::Context mine = context();
    auto* const handle = static_cast<cl_device_id>(device_->native().device);
    const auto about_fork = [](const auto& result, Code code) {
        if (!result && result.code() == code &&
            result.error().message.find("fork") != std::string::npos)
            return true;
        std::fputs(result ? "no error\n" : (result.error().message + '\n').c_str(), stderr);
        return false;
    };
    expect_in_a_child([&] {
        bool told =
            about_fork(ctr::crypt(*engine, key, {}, HostIn(data), HostOut(data)), Code::device);
        told &= about_fork(device_->memory().copy_out(data.data(), memory, data.size(), {}),
                           Code::device);
        told &= about_fork(device_->memory().allocate(16), Code::device);
        told &= about_fork(device_->memory().allocate_pinned(16), Code::device);
        told &= about_fork(device_->order().create_stream(), Code::device);
        told &= about_fork(device_->order().wait(Stream{}), Code::device);
        told &= about_fork(Engine::open({.backend = "opencl"}), Code::backend_absent);
        told &= about_fork(opencl::open(mine(), handle), Code::backend_absent);
        device_->memory().release(memory);
        device_->memory().release_pinned(*pinned);
        device_.reset();
        engine = Error{Code::device, ""};
        return told;
    });
    EXPECT_TRUE(ctr::crypt(*engine, key, {}, HostIn(data), HostOut(data)));
    device_->memory().release_pinned(*pinned);
}

// Whatever locks other threads held at that moment: the child asks for none.
TEST_F(OpenClContext, SaysSoAfterAForkInTheMidstOfWork) {
    const Key key = *Key::import(pattern(16));
    auto* const memory = put(pattern(4096));
    const auto work = [&] { return run({Mode::ctr}, key, message(memory, memory, 4096)); };
    ASSERT_TRUE(work());  // which builds the kernel
    std::atomic<bool> done = false;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] {
            while (!done) {
                EXPECT_TRUE(work());
                const auto more = device_->memory().allocate(64);
                EXPECT_TRUE(more && device_->memory().owns(*more) &&
                            device_->order().wait(Stream{}));
                device_->memory().release(*more);
            }
        });
    for (int forks = 0; forks < 50; ++forks)
        expect_in_a_child([&] {
            const bool told = work().code() == Code::device && !device_->memory().owns(memory);
            device_->memory().release(memory);
            return told;
        });
    done = true;
}

}  // namespace
