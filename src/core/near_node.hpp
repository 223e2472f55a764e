// SPDX-License-Identifier: Apache-2.0
// Which node of a NUMA machine memory comes from: what a device copies to and from had better be
// near the bus that it is on.
#pragma once

#include <array>

namespace dael::core {

// While this lives, new pages of its thread come from the node, where that has any left; afterwards
// they come from where they came before. Nothing happens for a node below 0 (nobody knows), on a
// machine with one node, and where the kernel refuses (sandboxes do).
class NearNode {
  public:
    explicit NearNode(int node) noexcept : NearNode(node, count()) {}
    NearNode(int node, int nodes) noexcept;  // for tests: as if there were so many
    ~NearNode();
    NearNode(const NearNode&) = delete;
    NearNode& operator=(const NearNode&) = delete;

    static constexpr int kMostNodes = 1024;  // as Linux has them at most
    // Nodes of this machine that have memory: 1 where the kernel tells nothing.
    static int count() noexcept;

  private:
    int before_ = 0;  // the policy
    std::array<unsigned long, kMostNodes / (8 * sizeof(unsigned long))> nodes_{};
    bool changed_ = false;
};

// The node of a PCI device, "0000:1b:00.0", as the kernel has it; -1: nobody knows.
int node_of_pci(const char* address) noexcept;

}  // namespace dael::core
