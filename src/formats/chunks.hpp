// SPDX-License-Identifier: Apache-2.0
// What is behind daelstrom/sealed_chunks.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include <daelstrom/sealed_chunks.hpp>

#include "formats/segment_cipher.hpp"

struct dael::sealed::Sealer::State {
    State(formats::SegmentCipher&& stream, std::uint32_t owner)
        : cipher(std::move(stream)), process(owner) {}

    formats::SegmentCipher cipher;
    const std::uint32_t process;  // whose nonces these are
    std::uint64_t next = 0;       // segment
    bool ended = false, failed = false;
    // Somebody seals or asks what would come next. Two at once would use the same nonces.
    std::atomic_flag busy;
};

struct dael::sealed::Opener::State {
    formats::SegmentCipher cipher;
};

namespace dael::formats {

// Errors: overlap.
Result<> check_apart(HostIn in, HostIn out);

}  // namespace dael::formats
