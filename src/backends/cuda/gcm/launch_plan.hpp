// SPDX-License-Identifier: Apache-2.0
// What the host works out of a few messages before they are launched.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "backends/cuda/gcm/launch_work.hpp"

namespace dael::cuda {

// The messages to where they travel from, and with AAD of the host's that: they then point to where
// it will lie, from `base` on. `aad` has room for it.
inline void put_list(std::span<const Message> messages, bool host_aad, const void* base,
                     Message* to, std::uint32_t* aad) {
    std::ranges::copy(messages, to);
    if (!host_aad) return;
    std::size_t at = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        Message& m = to[i];
        if (m.aad_size != 0)
            std::memcpy(reinterpret_cast<unsigned char*>(aad) + at, m.aad, m.aad_size);
        m.aad = reinterpret_cast<const std::uint8_t*>(reinterpret_cast<std::uintptr_t>(base) + at);
        at += m.aad_size;
    }
}

// Where each long message's units begin, as gcm_plan has it for lists that the host cannot see, and
// results before anybody has come to a message. The batch tells all but the list.
inline void plan_units(GcmBatch batch, GcmPlace& place) {
    batch.messages = place.messages;
    Units at{};
    for (std::uint32_t i = 0;; ++i) {
        place.aad_starts[i] = at.aad;
        place.data_starts[i] = at.data;
        place.group_starts[i] = at.groups;
        if (i == batch.count) return;
        at += units_of(batch, i);
        // Counter mode alone writes none.
        place.results[i] =
            static_cast<std::uint32_t>(batch.tag_size == 0 ? Code::ok : Code::internal);
    }
}

}  // namespace dael::cuda
