// SPDX-License-Identifier: Apache-2.0
// What a call asks of a worker, the threads of the host or a device: a cipher over messages of host
// memory, under keys that are there as schedules and as the worker's own tables.
#pragma once

#include <cstdint>
#include <span>

#include "core/backend.hpp"
#include "modes/traits.hpp"
#include "pipeline/survey.hpp"

namespace dael::pipeline {

// The cipher is valid and the keys are of its kind; each message is checked by whoever comes to do
// it first. One that the mode refuses is not touched, and has the reason as its code.
struct Request {
    Cipher cipher;
    core::KeyList keys;
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

}  // namespace dael::pipeline
