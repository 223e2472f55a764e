// SPDX-License-Identifier: Apache-2.0
// Bytes for tests: patterns, poisoned buffers, repeatable random numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/message.hpp>

namespace dael::test {

using Bytes = std::vector<std::uint8_t>;

// Repeats modulo 251, a prime: no block equals its neighbours, so that swapped blocks are noticed.
inline Bytes pattern(std::size_t size, std::size_t seed = 0) {
    constexpr std::size_t kPeriod = 251;
    Bytes bytes(size);
    const std::size_t first = std::min(size, kPeriod);
    for (std::size_t i = 0; i < first; ++i)
        bytes[i] = static_cast<std::uint8_t>((i + seed) % kPeriod);
    for (std::size_t done = first; done < size;) {  // again what is there
        const std::size_t more = std::min(size - done, done);
        std::memcpy(bytes.data() + done, bytes.data(), more);
        done += more;
    }
    return bytes;
}

// As memcmp() does it, which takes no time under sanitizers either.
inline bool all_are(std::span<const std::uint8_t> bytes, std::uint8_t value) {
    return bytes.empty() || (bytes[0] == value &&
                             std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Repeatable: the same numbers in every run, on every machine.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t number() { return engine_(); }
    std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
    Bytes bytes(std::size_t size) {
        Bytes out(size);
        for (std::size_t at = 0; at < size; at += 8) {
            const std::uint64_t eight = engine_();
            std::memcpy(out.data() + at, &eight, std::min<std::size_t>(8, size - at));
        }
        return out;
    }
    Block block() {
        Block out;
        for (auto& byte : out) byte = static_cast<std::uint8_t>(engine_() >> 56);
        return out;
    }

  private:
    std::mt19937_64 engine_;
};

// One-off random content, told apart by its seed.
inline Bytes random_bytes(std::size_t size, std::uint32_t seed) {
    return Random(seed).bytes(size);
}
inline Block random_block(std::uint32_t seed) {
    return Random(seed).block();
}

// `size` bytes at a chosen distance from a 64-byte boundary, poisoned within and for 64 bytes and
// more on both sides, so that a byte that was not written, or one that was written outside, shows.
class Poisoned {
  public:
    static constexpr std::uint8_t kPoison = 0xa5;

    Poisoned(std::size_t size, std::size_t misalignment)
        : storage_(size + misalignment + 3 * 64, kPoison), size_(size) {
        const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
        begin_ = 64 + (64 - address % 64) % 64 + misalignment;
    }
    Poisoned(std::span<const std::uint8_t> content, std::size_t misalignment)
        : Poisoned(content.size(), misalignment) {
        std::ranges::copy(content, data());
    }
    std::uint8_t* data() { return storage_.data() + begin_; }
    const std::uint8_t* data() const { return storage_.data() + begin_; }
    std::size_t size() const { return size_; }
    std::span<std::uint8_t> span() { return {data(), size_}; }
    std::span<const std::uint8_t> span() const { return {data(), size_}; }
    Bytes bytes() const { return {data(), data() + size_}; }

    // Whether everything outside of the buffer is still poison.
    bool intact() const {
        const std::span all(storage_);
        return all_are(all.first(begin_), kPoison) && all_are(all.subspan(begin_ + size_), kPoison);
    }

  private:
    Bytes storage_;
    std::size_t size_, begin_;
};

// Where two buffers first differ, for a failure's text; empty when they are equal.
inline std::string difference(std::span<const std::uint8_t> expected,
                              std::span<const std::uint8_t> got) {
    if (expected.size() != got.size())
        return "sizes differ: " + std::to_string(expected.size()) + " and " +
               std::to_string(got.size());
    if (expected.empty() || std::memcmp(expected.data(), got.data(), got.size()) == 0) return {};
    const auto at = std::ranges::mismatch(expected, got).in1 - expected.begin();
    return "byte " + std::to_string(at) + " of " + std::to_string(expected.size()) + " is " +
           std::to_string(got[static_cast<std::size_t>(at)]) + ", should be " +
           std::to_string(expected[static_cast<std::size_t>(at)]);
}

}  // namespace dael::test
