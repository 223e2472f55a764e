// SPDX-License-Identifier: Apache-2.0
// What is behind daelstrom/sealed_chunks.hpp.
#pragma once

#include <sys/types.h>

#include <daelstrom/sealed_chunks.hpp>

#include "formats/segment_cipher.hpp"

struct dael::sealed::Sealer::State {
    formats::SegmentCipher cipher;
    std::uint64_t next = 0;  // segment
    pid_t process;           // whose nonces these are
    bool ended = false, failed = false;
};

struct dael::sealed::Opener::State {
    formats::SegmentCipher cipher;
};

namespace dael::formats {

// Errors: overlap.
Result<> check_apart(HostIn in, HostIn out);

}  // namespace dael::formats
