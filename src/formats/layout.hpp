// SPDX-License-Identifier: Apache-2.0
// Where things lie in a sealed stream: arithmetic alone, without a key. In it,
//
//   stream   = header | segment 0 | segment 1 | ... | the last segment
//   segment  = ciphertext | tag of 16 bytes
//
// and the header and segment 0 together are as long as every later segment but the last, so that
// segment i ends at (i + 1) * segment.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>

namespace dael::formats {

inline constexpr std::size_t kPrefixSize = 7;   // bytes of a nonce that a stream has for itself
inline constexpr std::size_t kMostHeader = 40;  // bytes of the longest header
inline constexpr std::uint64_t kMostSegments = std::uint64_t{1} << 32;
inline constexpr std::uint32_t kMostSegment = 64
                                              << 20;  // bytes: what an opener must find memory for

constexpr std::size_t header_size(std::size_t derived_key) noexcept {
    return 1 + derived_key + kPrefixSize;
}

struct Layout {
    std::uint64_t segment = 0;  // bytes of a whole segment, with its tag
    std::uint64_t header = 0;   // bytes

    // Bytes of plaintext in a whole segment, and where segment i's plaintext begins.
    std::uint64_t room() const noexcept { return segment - kTagSize; }
    std::uint64_t room(std::uint64_t i) const noexcept { return room() - (i == 0 ? header : 0); }
    std::uint64_t plain_at(std::uint64_t i) const noexcept {
        return i == 0 ? 0 : i * room() - header;
    }
    // The segment that holds byte `at` of the plaintext.
    std::uint64_t segment_of(std::uint64_t at) const noexcept { return (at + header) / room(); }

    // A plaintext's segments: one at least; the last one holds a byte unless it is the only one.
    std::uint64_t segments(std::uint64_t plain) const noexcept {
        return plain == 0 ? 1 : segment_of(plain - 1) + 1;
    }
    Result<std::uint64_t> sealed_size(std::uint64_t plain) const {
        // The first comparison keeps the arithmetic of the second within 64 bits.
        if (plain > kMostSegments * room() || segments(plain) > kMostSegments) return too_long();
        return header + plain + segments(plain) * kTagSize;
    }
    // What a stream of `sealed` bytes holds, if it is one.
    Result<std::uint64_t> plain_size(std::uint64_t sealed) const {
        if (sealed > kMostSegments * segment) return too_long();
        const std::uint64_t count = sealed / segment + (sealed % segment != 0);
        const std::uint64_t front = count <= 1 ? header : (count - 1) * segment;
        // Only the first segment may be empty: nobody begins another without a byte for it.
        if (sealed < front + kTagSize + (count > 1 ? 1 : 0))
            return Error{Code::bad_format,
                         "the data is cut off or added to: no segment ends after " +
                             std::to_string(sealed) + " bytes"};
        return sealed - header - count * kTagSize;
    }

    Error too_long() const {
        return {Code::limit, "sealed data is at most 2^32 segments of " + std::to_string(segment) +
                                 " bytes; use larger segments, or several files"};
    }
};

using Prefix = std::array<std::uint8_t, kPrefixSize>;

// Segment i's nonce. The last one's differs, so that an end in the wrong place is seen.
inline std::array<std::uint8_t, kNonceSize> nonce_of(const Prefix& prefix, std::uint64_t i,
                                                     bool last) noexcept {
    std::array<std::uint8_t, kNonceSize> nonce{};
    std::ranges::copy(prefix, nonce.begin());
    for (std::size_t byte = 0; byte < 4; ++byte)
        nonce[kPrefixSize + byte] = static_cast<std::uint8_t>(i >> (24 - 8 * byte));
    nonce[kNonceSize - 1] = last ? 1 : 0;
    return nonce;
}

}  // namespace dael::formats
