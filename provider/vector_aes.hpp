// SPDX-License-Identifier: Apache-2.0
// AES of small and middling messages on the calling thread, by AVX-512 with VAES: nothing is
// allocated, made ready or asked of anybody, so that a message of 16 bytes under a new key is no
// slower than by the default provider's code. The engine, whose code is quicker from some KiB on,
// takes what is worth a call of it.
//
// Constant time: no branch and no address depends on anything but sizes. A schedule is used by any
// number of threads at once. Sizes are in bytes; in place, or input and output apart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "basis.hpp"

namespace dael::provider {

inline constexpr std::size_t kBlock = 16;

// Whether this processor, and its system, have what the code here needs. Nothing else here may be
// called where not.
bool vector_units() noexcept;

// Round keys of one direction: as FIPS 197 5.2 has them, or those of the equivalent inverse cipher
// (5.3.5). Not initialised; a secret, which its owner wipes. Of no alignment beyond its members':
// it lies in memory of OPENSSL_malloc(), and a program's allocator may align to 8 bytes.
struct Schedule {
    unsigned char keys[15 * kBlock];
    int rounds;
};

// `size` is 16, 24 or 32; `inverse` what wants_inverse() says.
void expand(Schedule& to, const unsigned char* key, std::size_t size, bool inverse) noexcept;

// By keys that are not the inverse cipher's.
void encrypt_block(const Schedule& keys, const unsigned char* in, unsigned char* out) noexcept;

// A mode in one direction under keys of one size, chosen once. `keys` are the schedule's.
//   ECB      whole blocks; `iv` is not looked at
//   CBC      whole blocks; `iv` becomes the last block of ciphertext (SP 800-38A 6.2)
//   CFB      any size; `iv` becomes the last whole block of ciphertext (6.3, segments of 128 bits)
//   CTR      any size; `iv`, a counter of 128 bits, counts on by whole blocks (6.5)
using Code = void (*)(const unsigned char* keys, unsigned char* iv, const unsigned char* in,
                      unsigned char* out, std::size_t size) noexcept;
Code code_for(Kind kind, bool encrypts, int rounds) noexcept;
// ECB's and CBC's decryption.
constexpr bool wants_inverse(Kind kind, bool encrypts) noexcept {
    return !encrypts && (kind == Kind::ecb || kind == Kind::cbc);
}

// Big-endian, of 128 bits.
void count_on(unsigned char* counter, std::uint64_t blocks) noexcept;

}  // namespace dael::provider
