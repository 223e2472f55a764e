// SPDX-License-Identifier: Apache-2.0
// Keysets as Tink writes them in JSON, unencrypted, with keys of the type AesGcmHkdfStreamingKey.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>

#include "formats/keys.hpp"
#include "formats/keyset_json.hpp"

namespace dael::formats {

// Every enabled key, the primary one first. Takes what Tink takes, and refuses what it refuses.
// Secrets are copied from the text once, into locked memory: the keys, and nothing else. Errors:
// bad_format, unsupported, limit, out_of_memory; no message holds anything of a key.
Result<std::vector<StreamKey>> parse_keyset(std::span<const std::uint8_t> json);

// One key of a keyset, whatever its status. Errors: as above.
Result<StreamKey> stream_key(const KeysetKey& entry);

// The type of the keys that seal streams, in full.
inline constexpr std::string_view kStreamType =
    "type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey";
// Its message, as Tink writes it. Errors: out_of_memory.
Result<SecretBytes> stream_key_message(const StreamKey& key);

}  // namespace dael::formats
