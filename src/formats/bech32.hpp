// SPDX-License-Identifier: Apache-2.0
// Bech32 (BIP 173) of 32 bytes, as age writes its keys. No branch and no index depends on which
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

    constexpr std::size_t size() const { return prefix.size() + 1 + 52 + 6; }
};
inline constexpr Bech32 kRecipientText{"age", false};
inline constexpr Bech32 kIdentityText{"age-secret-key-", true};

// Whether `text` begins as this kind does: its prefix, and the "1".
bool begins_as(const Bech32& kind, HostIn text) noexcept;
// `text` has size() characters; a mix of capitals and small letters, or the other kind, is refused.
// False: some character or the checksum is wrong, and `bytes` is zeros.
bool decode_bech32(const Bech32& kind, HostIn text, std::span<std::uint8_t, 32> bytes) noexcept;
void encode_bech32(const Bech32& kind, std::span<const std::uint8_t, 32> bytes,
                   HostOut text) noexcept;

}  // namespace dael::formats
