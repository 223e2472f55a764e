// SPDX-License-Identifier: Apache-2.0
// One message of GCM in parts, for several workers: parts are messages of their own, from later
// counter blocks, and of their tags comes the one tag of all.
//
// GHASH of a part's blocks is a polynomial in H (SP 800-38D 6.4), so that of two parts, A and then
// B, is X(A) H^(blocks of B) + X(B). A tag is (X + L) H + E(J0), L being the block of lengths. What
// is kept of each part is Y = X H, which its tag gives without a division: Y = tag + E(J0) + L H.
//
// Promises: nothing of what it holds that is secret outlives it. Opening hashes all of the
// ciphertext, as additional data, and decrypts nothing: that is for who knows that the tag is
// right. Not for several threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <daelstrom/message.hpp>

#include "modes/ghash.hpp"

namespace dael::pipeline {

class GcmParts {
  public:
    // The data lies where add() says, in order; of `message` all else counts.
    GcmParts(const Cipher& cipher, const Message& message);
    ~GcmParts();
    GcmParts(const GcmParts&) = delete;
    GcmParts& operator=(const GcmParts&) = delete;

    // The next part, of whole blocks but for the last.
    void add(const std::uint8_t* in, std::uint8_t* out, std::uint64_t size);
    // After the last: what is to be done. Each part is a message to be sealed in mode gcm with tags
    // of 16 bytes, which come to lie here, or are brought here from where they were made; then
    // there may be one more, the message's additional data. And blocks to be encrypted in ECB.
    std::span<Message> parts();
    std::span<std::uint8_t> tag(std::size_t part) noexcept { return tags_[part]; }
    Message blocks();
    // Once all of that is done.
    Block tag_of_all() const noexcept;

  private:
    const Cipher cipher_;
    const Message message_;
    std::uint64_t size_ = 0;
    std::vector<Message> parts_;
    std::size_t data_parts_ = 0;
    std::vector<Block> tags_, masks_;
};

}  // namespace dael::pipeline
