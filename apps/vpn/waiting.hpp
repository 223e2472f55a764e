// SPDX-License-Identifier: Apache-2.0
// Inner packets that wait for their peer's first session: a few, so that what starts a connection
// is not lost. Memory is taken when a peer first needs it, and no more than that.
//
// Threads: one at a time. Wiped when they go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <daelstrom/key.hpp>

namespace dael::vpn {

class Waiting {
  public:
    static constexpr std::size_t kMostBytes = 48 << 10, kMostPackets = 64;

    Waiting() = default;
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { clear(); }

    struct Item {
        std::span<const std::uint8_t> packet;
        std::uint8_t tos = 0, next_header = 0;
    };
    // False: there is no room for it.
    bool add(const Item& item) {
        if (!bytes_) {
            bytes_ = std::make_unique<std::uint8_t[]>(kMostBytes);
            items_.reserve(kMostPackets);
        }
        if (items_.size() == kMostPackets || kMostBytes - used_ < item.packet.size()) return false;
        std::uint8_t* const to = bytes_.get() + used_;
        std::ranges::copy(item.packet, to);
        used_ += item.packet.size();
        items_.push_back({{to, item.packet.size()}, item.tos, item.next_header});
        return true;
    }
    std::span<const Item> items() const noexcept { return items_; }
    bool empty() const noexcept { return items_.empty(); }
    void clear() noexcept {
        if (used_ != 0) wipe(bytes_.get(), used_);
        used_ = 0;
        items_.clear();
    }

  private:
    std::unique_ptr<std::uint8_t[]> bytes_;
    std::vector<Item> items_;
    std::size_t used_ = 0;
};

}  // namespace dael::vpn
