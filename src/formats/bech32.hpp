// SPDX-License-Identifier: Apache-2.0
// Bech32 (BIP 173) of a known number of bytes and without its limit on length, as age writes its
// keys. No branch and no index depends on which
// letter or byte stands where, since half of them are secret.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <daelstrom/memory.hpp>

namespace dael::formats {

// What stands in front, in small letters and without the "1" behind it, and how the whole is
// written.
struct Bech32 {
    std::string_view prefix;
    bool capitals;
    std::size_t bytes;

    constexpr std::size_t digits() const { return (8 * bytes + 4) / 5; }  // of 5 bits
    constexpr std::size_t size() const { return prefix.size() + 1 + digits() + 6; }
};
inline constexpr Bech32 kRecipientText{"age", false, 32};
inline constexpr Bech32 kIdentityText{"age-secret-key-", true, 32};
// Those of age 1.3, post-quantum.
inline constexpr Bech32 kHybridRecipientText{"age1pq", false, 1216};
inline constexpr Bech32 kHybridIdentityText{"age-secret-key-pq-", true, 32};

// Whether `text` begins as this kind does: its prefix, and the "1".
bool begins_as(const Bech32& kind, HostIn text) noexcept;
// `text` has size() characters, and `bytes` as many as its kind; a mix of capitals and small
// letters, or the other kind, is refused. False: some character or the checksum is wrong, and
// `bytes` is zeros.
bool decode_bech32(const Bech32& kind, HostIn text, HostOut bytes) noexcept;
void encode_bech32(const Bech32& kind, HostIn bytes, HostOut text) noexcept;

}  // namespace dael::formats
