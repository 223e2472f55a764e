// SPDX-License-Identifier: Apache-2.0
// Memory near a device's bus: the thread's policy meanwhile, and as it was afterwards.
#include <gtest/gtest.h>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "core/near_node.hpp"

namespace {

using dael::core::NearNode;

struct Policy {
    int mode = -1;
    std::array<unsigned long, NearNode::kMostNodes / (8 * sizeof(unsigned long))> nodes{};
    bool known =
        syscall(SYS_get_mempolicy, &mode, nodes.data(), NearNode::kMostNodes, nullptr, 0) == 0;
    bool operator==(const Policy&) const = default;
};

TEST(NearNode, HoldsWhileItLives) {
    const Policy before;
    if (!before.known || syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0) != 0)
        GTEST_SKIP() << "this kernel, or a sandbox, has no policies of memory";
    const Policy usual;
    {
        const NearNode near_first(0, 2);
        const Policy inside;
        EXPECT_EQ(inside.mode, MPOL_PREFERRED);
        EXPECT_EQ(inside.nodes[0], 1u);
        {
            const NearNode nobody_knows(-1, 2), only_one(0, 1), too_many(NearNode::kMostNodes, 2);
            EXPECT_EQ(Policy(), inside);
        }
        EXPECT_EQ(Policy(), inside);
    }
    EXPECT_EQ(Policy(), usual);
    {
        const NearNode none(NearNode::kMostNodes - 1, 2);  // which is not there
        EXPECT_EQ(Policy(), usual);
    }
    EXPECT_GE(NearNode::count(), 1);
}

TEST(NearNode, OfADevice) {
    EXPECT_EQ(dael::core::node_of_pci("9999:99:99.9"), -1);
    EXPECT_EQ(dael::core::node_of_pci(""), -1);
}

}  // namespace
