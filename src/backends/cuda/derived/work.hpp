// SPDX-License-Identifier: Apache-2.0
// What kernels of XAES-256-GCM and AES-GCM-SIV are told. Each message's keys are derived where it
// is sealed or opened, from the schedule that a set has on the device.
#pragma once

#include <daelstrom/gcm_siv.hpp>

#include "backends/cuda/gcm/work.hpp"
#include "kernels/derived_keys.hpp"

namespace dael::cuda {

// Messages that a warp takes at once, a quad of its lanes to each.
inline constexpr std::uint32_t kDerivedMessages = 8;

// A batch. All pointers are to device memory, or, of a list that travels with its launch, into the
// kernel's parameters.
struct DerivedBatch {
    const Message* messages;
    const std::uint32_t* number;  // how many there are, at most `count`; null: `count`
    const std::uint32_t* order;   // which message comes when; null: as they are listed
    const GcmKey* keys;           // of which the round keys are read
    std::uint32_t* results;       // a Code each; null: nobody asks
    unsigned long long* ended;    // as GcmTeamWork's
    std::uint64_t longest;        // bytes of data and AAD that a message may have; 0: any
    std::uint64_t most_short;     // bytes of data and AAD that a warp's quad takes
    std::uint32_t count;          // of `order`, where there is one
    std::uint32_t key_count;
    std::uint32_t reset;  // as GcmBatch's
    std::uint32_t unused;
};

// Messages whose list travels as a kernel's parameter.
struct DerivedLaunch {
    DerivedBatch batch;
    std::uint32_t aad_words;  // of the list's own AAD; messages' pointers are offsets into it then
    std::uint32_t unused;
    Message messages[kMaxLaunched];
    std::uint32_t aad[kMaxLaunchedAad / 4];
};

DAEL_HD bool is_long(const DerivedBatch& batch, const Message& m) {
    return m.size > batch.most_short || m.aad_size > batch.most_short - m.size;
}

// As GCM's: lists made by kernels have been checked by nobody.
template <bool kSiv>
DAEL_HD Code validity(const DerivedBatch& batch, const Message& m) {
    if (m.key >= batch.key_count) return Code::invalid_argument;
    if (batch.longest != 0 && (m.size > batch.longest || m.aad_size > batch.longest - m.size))
        return Code::limit;
    if (m.size > (kSiv ? gcm_siv::kMaxData : gcm::kMaxData) ||
        m.aad_size > (kSiv ? gcm_siv::kMaxAad : gcm::kMaxAad))
        return Code::limit;
    if (m.skip != 0 || !can_lie_at(m.in, m.size) || !can_lie_at(m.out, m.size) ||
        !can_lie_at(m.aad, m.aad_size) || !can_lie_at(m.tag, 16))
        return Code::invalid_argument;
    return Code::ok;
}

DAEL_HD Words4 rest_of(const Message& m) {
    const auto* w = reinterpret_cast<const std::uint32_t*>(&m.start_rest);
    return {w[0], w[1], w[2], w[3]};
}

}  // namespace dael::cuda
