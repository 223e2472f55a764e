// SPDX-License-Identifier: Apache-2.0
// Key fingerprints (prints): what a process remembers of its SAs' keys, in all tables, so that no
// key sends twice from the same number on, and a receiver that comes back does not accept again
// what came before. Of a key with its salt a keyed hash of 64 bits is kept, under a secret of the
// process: that two keys have the same one, and that the second is refused for it, happens once in
// 2^64 / n times after n keys.
//
// Threads: any. fork(): a child has what its parent knew then, and each its own from there on.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/keystream.hpp>

namespace dael::keystream {

// Never 0. `spi` is of a receiver of ESP, whose packets say it, and 0 of a sender.
Result<std::uint64_t> print_of(const Key& key, const std::array<std::uint8_t, 4>& salt,
                               std::uint32_t spi = 0);

// For an SA that is to send, from number 1 on, or from where a state says. Refused: a key that
// another SA has, or has sent with; but not where that one's export said the same state, once, and
// its numbers mean the same counters: `base` is the first one in layout stream, else 0.
using Uint128 = unsigned __int128;
Result<> claim_sending(std::uint64_t print, const SaState* from, Uint128 base);
// The SA is gone. A key under which nothing was sent, nor promised, may be taken again.
void release_sending(std::uint64_t print, bool sent) noexcept;
// `owner` gives its state away, or lets it be known; refused if somebody has taken over before.
// `again`: it did so before.
Result<> export_sending(std::uint64_t print, const SaState& state, std::uint64_t owner, bool again,
                        Uint128 base);

// Of a receiver with a window.
struct Received {
    std::uint64_t top = 0;       // the highest number that was accepted
    std::uint64_t accepted = 0;  // packets
};
// Its key is in use, until release_receiving(). Says what was accepted under it before. At least
// the last kReceived keys are remembered. Refused: a key that another receiver has, of which nobody
// knows what it is accepting, unless `beside`.
inline constexpr std::size_t kReceived = std::size_t{1} << 17;
Result<Received> claim_receiving(std::uint64_t print, bool beside);
void release_receiving(std::uint64_t print, const Received& received) noexcept;

}  // namespace dael::keystream
