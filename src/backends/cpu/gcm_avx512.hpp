// SPDX-License-Identifier: Apache-2.0
// AES-GCM by AVX-512, AES and GHASH stitched: in one pass over the data (SP 800-38D 6.4, 6.5, 7.1).
// For processors with AVX-512, VAES and VPCLMULQDQ (Level::avx512, vectorised()).
//
// libipsec-mb has GCM too. This takes less time, at every length, and shares nothing between
// threads, where each of the library's calls stores to one variable of the process.
//
// Constant time: no branch and no address depends on anything but sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <daelstrom/message.hpp>

#include "backends/cpu/xor_ghash.hpp"
#include "core/key_schedule.hpp"

namespace dael::cpu::gcm_avx512 {

// How far a message has come: what the next block has for a counter, and what was hashed. Of a new
// one, the counter after J0 and zeros. Secret once there is data.
struct State {
    Block counter{};
    Block hashed{};
};

// The powers of the hash subkey up to H^`most` at least, 1 to kPowers; others become zeros.
void expand(const core::KeySchedule& key, Powers& powers, std::size_t most) noexcept;

// AAD, or ciphertext that goes elsewhere: any size, filled up with zeros to whole blocks, on top of
// what `hashed` has.
void hash(const Powers& powers, Block& hashed, const std::uint8_t* bytes,
          std::size_t size) noexcept;

// `size` bytes of data, of which all but a message's last ones are whole blocks. `out` is `in`, or
// apart from it. Decrypting, what is in `out` is verified by nobody yet.
void crypt(Direction direction, const core::KeySchedule& key, const Powers& powers, State& state,
           const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept;

// `count` bytes within one block, from byte `at` of it on; at + count is at most 16. Their
// ciphertext goes to its place in `ciphertext` too.
void crypt_within(Direction direction, const Block& keystream, Block& ciphertext, std::size_t at,
                  const std::uint8_t* in, std::uint8_t* out, std::size_t count) noexcept;

// The keystream of the next counter, which is used up.
void next_keystream(const core::KeySchedule& key, State& state, Block& keystream) noexcept;

// The whole tag; `size` and `aad_size` are the message's, in bytes.
Block tag(const core::KeySchedule& key, const Powers& powers, const State& state, const Block& j0,
          std::uint64_t aad_size, std::uint64_t size) noexcept;

// A whole message: the same in one call, with fewer reductions. Writes `tag_size` bytes of its tag,
// 1 to 16. Of `powers` as many are used as the message, AAD and lengths have blocks.
void message(Direction direction, const core::KeySchedule& key, const Powers& powers,
             const Block& j0, const std::uint8_t* aad, std::size_t aad_size, const std::uint8_t* in,
             std::uint8_t* out, std::size_t size, std::uint8_t* tag, std::size_t tag_size) noexcept;

// Messages of one key, one after another: E(J0) of four short ones at once. Tags go to `tags`, as
// many; null: to where each message has its own, `tag_size` bytes.
void messages(Direction direction, const core::KeySchedule& key, const Powers& powers,
              std::span<const Message> messages, Block* tags, std::size_t tag_size) noexcept;

}  // namespace dael::cpu::gcm_avx512
