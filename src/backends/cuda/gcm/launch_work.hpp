// SPDX-License-Identifier: Apache-2.0
// A few messages whose list travels as a kernel's parameter: what the host tells the kernels.
//
// Those of at most kTeamMessage bytes, data and AAD together, are done by one kernel, a thread
// block to a message (kernels/gcm_team.hpp). Where there is a longer one, the list is first put
// into device memory, units of work and all, and those that are long (gcm/work.hpp) go the way of
// a batch's.
#pragma once

#include "backends/cuda/gcm/work.hpp"

namespace dael::cuda {

// Up to here one thread block is sooner done than the launches of the long way: on an H200 a
// message of 4 KiB takes 7.2 us against 26, one of 64 KiB 43 against 51, one of 128 KiB 81
// against 52.
inline constexpr std::uint64_t kTeamMessage = std::uint64_t{64} << 10;
// AAD that travels with a single message, at the smaller kernel's parameters.
inline constexpr std::uint32_t kSmallAad = 256;

template <std::uint32_t kMax>
struct GcmList {
    static constexpr std::uint32_t kAad = kMax == 1 ? kSmallAad : kMaxLaunchedAad;
    Message messages[kMax];
    std::uint32_t aad[kAad / 4];  // those of the host's, one after another
};

template <std::uint32_t kMax>
struct GcmTeamWork {
    const GcmKey* keys;
    std::uint32_t* results;  // a Code each; null: nobody asks
    // Counts the thread blocks that have done with the keys; null: nobody asks.
    unsigned long long* ended;
    std::uint32_t ours;      // bit i: message i is this launch's; its key has the kernel's rounds
    std::uint32_t tag_size;  // as GcmBatch
    std::uint32_t opening;
    std::uint32_t aad_words;  // of the list's own AAD; messages' pointers are offsets into it then
    GcmList<kMax> list;
};

// Where a list and what goes with it lie in device memory; the partials come after it.
struct alignas(16) GcmPlace {
    Message messages[kMaxLaunched];
    std::uint32_t aad[kMaxLaunchedAad / 4];
    std::uint64_t aad_starts[kMaxLaunched + 1], data_starts[kMaxLaunched + 1],
        group_starts[kMaxLaunched + 1];
    std::uint32_t results[kMaxLaunched];
};
static_assert(sizeof(GcmPlace) % 16 == 0);

// To be copied there: the first `count` messages and the AAD's first words, and all that follows.
struct GcmPlaceWork {
    GcmPlace* to;
    std::uint32_t count, aad_words;
    GcmPlace from;
};

}  // namespace dael::cuda
