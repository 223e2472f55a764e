// SPDX-License-Identifier: Apache-2.0
// What kernels of AEGIS (RFC 10032) are told: batches whose messages a warp takes several of at a
// time, each by 1 to 32 of its lanes.
#pragma once

#include <daelstrom/aegis.hpp>
#include <daelstrom/device/detail/aegis.hpp>

#include "backends/cuda/gcm/work.hpp"

namespace dael::cuda {

// A batch of AEGIS. All pointers are to device memory, or, of a list that travels with its launch,
// into the kernel's parameters.
struct AegisBatch {
    const Message* messages;
    const std::uint32_t* number;  // how many there are, at most `count`; null: `count`
    const std::uint32_t*
        order;                  // which message comes when, or kNoMessage; null: as they are listed
    const GcmKey* keys;         // of which the first round keys are the key itself
    std::uint32_t* results;     // a Code each; null: nobody asks
    unsigned long long* ended;  // as GcmTeamWork's
    std::uint64_t longest;      // bytes of data and AAD that a message may have; 0: any
    std::uint32_t count;
    std::uint32_t key_count;
    std::uint32_t tag_size;  // 16 or 32
    std::uint32_t unused;
};

// What has a list in device memory ordered (order.cuh) for a batch that takes `order` then, in
// which there are places for `turns` groups of messages for every warp.
struct AegisOrdering {
    const Message* messages;
    const std::uint32_t* number;  // as AegisBatch's
    std::uint32_t* order;
    std::uint32_t count;
    std::uint32_t step;      // bytes that a message takes at a time
    std::uint32_t together;  // messages of a group
    std::uint32_t warps;     // of a thread block
    std::uint32_t turns;
    std::uint32_t unused;
};

// Messages whose list travels as a kernel's parameter.
struct AegisLaunch {
    AegisBatch batch;
    std::uint32_t aad_words;  // of the list's own AAD; messages' pointers are offsets into it then
    std::uint32_t unused;
    Message messages[kMaxLaunched];
    std::uint32_t aad[kMaxLaunchedAad / 4];
};

// As GCM's: lists made by kernels have been checked by nobody. Of a message, or what has been read
// of one.
template <class Entry>
DAEL_HD Code validity(const AegisBatch& batch, const Entry& m) {
    if (m.key >= batch.key_count) return Code::invalid_argument;
    if (batch.longest != 0 && (m.size > batch.longest || m.aad_size > batch.longest - m.size))
        return Code::limit;
    if (m.size > aegis::kMaxData || m.aad_size > aegis::kMaxAad) return Code::limit;
    if (m.skip != 0 || !can_lie_at(m.in, m.size) || !can_lie_at(m.out, m.size) ||
        !can_lie_at(m.aad, m.aad_size) || !can_lie_at(m.tag, batch.tag_size))
        return Code::invalid_argument;
    return Code::ok;
}

}  // namespace dael::cuda
