// SPDX-License-Identifier: Apache-2.0
// Contexts, which engines of a process share, and the page-locked memory that is made in them.
#include "core/registry.hpp"
#include "opencl/fixture.hpp"

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
    EXPECT_EQ(one->device()->native().context, other->device()->native().context);
    const auto memory = one->device()->allocate_pinned(5000);
    ASSERT_TRUE(memory) << memory.error().message;
    const auto* begin = static_cast<const std::uint8_t*>(*memory);
    EXPECT_TRUE(other->device()->is_pinned(begin));
    EXPECT_TRUE(other->device()->is_pinned(begin + 4999));
    EXPECT_FALSE(other->device()->is_pinned(begin + 5000));
    // But not to one in another context, whose driver would not know it either.
    EXPECT_FALSE(device_->is_pinned(begin));
    other->device()->release_pinned(*memory);  // any of them may
    EXPECT_FALSE(one->device()->is_pinned(begin));
}

TEST_F(OpenClContext, PinnedMemoryOutlivesTheDeviceThatMadeIt) {
    auto one = open_by_name(), other = open_by_name();
    ASSERT_TRUE(one && other);
    const auto memory = one->device()->allocate_pinned(100);
    ASSERT_TRUE(memory);
    one.reset();
    EXPECT_TRUE(other->device()->is_pinned(*memory));
    std::fill_n(static_cast<std::uint8_t*>(*memory), 100, std::uint8_t{7});
    other->device()->release_pinned(*memory);
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
    EXPECT_TRUE(opencl::Context::of(mine)->is_pinned(*memory));
    EXPECT_FALSE(opencl::Context::of(other)->is_pinned(*memory));
    known->release_pinned(*memory, queue);
    known->release_pinned(*memory, queue);  // not known any more: nothing happens
}

}  // namespace
