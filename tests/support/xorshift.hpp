// SPDX-License-Identifier: Apache-2.0
// Numbers that come again: xorshift64*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dael::test {

class Xorshift {
  public:
    explicit Xorshift(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
    std::uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1du;
    }
    std::size_t below(std::size_t limit) { return next() % limit; }
    bool one_in(std::size_t n) { return below(n) == 0; }
    std::vector<std::uint8_t> bytes(std::size_t size) {
        std::vector<std::uint8_t> all(size + 8);
        for (std::size_t i = 0; i < size; i += 8) {
            const std::uint64_t eight = next();
            std::memcpy(&all[i], &eight, 8);
        }
        all.resize(size);
        return all;
    }

  private:
    std::uint64_t state_;
};

}  // namespace dael::test
