// SPDX-License-Identifier: Apache-2.0
// What GCM means (NIST SP 800-38D), apart from any backend: which messages it takes, how an IV
// becomes the first counter block, and how tags are compared.
#pragma once

#include <algorithm>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/modes.hpp>

#include "core/backend.hpp"
#include "core/ghash_math.hpp"
#include "modes/counter.hpp"

namespace dael::modes {

// Whether GCM takes the message; `keys` is how many keys there are to choose from.
// Errors: invalid_argument (null pointers, no such key, a size that no tag has), iv_size (none),
// overlap (of the output with a part of the input, the AAD or the tag), limit.
Result<> check(const core::GcmSegment& segment, std::size_t keys);

// The same without the reason, and without the cost of a Result for each of many short messages.
bool takes(const core::GcmSegment& segment, std::size_t keys) noexcept;

// For every check of an index: invalid_argument.
Error no_such_key(std::size_t key, std::size_t keys);

// The same two for counter mode alone, a message without a tag: tag and tag_size do not count.
// Errors: invalid_argument (AAD among them), overlap, limit.
Result<> check_ctr(const core::GcmSegment& segment, std::size_t keys);
bool takes_ctr(const core::GcmSegment& segment, std::size_t keys) noexcept;

// What check() looks at by itself, for callers that learn of it piece by piece.
Result<> check_tag_size(std::size_t size);
Result<> check_iv_size(std::size_t size);
Result<> check_data_size(std::uint64_t size);
Result<> check_aad_size(std::uint64_t size);
// Whether `in` and `out` of one size are the same memory or apart, and not null.
Result<> check_data(const std::uint8_t* in, const std::uint8_t* out, std::size_t size);

// A message of a batch as a backend takes it. It refers to the message, whose nonce it points to.
inline core::GcmSegment to_segment(const GcmMessage& message, std::size_t tag_size) noexcept {
    return {message.in,           message.out, message.size, message.aad, message.aad_size,
            message.nonce.data(), kNonceSize,  message.tag,  tag_size,    message.key};
}

// The first counter block of counter mode alone: the nonce, then a 32-bit counter of 1.
inline Block first_counter(const GcmMessage& message) noexcept {
    Block counter{};
    std::ranges::copy(message.nonce, counter.begin());
    counter.back() = 1;
    return counter;
}

// The pre-counter block J0 (7.1, step 2). `h` is the hash subkey, the cipher of a block of zeros.
Block initial_counter(core::FieldElement h, std::span<const std::uint8_t> iv) noexcept;

// The one IV of 16 bytes that initial_counter turns into `j0`, for libraries that take no long IVs.
// (A hash subkey of zero would have none; no AES key is known to have that, and one in 2^128 may.)
Block iv_for_counter(core::FieldElement h, const Block& j0) noexcept;

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
