// SPDX-License-Identifier: Apache-2.0
// How the host has a batch of XAES or GCM-SIV taken: which messages a quad of lanes takes and which
// a thread block, and which comes when.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backends/cuda/derived/kernels.hpp"

namespace dael::cuda {

class DerivedPlan {
  public:
    // Of a list of the host's. `workers`: warps that there are.
    DerivedPlan(std::span<const Message> messages, std::uint32_t workers) {
        // A quad takes what is longer, too, where many messages are (an H200; README): a warp has
        // eight side by side, and goes through them alone.
        const std::size_t quads = std::size_t{workers} * kDerivedMessages;
        std::size_t some = 0, many = 0;
        for (const Message& m : messages) {
            some += cost(m) > kShort / 16;
            many += cost(m) > kSomeShort / 16;
        }
        if (some >= quads / 8) most_short = kSomeShort;
        if (many >= quads / 2) most_short = kManyShort;
        DerivedBatch like{};
        like.most_short = most_short;
        for (std::uint32_t i = 0; i < messages.size(); ++i)
            (is_long(like, messages[i]) ? blocks : quarters).push_back(i);
        // Messages side by side wait for the longest of them: like beside like, the longest first.
        const auto longer = [&](std::uint32_t a, std::uint32_t b) {
            return cost(messages[a]) > cost(messages[b]);
        };
        std::ranges::stable_sort(quarters, longer);
        std::ranges::stable_sort(blocks, longer);
    }

    // Bytes of data and AAD that a quad takes: of a list that nobody has seen, or where few have
    // more; and where some thousands have.
    static constexpr std::uint64_t kShort = 8192, kSomeShort = 40 << 10, kManyShort = 96 << 10;
    std::uint64_t most_short = kShort;
    std::vector<std::uint32_t> quarters, blocks;

  private:
    static std::uint64_t cost(const Message& m) {
        return (m.size + 15) / 16 + (m.aad_size + 15) / 16;
    }
};

// Thread blocks of a batch's launch, at most one to a multiprocessor: each of a few long messages
// has one of its own, in order or as they are listed.
constexpr unsigned derived_grid(DerivedWay way, std::uint64_t count, std::uint32_t most) {
    const std::uint32_t each = way == DerivedWay::eight ? kDerivedMessages : 1;
    return static_cast<unsigned>(std::clamp<std::uint64_t>((count + each - 1) / each, 1, most));
}

}  // namespace dael::cuda
