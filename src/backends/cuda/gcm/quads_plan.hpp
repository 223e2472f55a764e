// SPDX-License-Identifier: Apache-2.0
// How the host puts short messages into groups of 64 for warpgroups (gcm/quads.cu).
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backends/cuda/gcm/work.hpp"

namespace dael::cuda {

// Places of 64 messages a group, kNoMessage where there is none. A group has one key, so that its
// last places may be empty, and messages of about one number of steps, the most first; groups with
// more steps come first.
class QuadPlan {
  public:
    explicit QuadPlan(std::span<const Message> messages) {
        std::uint32_t keys = 0;
        for (std::uint32_t i = 0; i < messages.size(); ++i) {
            const Message& m = messages[i];
            if (is_long(m)) continue;
            const kernels::QuadMessage blocks(m.aad_size, m.size);
            items_.push_back({i, m.key, blocks.steps()});
            useful += blocks.steps();
            longest_ = std::max<std::uint64_t>(longest_, blocks.steps());
            keys = std::max(keys, m.key + 1);
        }
        sort(items_, kMaxSteps + 1, [](const Item& i) { return kMaxSteps - i.steps; });
        if (keys > 1) sort(items_, keys, [](const Item& i) { return i.key; });
        std::vector<Group> groups;
        for (std::size_t i = 0; i < items_.size();) {
            Group group{i, 0};
            while (group.count < kernels::kQuadRows && i < items_.size() &&
                   items_[i].key == items_[group.first].key)
                ++group.count, ++i;
            groups.push_back(group);
            taken += std::uint64_t{items_[group.first].steps} * kernels::kQuadRows;
        }
        sort(groups, kMaxSteps + 1,
             [&](const Group& g) { return kMaxSteps - items_[g.first].steps; });
        places.resize(groups.size() * kernels::kQuadRows, kNoMessage);
        for (std::size_t g = 0; g < groups.size(); ++g)
            for (std::size_t i = 0; i < groups[g].count; ++i)
                places[g * kernels::kQuadRows + i] = items_[groups[g].first + i].index;
    }

    // Fewer messages than this are sooner done a warp each, whatever they are like.
    static constexpr std::uint32_t kFewest = 3000;
    // Whether groups pay: not too many places are empty or idle; and there is enough to do beside
    // the longest, since a row goes through its message alone, where a warp has 32 lanes for one.
    // On an H200 4,096 messages of 1 KiB break even, and some 10,000 of 8 KiB.
    bool pays() const {
        return taken <= 2 * useful && useful >= longest_ * (kFewest + 60 * longest_);
    }
    std::uint32_t groups() const {
        return static_cast<std::uint32_t>(places.size() / kernels::kQuadRows);
    }

    std::vector<std::uint32_t> places;
    // Steps that messages have, and that they take in these groups.
    std::uint64_t useful = 0, taken = 0;

  private:
    // Of a short message, whose AAD and data are each filled up to whole blocks.
    static constexpr std::uint32_t kMaxSteps =
        (kShortMessage / 16 + 2 + kernels::kQuadBlocks) / kernels::kQuadBlocks;
    struct Item {
        std::uint32_t index, key, steps;
    };
    struct Group {
        std::size_t first, count;
    };

    // By a number below `bins`, keeping the order of equal ones.
    template <class T, class Bin>
    static void sort(std::vector<T>& items, std::uint32_t bins, Bin bin) {
        if (std::ranges::is_sorted(items, {}, bin)) return;
        std::vector<std::size_t> starts(bins + 1);
        for (const T& item : items) ++starts[bin(item) + 1];
        for (std::uint32_t b = 0; b < bins; ++b) starts[b + 1] += starts[b];
        std::vector<T> sorted(items.size());
        for (const T& item : items) sorted[starts[bin(item)]++] = item;
        items.swap(sorted);
    }

    std::vector<Item> items_;
    std::uint64_t longest_ = 0;  // steps
};

}  // namespace dael::cuda
