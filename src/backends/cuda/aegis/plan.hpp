// SPDX-License-Identifier: Apache-2.0
// How the host has a batch of AEGIS taken: which kernel, and which message comes when.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backends/cuda/aegis/kernels.hpp"

namespace dael::cuda {

// A message of AEGIS is sequential, so that what fills a GPU is messages, or with few of them the
// lanes that share a state: the more lanes, the sooner a message is done and the more exchanges it
// costs. By what an H200 measures (README). `tables`: that shared memory has room for; `rows`: and
// for rows of messages beside four. `most`: how many messages there would be if all were as long as
// the longest; `bytes`: that they have on average, 0 where nobody knows.
inline AegisWay aegis_way(const Cipher& cipher, int tables, bool rows, std::uint64_t most,
                          std::uint64_t bytes) {
    const bool opens = cipher.direction == Direction::decrypt;
    if (tables != 4) return AegisWay::plain;
    switch (cipher.mode) {
        case Mode::aegis256:
            return rows ? AegisWay::lines : AegisWay::plain;
        case Mode::aegis128x2:
            return most >= 12288  ? AegisWay::blocks2
                   : most >= 2048 ? AegisWay::blocks4
                                  : AegisWay::blocks8;
        case Mode::aegis128x4:
            return most >= 6144                     ? AegisWay::blocks2
                   : most >= (opens ? 1536u : 768u) ? AegisWay::blocks4
                                                    : AegisWay::blocks8;
        default:
            if (most < 3072) return AegisWay::blocks8;
            if (most < 8192 || !rows) return AegisWay::blocks4;
            return most >= 131072 || (most >= 49152 && bytes >= 8192) ? AegisWay::lines
                                                                      : AegisWay::lines2;
    }
}

// The messages of a list that the host can see.
struct AegisPlan {
    explicit AegisPlan(std::span<const Message> messages) {
        std::uint64_t longest = 0, all = 0;
        bool same = true;
        for (const Message& m : messages) {
            const std::uint64_t size = cost(m);
            longest = std::max(longest, size);
            all += size;
            same =
                same && m.size == messages.front().size && m.aad_size == messages.front().aad_size;
        }
        if (messages.empty()) return;
        most = all / longest;
        bytes = all / messages.size();
        if (same) return;
        // Messages side by side in a warp wait for the longest of them: like beside like, and the
        // longest first.
        order.resize(messages.size());
        for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
            return cost(messages[a]) > cost(messages[b]);
        });
    }

    std::vector<std::uint32_t> order;  // empty: as they are listed
    std::uint64_t most = 0, bytes = 0;

  private:
    // What a message takes: its beginning and end are as much as some 544 bytes.
    static std::uint64_t cost(const Message& m) { return m.size + m.aad_size + 544; }
};

}  // namespace dael::cuda
