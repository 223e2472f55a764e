// SPDX-License-Identifier: Apache-2.0
// The shared memory of every CUDA kernel against what a thread block may have on every architecture
// that the library is built for.
#include <gtest/gtest.h>

#include "backends/cuda/kernel_shapes.hpp"

namespace {

using namespace dael::cuda;

// KiB of shared memory for one thread block at most (CUDA C++ Programming Guide, technical
// specifications by compute capability).
struct Architecture {
    int sm;
    std::size_t kib;
};
constexpr Architecture kArchitectures[] = {{75, 64},   {80, 163}, {86, 99},   {87, 163},
                                           {89, 99},   {90, 227}, {100, 227}, {103, 227},
                                           {110, 227}, {120, 99}, {121, 99}};

TEST(KernelShapes, FitEveryArchitecture) {
    for (const Architecture& architecture : kArchitectures)
        for (const int most : {4, 2, 1}) {
            const int sm = architecture.sm;
            const std::size_t limit = architecture.kib * 1024;
            const Layout layout = layout_for(limit, most);
            int kernels = 0;
            visit_shapes(layout, sm == 90, [&](std::string_view kernel, const Shape& shape) {
                EXPECT_LE(shape.shared(), limit) << "sm_" << sm << ", " << kernel;
                EXPECT_GT(shape.threads, 0u) << kernel;
                EXPECT_LE(shape.threads, 1024u) << kernel;
                EXPECT_EQ(shape.threads % 32, 0u) << kernel;
                ++kernels;
            });
            EXPECT_EQ(kernels, (sm == 90 ? 34 : 28) + (layout.forward == 4) + layout.aegis_rows);
        }
}

TEST(KernelShapes, TakeTheMostTablesThatFit) {
    const auto layout = [](int sm) {
        for (const auto& architecture : kArchitectures)
            if (architecture.sm == sm) return layout_for(architecture.kib * 1024);
        return Layout{};
    };
    EXPECT_EQ(layout(75).forward, 2);
    EXPECT_EQ(layout(75).inverse, 1);
    EXPECT_EQ(layout(75).xts_inverse, 0);
    // Two tables are all that Turing has, so that the round keys of many warps leave room for one.
    EXPECT_EQ(layout(75).gcm_ctr, 2);
    EXPECT_EQ(layout(75).gcm_ctr_keys, 1);
    EXPECT_EQ(layout(75).gcm_short, 1);
    for (const int sm : {86, 89, 120}) {
        EXPECT_EQ(layout(sm).forward, 2) << sm;
        EXPECT_EQ(layout(sm).inverse, 2) << sm;
        EXPECT_EQ(layout(sm).gcm_short, 2) << sm;
        EXPECT_EQ(layout(sm).xts_inverse, 1) << sm;
    }
    for (const int sm : {80, 90, 100}) {
        EXPECT_EQ(layout(sm).forward, 4) << sm;
        EXPECT_EQ(layout(sm).inverse, 4) << sm;
        EXPECT_EQ(layout(sm).gcm_short, 4) << sm;
        EXPECT_EQ(layout(sm).gcm_ctr_keys, 4) << sm;
    }
    EXPECT_EQ(layout(80).xts_inverse, 2);
    EXPECT_FALSE(layout(80).aegis_rows);
    EXPECT_TRUE(layout(90).aegis_rows);
    EXPECT_EQ(layout(90).xts_inverse, 4);
}

TEST(KernelShapes, AForcedLayoutIsKept) {
    const Layout layout = layout_for(std::size_t{227} * 1024, 1);
    EXPECT_EQ(layout.forward, 1);
    EXPECT_EQ(layout.inverse, 1);
    EXPECT_EQ(layout.gcm_ctr, 1);
    EXPECT_EQ(layout.xts_inverse, 1);
}

}  // namespace
