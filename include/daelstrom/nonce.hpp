// SPDX-License-Identifier: Apache-2.0
// Nonces that never repeat: a counter hands out each once (SP 800-38D 8.2.1). For those that count
// on a device, in the launch itself, see DeviceNonces in message.hpp.
//
// Safety: as long as the process lives; not over fork(), a copy of the process by clone() or by a
// snapshot of its machine, each of which makes a second counter that counts the same. Who seals
// under one key in several processes or machines, or again after a restart, gives each a `fixed`
// field of its own, or keeps the counter.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/gcm.hpp>

namespace dael {

// Four bytes that stay and a big-endian counter of eight. Threads: any number at once. Closing: not
// during a call. fork(): the child's counts the same numbers again; give it a `fixed` of its own.
// Cannot be copied.
class DAEL_API NonceCounter {
  public:
    // Counts from `first`, which is 0 for a new key.
    explicit NonceCounter(const std::array<std::uint8_t, 4>& fixed,
                          std::uint64_t first = 0) noexcept
        : fixed_(fixed), next_(first) {}
    NonceCounter(const NonceCounter&) = delete;
    NonceCounter& operator=(const NonceCounter&) = delete;

    // Errors: limit, when all up to 2^64 - 2 are used up; the last is kept, so that unused() never
    // wraps.
    Result<gcm::Nonce> next();
    // Fills the starts of messages for gcm or gcm_ctr with as many nonces, one after another: all
    // of them, or none and Code::limit.
    Result<> number(std::span<Message> messages);
    // The first that has not been handed out, to be kept by who goes on later.
    std::uint64_t unused() const noexcept { return next_.load(); }

  private:
    Result<std::uint64_t> take(std::uint64_t count);
    const std::array<std::uint8_t, 4> fixed_;
    std::atomic<std::uint64_t> next_;
};

}  // namespace dael
