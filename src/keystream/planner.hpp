// SPDX-License-Identifier: Apache-2.0
// A benchmark at start: whether keystream made ahead of time is worth it, measured on this machine,
// with what serves the packets, in 1024-byte packets from cache.
#pragma once

#include "core/backend.hpp"

namespace dael::keystream {

struct Measured {
    double direct_ns = 0;  // for a packet of 1024 bytes, all of it here
    double ahead_ns = 0;   // XOR and hash alone
    bool pays() const noexcept { return ahead_ns < 0.9 * direct_ns; }
};

// Takes some milliseconds. Errors: those of Backend::packets.
Result<Measured> measure(core::Backend& host);

}  // namespace dael::keystream
