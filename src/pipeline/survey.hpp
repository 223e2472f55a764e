// SPDX-License-Identifier: Apache-2.0
// One pass over all messages of a call, before any is worked: sums, whether nonces (starts) repeat,
// and what each group of neighbours weighs, so that nobody has to go through it again to share it
// out.
//
// Promises: a list of few messages is looked at on the calling thread, without allocation or lock;
// one of many on as many threads as the pool has, since that is all of a batch of short messages
// that does not get faster by more threads otherwise. It cannot fail: without memory for more, one
// thread looks at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <daelstrom/message.hpp>

namespace dael::pipeline {

class ThreadPool;

// Sizes beyond all limits are refused later, and must not overflow a sum until then.
inline std::uint64_t bounded(std::uint64_t size) noexcept {
    return std::min(size, std::uint64_t{1} << 40);
}
// What one message costs, in bytes of data: its first and last steps take about as long as these
// many in a mode that authenticates.
inline constexpr std::uint64_t kSteps = 256;
inline std::uint64_t weight(const Cipher& cipher, const Message& message) noexcept {
    return bounded(message.size) +
           (authenticates(cipher.mode) ? kSteps + bounded(message.aad_size) : 0);
}

// Neighbours in the list.
inline constexpr std::size_t kGroup = 64;
struct Group {
    std::uint64_t weight = 0;   // of its messages together
    std::uint64_t largest = 0;  // of one
};
Group look_at(const Cipher& cipher, std::span<const Message> messages) noexcept;

struct Survey {
    std::uint64_t bytes = 0;   // of data
    std::uint64_t weight = 0;  // as weight() has it
    bool one_key = true;
    bool starts_distinct = true;  // false: nobody knows
    bool shrinking = true;        // no message is longer than the one before
    // Of kGroup messages each, the last of what is left. Empty for short lists.
    std::vector<Group> groups{};
};
// By the calling thread, without groups.
Survey survey(const Cipher& cipher, std::span<const Message> messages) noexcept;
Survey survey(const Cipher& cipher, std::span<const Message> messages, ThreadPool& pool);

// Whether two messages may have the same key and the same start; modes::check_starts() names them.
// Throws std::bad_alloc.
bool starts_repeat(std::span<const Message> messages, ThreadPool& pool, bool with_rest = false);

}  // namespace dael::pipeline
