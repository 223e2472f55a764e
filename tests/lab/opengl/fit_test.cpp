// SPDX-License-Identifier: Apache-2.0
// The picture is fitted to the data: it has room, keeps to the driver's limits, and wastes little.
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/opengl/opengl.hpp"

namespace {

using dael::opengl::Extent;
using dael::opengl::fit;

void expect_fitted(std::size_t blocks, Extent most) {
    const Extent extent = fit(blocks, most);
    const auto what = [&] {
        return std::to_string(blocks) + " blocks in " + std::to_string(extent.width) + " x " +
               std::to_string(extent.height) + " of " + std::to_string(most.width) + " x " +
               std::to_string(most.height);
    };
    ASSERT_TRUE(extent.width >= 1 && extent.width <= most.width) << what();
    ASSERT_TRUE(extent.height >= 1 && extent.height <= most.height) << what();
    ASSERT_GE(extent.blocks(), blocks) << what();
    ASSERT_LT(extent.blocks() - blocks, static_cast<std::size_t>(extent.height)) << what();
}

// What OpenGL ES 3.0 guarantees, what drivers have, and odd shapes.
constexpr Extent kLimits[] = {{2048, 2048}, {512, 2048}, {16384, 16384}, {7, 100}, {100, 7}};

TEST(Fit, EverySmallNumberOfBlocks) {
    for (const Extent most : kLimits)
        for (std::size_t blocks = 1; blocks <= std::min<std::size_t>(most.blocks(), 70000);
             ++blocks) {
            expect_fitted(blocks, most);
            if (HasFatalFailure()) return;
        }
}

TEST(Fit, UpToTheLimits) {
    for (const Extent most : kLimits)
        for (std::size_t less = 0; less < std::min<std::size_t>(most.blocks(), 20000); ++less) {
            expect_fitted(most.blocks() - less, most);
            if (HasFatalFailure()) return;
        }
}

TEST(Fit, PicturesAreNearlySquareWhereTheyMayBe) {
    for (const std::size_t blocks : {2, 10, 100, 12345, 65536, 1 << 20, 4000001}) {
        const Extent extent = fit(blocks, {16384, 16384});
        EXPECT_LE(extent.width - extent.height, 3) << blocks;
    }
    EXPECT_EQ(fit(1 << 20, {16384, 16384}), (Extent{1024, 1024}));
}

}  // namespace
