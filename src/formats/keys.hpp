// SPDX-License-Identifier: Apache-2.0
// The keys of sealed streams, with what Tink calls their parameters.
#pragma once

#include <cstdint>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "formats/hkdf.hpp"
#include "formats/layout.hpp"
#include "formats/secret_bytes.hpp"

namespace dael::formats {

// AesGcmHkdfStreamingKey: a key, and how streams are made with it.
struct StreamKey {
    SecretBytes key;            // as long as the derived key, or longer
    std::uint32_t segment = 0;  // bytes of a ciphertext segment
    std::uint32_t derived = 0;  // bytes of the derived key: 16 or 32
    Hash hash = Hash::sha256;

    Layout layout() const noexcept { return {segment, header_size(derived)}; }
};

// Whether these numbers make sense together, by Tink's rules and our limit on memory. Errors:
// bad_format, key_size.
Result<> check(const StreamKey& key);

}  // namespace dael::formats

struct dael::sealed::Keys::State {
    std::vector<formats::StreamKey> keys;  // the first one seals
};
