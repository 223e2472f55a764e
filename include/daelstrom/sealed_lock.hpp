// SPDX-License-Identifier: Apache-2.0
// A passphrase in the place of a sealed stream's key (sealed.hpp): a Lock stands in front of the
// stream and holds the stream's own random key, encrypted under scrypt (RFC 7914) of the
// passphrase. docs/format.md has its bytes.
//
// Safety: a lock is as hard to guess as its passphrase, times what a guess costs. What a lock says
// that opening costs is not verified before that has been spent: set a limit. Calls block until
// done and may run on any number of threads at once, each with the memory that it costs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/sealed_keys.hpp>

namespace dael::sealed {

inline constexpr std::size_t kLockSize = 108;
using Lock = std::array<std::uint8_t, kLockSize>;

// What a guess costs, and so what opening does: scrypt with N = 2^log2_n, r and p takes 128 N r
// bytes of memory, and N r p steps of about a third of a microsecond each, on one core.
struct Cost {
    int log2_n = 17, r = 8, p = 1;  // 128 MiB, some tenths of a second
};
// The most that a lock may ask for: 1 GiB of memory and 2^25 steps, more than ten seconds.
inline constexpr Cost kMostCost{20, 8, 4};
// What is spent on a lock where nothing else is said, since whoever made it says what it costs, and
// that shows to be vain only when all of it has been spent: 256 MiB and 2^21 steps, less than a
// second.
inline constexpr Cost kUsualLimit{18, 8, 1};

struct Locked {
    Lock lock;
    Keys keys;  // for this one stream
};

// Whether a stream begins as a Lock does; 8 bytes tell.
DAEL_API bool is_lock(HostIn start) noexcept;
// What opening a lock costs; nothing of it has been verified yet.
DAEL_API Cost cost_of(const Lock& lock) noexcept;
// A new random key, and its lock. Errors: invalid_argument for a cost or a segment that cannot be.
DAEL_API Result<Locked> make_lock(Engine& engine, HostIn passphrase,
                                  std::uint32_t segment = kLargeSegment, Cost cost = {});
// A lock that takes more memory or more steps than `most` does is refused before anything is
// computed. Errors: authentication for another passphrase or an altered lock; bad_format; limit for
// its cost.
DAEL_API Result<Keys> unlock(Engine& engine, HostIn passphrase, const Lock& lock,
                             Cost most = kUsualLimit);
// The same key under another passphrase: what stands behind the lock stays as it is. Whoever has
// the old lock and the old passphrase can still open it. `most`: of the old one.
DAEL_API Result<Lock> relock(Engine& engine, HostIn old_passphrase, HostIn new_passphrase,
                             const Lock& lock, Cost cost = {}, Cost most = kUsualLimit);

}  // namespace dael::sealed
