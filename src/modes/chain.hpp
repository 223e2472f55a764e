// SPDX-License-Identifier: Apache-2.0
// Carries a message from piece to piece, in modes that do not authenticate. Every piece but the
// last is a multiple of the mode's unit, less the skip that the first one had.
//     chain.next(in, out, size) -> the message to run;   chain.done(): after it has run.
// Pieces may be processed in place; `in` and `out` must still be there at done().
#pragma once

#include <daelstrom/message.hpp>

namespace dael::modes {

class Chain {
  public:
    Chain(const Cipher& cipher, const Block& start, std::uint8_t skip = 0) noexcept;
    Chain(const Chain&) = default;
    Chain& operator=(const Chain&) = default;
    ~Chain();  // wipes: in OFB the state is keystream, and the last block of input is plaintext
    Message next(const std::uint8_t* in, std::uint8_t* out, std::uint64_t size) noexcept;
    void done() noexcept;

  private:
    Cipher cipher_;
    Message current_;     // start and skip are the state; the rest is the piece being processed
    Block last_input_{};  // the last whole block of input, which in-place work overwrites
};

}  // namespace dael::modes
