// SPDX-License-Identifier: Apache-2.0
// From what a caller asks (a Message) to what backends take (Segments): checks, offsets, and
// cutting one long segment into pieces that can be processed apart, by other threads or chunk by
// chunk.
#pragma once

#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/keyed.hpp>
#include <daelstrom/modes.hpp>

#include "core/backend.hpp"

namespace dael::modes {

// Whether the mode takes the message.
// Errors: ragged_length (ECB, CBC), overlap, invalid_argument (null data, an offset outside CTR),
// limit (CTR: offset + size passes 2^64 bytes).
Result<> check(Mode mode, const Message& message);

// The same for a message of a batch with `keys` keys. Errors: as above.
Result<> check(Mode mode, const KeyedMessage& message, std::size_t keys);

// For calls that are given both sizes.
Error sizes_differ(std::size_t in, std::size_t out);

// A message that check() has passed, its offset folded into the counter.
core::Segment to_segment(const Message& message) noexcept;

inline core::Segment to_segment(const KeyedMessage& message) noexcept {
    return {message.in, message.out, message.size, message.iv, 0};
}

// The part of `segment` from byte `begin` (a multiple of 16 less segment.skip, or 0) on, `size`
// bytes. For CBC and CFB decryption the bytes before `begin` must still be ciphertext. Only for
// modes that are parallel within a message.
core::Segment slice(Mode mode, const core::Segment& segment, std::size_t begin, std::size_t size);

// All of `segment` in pieces of about `piece` bytes (a multiple of 16, not 0). Takes every piece's
// IV before anything is written, so that the pieces may be processed in place, in any order, at
// once.
std::vector<core::Segment> split(Mode mode, const core::Segment& segment, std::size_t piece);

// Carries a message from chunk to chunk, for streams. Every chunk but the last is a multiple of 16
// bytes less the skip that the first chunk had.
//     chain.begin(in, out, size) -> the segment to run;   chain.end(): after it has run.
// Chunks may be processed in place; `in` and `out` must still be there at end().
class Chain {
  public:
    Chain(Mode mode, Direction direction, const Block& iv, std::uint64_t offset = 0) noexcept;
    ~Chain();  // wipes: in OFB the state is keystream, and the last block of input is plaintext
    core::Segment begin(const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept;
    void end() noexcept;

  private:
    Mode mode_;
    Direction direction_;
    core::Segment current_;  // iv and skip are the state; the rest is the chunk being processed
    Block last_input_{};     // the last whole block of input, which in-place work overwrites
};

}  // namespace dael::modes
