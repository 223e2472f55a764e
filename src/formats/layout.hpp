// SPDX-License-Identifier: Apache-2.0
// The numbers of sealed streams that daelstrom/sealed_chunks.hpp keeps to itself: sizes, limits and
// nonces.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <daelstrom/gcm.hpp>
#include <daelstrom/sealed_chunks.hpp>

namespace dael::formats {

using sealed::Layout;

inline constexpr std::size_t kPrefixSize = 7;  // bytes of a nonce that a stream has for itself
inline constexpr std::size_t kMaxHeader = 40;  // bytes of the longest header
inline constexpr std::uint64_t kMaxSegments = std::uint64_t{1} << 32;
using sealed::kMaxSegment;

constexpr std::size_t header_size(std::size_t derived_key) noexcept {
    return 1 + derived_key + kPrefixSize;
}

using Prefix = std::array<std::uint8_t, kPrefixSize>;

// Segment i's nonce. The last one's differs, so that an end in the wrong place is seen.
inline gcm::Nonce nonce_of(const Prefix& prefix, std::uint64_t i, bool last) noexcept {
    gcm::Nonce nonce{};
    std::ranges::copy(prefix, nonce.begin());
    for (std::size_t byte = 0; byte < 4; ++byte)
        nonce[kPrefixSize + byte] = static_cast<std::uint8_t>(i >> (24 - 8 * byte));
    nonce[gcm::kNonceSize - 1] = last ? 1 : 0;
    return nonce;
}

}  // namespace dael::formats
