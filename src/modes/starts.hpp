// SPDX-License-Identifier: Apache-2.0
// Whether messages of one batch would be encrypted from the same start under the same key.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

namespace dael::modes {

// Fed with the messages of a list in order; cheap, so that callers can do it beside what else they
// look at. Starts that go up, in the whole list or for each of its keys, cannot repeat; of others
// find_repeat() must tell.
class StartsInOrder {
  public:
    void add(const Message& message) noexcept {
        const auto high = big_endian(message.start.data());
        const auto low = big_endian(message.start.data() + 8);
        const bool above = (high > high_) | ((high == high_) & (low > low_));
        const bool up = (message.key > key_) | ((message.key == key_) & above);
        all_up_ &= above | first_;
        keys_up_ &= up | first_;
        first_ = false;
        high_ = high;
        low_ = low;
        key_ = message.key;
    }
    bool distinct() const noexcept { return all_up_ | keys_up_; }

  private:
    static std::uint64_t big_endian(const std::uint8_t* bytes) noexcept {
        std::uint64_t number;  // in one step: this is most of what a short message costs here
        std::memcpy(&number, bytes, sizeof number);
        return std::endian::native == std::endian::little ? __builtin_bswap64(number) : number;
    }
    std::uint64_t high_ = 0, low_ = 0;
    std::uint32_t key_ = 0;
    bool first_ = true, all_up_ = true, keys_up_ = true;
};

// Two messages of the list, the earlier one first, that have the same key and the same start. Those
// without a byte, AAD or tag do not count. Takes 8 to 16 bytes of memory for each message; throws
// std::bad_alloc.
std::optional<std::pair<std::size_t, std::size_t>> find_repeat(std::span<const Message> messages);

// The same as an Error that names the two: limit.
Result<> check_starts(std::span<const Message> messages);

}  // namespace dael::modes
