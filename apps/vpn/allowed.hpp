// SPDX-License-Identifier: Apache-2.0
// Whose an inner address is: the peer with the longest of the allowed prefixes that cover it. The
// same table says where a packet goes and whom one may come from ("cryptokey routing").
//
// Threads: any number may look up; nobody may add meanwhile. fork(): a copy.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "vpn/path/netlink.hpp"

namespace dael::vpn {

class Allowed {
  public:
    static constexpr std::uint32_t kNobody = 0xffffffff;

    // False where that very prefix is some peer's already. Bits behind the prefix's do not matter.
    bool add(const path::Prefix& prefix, std::uint32_t peer);

    // `address`: of IPv4 (`version` 4) 4 bytes, of IPv6 (6) 16. At most one step for each bit, no
    // allocation.
    std::uint32_t find(unsigned version, const std::uint8_t* address) const noexcept;
    std::uint32_t find(const path::Address& address) const noexcept {
        return find(address.family, address.bytes.data());
    }

  private:
    // A binary trie without the nodes that would have one way on and say nothing. Nodes name each
    // other by place; a node covers its children's prefixes.
    struct Node {
        std::array<std::uint8_t, 16> bytes{};
        int bits = 0;
        std::uint32_t peer = kNobody;
        std::uint32_t next[2] = {0, 0};  // 0: none, as the root is nobody's child
    };
    std::vector<Node> tries_[2]{{Node{}}, {Node{}}};  // IPv4, IPv6; the first is the root
};

}  // namespace dael::vpn
