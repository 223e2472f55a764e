// SPDX-License-Identifier: Apache-2.0
// What GCM means (NIST SP 800-38D) that several backends need: how an IV becomes the first counter
// block and back, counting, and how tags are compared.
#pragma once

#include <algorithm>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>

#include "core/key_schedule.hpp"
#include "modes/counter.hpp"
#include "modes/ghash.hpp"

namespace dael::modes {

// One block, by slow and constant-time steps.
Block encrypt_block(const core::KeySchedule& key, Block block) noexcept;

// The hash subkey H: the cipher of a block of zeros (7.1, step 1), by slow and constant-time steps.
Element hash_subkey(const core::KeySchedule& key) noexcept;

// The pre-counter block J0 of an IV of any length from 1 byte (7.1, step 2).
Block pre_counter(const Element& h, std::span<const std::uint8_t> iv) noexcept;

// Whether J0 is that of a nonce of 12 bytes, which are its first; if not, it is of another IV.
constexpr bool is_of_nonce(const Block& j0) noexcept {
    return (j0[12] | j0[13] | j0[14] | (j0[15] ^ 1)) == 0;
}

// The one IV of 16 bytes that pre_counter() turns into `j0`, for libraries that take IVs alone.
// (A hash subkey of zero would have none; no AES key is known to have that, and one in 2^128 may.)
Block iv_for(const Element& h, const Block& j0) noexcept;

// Counter mode over the next `size` bytes of a message in pieces, of which `done` came before and
// whose next byte is in the block of `counter`; both go on. Calls run(at, size, skip) for each
// stretch in which the counter's low 32 bits do not wrap (inc32, 6.2): from byte `at` of the piece
// on, which is byte `skip` of the counter's block.
template <class Run>
Result<> in_stretches(Block& counter, std::uint64_t& done, std::size_t size, Run run) {
    for (std::size_t at = 0; at < size;) {
        const auto skip = static_cast<std::uint8_t>(done % kBlockSize);
        const std::uint64_t room = blocks_before_wrap32(counter) * kBlockSize - skip;
        const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(size - at, room));
        DAEL_TRY(run(at, here, skip));
        counter = counter_add32(counter, static_cast<std::uint32_t>((skip + here) / kBlockSize));
        done += here;
        at += here;
    }
    return {};
}

// The lengths block of 6.4 and 7.1 step 5: both in bits.
Block lengths_block(std::uint64_t aad_size, std::uint64_t size) noexcept;

// Whether two tags are the same. Its time depends on the size alone.
bool equal_tags(const std::uint8_t* a, const std::uint8_t* b, std::size_t size) noexcept;

}  // namespace dael::modes
