// SPDX-License-Identifier: Apache-2.0
// Static keys of the tunnel in files of one line, in base64 as `wg genkey` and `wg pubkey` write
// them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <daelstrom/error.hpp>

#include "vpn/handshake/keys.hpp"

namespace dael::vpn {

// 44 characters, "=" last. None of it depends on what the bytes are but the answer itself.
inline constexpr std::size_t kKeyText = 44;
void encode_key(std::span<const std::uint8_t, kKeySize> key, std::span<char, kKeyText> text);
bool decode_key(std::span<const char> text, std::span<std::uint8_t, kKeySize> key);
std::string to_text(const PublicKey& key);
std::optional<PublicKey> parse_public_key(std::string_view text);

// The key of a file's first line; "-" is standard input. Warns where others may read the file.
// `what` is what messages call it. Errors: io; key_size for what is no key.
Result<SecretKey> read_key(const std::string& path, const std::string& what);

// What the thesis' init string becomes: both ends' static keys and the secret between them, by
// scrypt (RFC 7914), so that guessing takes long. Errors: io; key_size for a text below
// kLeastInit bytes, which could be guessed all the same.
inline constexpr std::size_t kLeastInit = 16;
struct InitKeys {
    SecretKey server, client, shared;
};
Result<InitKeys> keys_of_init(const std::string& path);
Result<InitKeys> keys_of_init(std::span<const std::uint8_t> text);

}  // namespace dael::vpn
