// SPDX-License-Identifier: Apache-2.0
#include "vpn/allowed.hpp"

#include <algorithm>
#include <bit>

namespace dael::vpn {
namespace {

int bit_at(const std::uint8_t* bytes, int bit) noexcept {
    return bytes[bit / 8] >> (7 - bit % 8) & 1;
}

// How many leading bits two addresses share, up to `most`.
int shared_bits(const std::uint8_t* a, const std::uint8_t* b, int most) noexcept {
    for (int i = 0; 8 * i < most; ++i)
        if (const auto other = static_cast<std::uint8_t>(a[i] ^ b[i]))
            return std::min(most, 8 * i + std::countl_zero(other));
    return most;
}

}  // namespace

bool Allowed::add(const path::Prefix& prefix, std::uint32_t peer) {
    std::vector<Node>& trie = tries_[prefix.address.family == 6];
    Node leaf{prefix.masked().address.bytes, prefix.length, peer, {0, 0}};
    std::uint32_t at = 0;
    for (;;) {  // trie[at] covers the leaf
        if (trie[at].bits == leaf.bits) {
            if (trie[at].peer != kNobody) return false;
            trie[at].peer = peer;
            return true;
        }
        const int side = bit_at(leaf.bytes.data(), trie[at].bits);
        const std::uint32_t child = trie[at].next[side];
        const auto added = static_cast<std::uint32_t>(trie.size());
        if (child == 0) {
            trie.push_back(leaf);
            trie[at].next[side] = added;
            return true;
        }
        const int shared = shared_bits(leaf.bytes.data(), trie[child].bytes.data(),
                                       std::min(leaf.bits, trie[child].bits));
        if (shared == trie[child].bits) {
            at = child;
            continue;
        }
        // The child comes below the leaf, or both below a node that says nothing but where they
        // part.
        const int child_side = bit_at(trie[child].bytes.data(), shared);
        if (shared == leaf.bits) {
            leaf.next[child_side] = child;
            trie.push_back(leaf);
        } else {
            Node fork{leaf.bytes, shared, kNobody, {0, 0}};  // later bits are not looked at
            fork.next[child_side] = child;
            fork.next[!child_side] = added + 1;
            trie.push_back(fork);
            trie.push_back(leaf);
        }
        trie[at].next[side] = added;
        return true;
    }
}

std::uint32_t Allowed::find(unsigned version, const std::uint8_t* address) const noexcept {
    const std::vector<Node>& trie = tries_[version == 6];
    const int width = version == 6 ? 128 : 32;
    std::uint32_t found = trie[0].peer, at = 0;
    while (trie[at].bits < width) {
        at = trie[at].next[bit_at(address, trie[at].bits)];
        if (at == 0) break;
        const Node& node = trie[at];
        if (shared_bits(address, node.bytes.data(), node.bits) < node.bits) break;
        if (node.peer != kNobody) found = node.peer;
    }
    return found;
}

}  // namespace dael::vpn
