// SPDX-License-Identifier: Apache-2.0
// PKCS#7 padding (RFC 5652 6.3) to the AES block, 1 to 16 bytes, each their count: for ECB and CBC,
// which take whole blocks.
//
// Safety: where an attacker can see whether padding was right, CBC without authentication gives the
// plaintext away, however the padding is checked.
#pragma once

#include <cstddef>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/cipher.hpp>
#include <daelstrom/error.hpp>

namespace dael {

// Bytes that padding adds to `size` bytes: 1 to 16.
constexpr std::size_t padding_for(std::size_t size) noexcept {
    return kBlockSize - size % kBlockSize;
}

// The last block of a padded message: `tail` is its last size % 16 bytes.
DAEL_API Block pad(std::span<const std::uint8_t> tail) noexcept;

// How many of the 16 bytes of a decrypted last block are data. Looks at every byte whatever it
// finds, without a branch on data before the one verdict; every fault is the same
// Code::bad_padding. This hides where the fault is, not that there is one: unauthenticated CBC
// remains open to padding oracles wherever an attacker can see that decryption failed.
DAEL_API Result<std::size_t> unpad(const Block& last) noexcept;

}  // namespace dael
