// SPDX-License-Identifier: Apache-2.0
// What a call asks of a worker, the threads of the host or a device: a cipher over messages of host
// memory, under keys that are there as schedules and as the worker's own tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/backend.hpp"
#include "modes/starts.hpp"
#include "modes/traits.hpp"

namespace dael::pipeline {

// The cipher is valid and the keys are of its kind; each message is checked by whoever comes to do
// it first. One that the mode refuses is not touched, and has the reason as its code.
struct Request {
    Cipher cipher;
    core::Keys keys;
    std::span<const Message> messages;
    std::span<Code> codes;  // as many
};

// gcm_ctr differs from ctr in what it takes alone: backends get it as ctr.
inline Cipher for_backend(const Cipher& cipher) noexcept {
    Cipher as_run = cipher;
    if (cipher.mode == Mode::gcm_ctr) as_run.mode = Mode::ctr;
    return as_run;
}

// Calls visit(first, count) for each run of messages that the mode takes, among those from `begin`
// to `end`; sets their codes to ok before, and the codes of the others to why not.
template <class Visit>
Result<> for_each_valid(const Request& request, std::size_t begin, std::size_t end, Visit visit) {
    const std::size_t keys = request.keys.list.size();
    const Cipher cipher = request.cipher;  // the codes cannot be it
    for (std::size_t i = begin; i < end;) {
        const std::size_t first = i;
        for (; i < end && modes::takes(cipher, request.messages[i], keys); ++i)
            request.codes[i] = Code::ok;
        if (i != first) DAEL_TRY(visit(first, i - first));
        if (i == end) break;
        request.codes[i] = modes::check(cipher, request.messages[i], keys).code();
        ++i;
    }
    return {};
}

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

// What a look at all messages of a call tells; one pass, since a list may be larger than any cache.
struct Survey {
    std::uint64_t bytes = 0;   // of data
    std::uint64_t weight = 0;  // as weight() has it
    bool one_key = true;
    bool starts_distinct = true;
};
inline Survey survey(const Cipher& cipher, std::span<const Message> messages) noexcept {
    std::uint64_t bytes = 0, aad = 0;
    std::uint32_t other_keys = 0;
    modes::StartsInOrder starts;
    for (const Message& message : messages) {
        bytes += bounded(message.size);
        aad += bounded(message.aad_size);
        other_keys |= message.key ^ messages[0].key;
        starts.add(message);
    }
    return {bytes, bytes + (authenticates(cipher.mode) ? kSteps * messages.size() + aad : 0),
            other_keys == 0, starts.distinct()};
}

}  // namespace dael::pipeline
