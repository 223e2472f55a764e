// SPDX-License-Identifier: Apache-2.0
// Whether messages of one batch would be encrypted from the same start under the same key. Bytes 16
// to 31 of a start count in modes that read them (has_start_rest()) alone: `with_rest`.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

namespace dael::modes {

// Fed with the messages of a list in order; cheap, so that callers can do it beside what else they
// look at. Starts whose first 16 bytes go up, in the whole list or for each of its keys, cannot
// repeat; of others find_repeat() must tell.
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
    // What was fed with the messages that follow, of which this is the first.
    void join(const Message& its_first, const StartsInOrder& next) noexcept {
        add(its_first);
        all_up_ &= next.all_up_;
        keys_up_ &= next.keys_up_;
        high_ = next.high_;
        low_ = next.low_;
        key_ = next.key_;
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

// Two messages of a list, by number.
using Pair = std::pair<std::size_t, std::size_t>;

// Which starts of a list have been seen. Takes 8 to 16 bytes of memory for each message. Any number
// of threads may look at different messages at once: at least one of two alike is found to be so.
class SeenStarts {
  public:
    // Throws std::bad_alloc.
    explicit SeenStarts(std::span<const Message> messages, bool with_rest = false);
    // Looks at the messages from `begin` to `end`: one that has the key and the start of another
    // that was seen, behind that. Those without a byte, AAD or tag do not count.
    std::optional<Pair> add(std::size_t begin, std::size_t end) noexcept;

  private:
    struct Free {
        void operator()(std::uint32_t* memory) const noexcept { std::free(memory); }
    };
    const std::span<const Message> messages_;
    const bool with_rest_;
    const std::size_t mask_;
    const std::unique_ptr<std::uint32_t[], Free> places_;
};

// The first of a list that has the key and the start of one before, behind that. Throws
// std::bad_alloc.
std::optional<Pair> find_repeat(std::span<const Message> messages, bool with_rest = false);

// The same as an Error that names the two: limit.
Result<> check_starts(std::span<const Message> messages, bool with_rest = false);

}  // namespace dael::modes
