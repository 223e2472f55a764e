// SPDX-License-Identifier: Apache-2.0
// What is encrypted with what: keys made for the measurement, and messages laid out one after
// another.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/modes.hpp>
#include <daelstrom/xts.hpp>

#include "bench/row.hpp"

namespace dael::bench {

// A key with its raw bytes, which the bare libraries want. Not a secret: the same in every run.
struct TestKey {
    std::array<std::uint8_t, 64> raw;
    Key key;
    std::optional<XtsKey> xts;  // of twice as many bytes; none for 192 bits

    static Result<TestKey> make(int bits);
    std::span<const std::uint8_t> bytes() const {
        return {raw.data(), static_cast<std::size_t>(key.bits() / 8)};
    }
    std::span<const std::uint8_t> xts_bytes() const {
        return {raw.data(), static_cast<std::size_t>(key.bits() / 4)};
    }
};

// Host memory on a page boundary, touched, so that no page fault falls into a measurement.
class HostBuffer {
  public:
    static Result<HostBuffer> allocate(std::size_t size);
    std::uint8_t* data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return size_; }

  private:
    struct Free {
        void operator()(std::uint8_t* data) const noexcept;
    };
    std::unique_ptr<std::uint8_t[], Free> data_;
    std::size_t size_ = 0;
};

// The IV or initial counter block of message `index`: no two share a counter.
Block message_iv(std::uint64_t index) noexcept;

// The sectors of XTS: of this number on, in every measurement.
inline constexpr std::uint64_t kFirstSector = 1'000'000;

// `work.messages` messages of `work.size` bytes, side by side from `in` to `out`.
std::vector<Message> lay_out(const Work& work, const std::uint8_t* in, std::uint8_t* out);

}  // namespace dael::bench
