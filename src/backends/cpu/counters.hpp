// SPDX-License-Identifier: Apache-2.0
// Counter mode on AES-NI, of little at a time: what packets need that have too little keystream.
// The library has counter mode in jobs only, which cost more than a packet does.
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/cipher.hpp>

namespace dael::cpu::counters {

// The cipher of `blocks` counters of 128 bits from `counter` on.
void keystream(const std::uint8_t* round_keys, int rounds, const Block& counter, std::uint8_t* out,
               std::size_t blocks) noexcept;
void exclusive_or(std::uint8_t* out, const std::uint8_t* in, const std::uint8_t* keystream,
                  std::size_t size) noexcept;

}  // namespace dael::cpu::counters
