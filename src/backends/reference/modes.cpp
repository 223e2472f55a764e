// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/modes.hpp"

#include <algorithm>

#include <daelstrom/key.hpp>

namespace dael::reference {
namespace {

// The 128-bit big-endian standard incrementing function (SP 800-38A B.1), over all 16 bytes.
// Touches every byte whatever the counter is.
void increment(Block& counter) noexcept {
    unsigned carry = 1;
    for (std::size_t i = kBlockSize; i-- > 0;) {
        carry += counter[i];
        counter[i] = static_cast<std::uint8_t>(carry);
        carry >>= 8;
    }
}

// Walks over a message: input(p) and output(c) move one block, or what is left of one at the end.
class Blocks {
  public:
    explicit Blocks(const Message& message) noexcept : message_(message) {}
    bool more() const noexcept { return done_ < message_.size; }
    // The next block of input; a ragged last one is filled up with zeros, and without any input it
    // is all zeros.
    Block input() noexcept {
        size_ = std::min(kBlockSize - skip_, message_.size - done_);
        Block block{};
        if (message_.in)
            std::copy_n(message_.in + done_, size_,
                        block.begin() + static_cast<std::ptrdiff_t>(skip_));
        return block;
    }
    void output(const Block& block) noexcept {
        std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(skip_), size_,
                    message_.out + done_);
        done_ += size_;
        skip_ = 0;
    }

  private:
    const Message& message_;
    std::size_t done_ = 0, size_ = 0;
    std::size_t skip_ = message_.skip;  // CTR: bytes of the first block that lie before the message
};

void ecb_encrypt(const ExpandedKey& w, Blocks blocks, const Block&) {  // 6.1: C_j = CIPH(P_j)
    while (blocks.more()) blocks.output(cipher(blocks.input(), w));
}
void ecb_decrypt(const ExpandedKey& w, Blocks blocks, const Block&) {  // P_j = CIPH^-1(C_j)
    while (blocks.more()) blocks.output(inv_cipher(blocks.input(), w));
}

void cbc_encrypt(const ExpandedKey& w, Blocks blocks,
                 const Block& iv) {  // 6.2: C_j = CIPH(P_j ^ C_j-1)
    for (Block c = iv; blocks.more(); blocks.output(c)) c = cipher(blocks.input() ^ c, w);
}
void cbc_decrypt(const ExpandedKey& w, Blocks blocks,
                 const Block& iv) {  // P_j = CIPH^-1(C_j) ^ C_j-1
    Block previous = iv;
    while (blocks.more()) {
        const Block c = blocks.input();
        blocks.output(inv_cipher(c, w) ^ previous);
        previous = c;
    }
}

void cfb_encrypt(const ExpandedKey& w, Blocks blocks, const Block& iv) {  // 6.3, s = 128:
    for (Block c = iv; blocks.more(); blocks.output(c)) c = blocks.input() ^ cipher(c, w);
}
void cfb_decrypt(const ExpandedKey& w, Blocks blocks, const Block& iv) {
    Block previous = iv;
    while (blocks.more()) {
        const Block c = blocks.input();
        blocks.output(c ^ cipher(previous, w));
        previous = c;
    }
}

void ofb(const ExpandedKey& w, Blocks blocks, const Block& iv) {  // 6.4: O_j = CIPH(O_j-1)
    Block o = iv;
    while (blocks.more()) {
        o = cipher(o, w);
        blocks.output(blocks.input() ^ o);
    }
    wipe(o.data(), o.size());
}

void ctr(const ExpandedKey& w, Blocks blocks, const Block& iv) {  // 6.5: O_j = CIPH(T_j)
    for (Block t = iv; blocks.more(); increment(t)) blocks.output(blocks.input() ^ cipher(t, w));
}

using ModeFunction = void (*)(const ExpandedKey&, Blocks, const Block&);
ModeFunction function_for(const Cipher& cipher) noexcept {
    const bool encrypt = cipher.direction == Direction::encrypt;
    switch (cipher.mode) {
        case Mode::ecb:
            return encrypt ? ecb_encrypt : ecb_decrypt;
        case Mode::cbc:
            return encrypt ? cbc_encrypt : cbc_decrypt;
        case Mode::cfb:
            return encrypt ? cfb_encrypt : cfb_decrypt;
        case Mode::ofb:
            return ofb;
        case Mode::ctr:
        case Mode::gcm_ctr:
            return ctr;
        default:
            break;
    }
    return nullptr;
}

}  // namespace

void run(const Cipher& cipher, const ExpandedKey& w, const Message& message) {
    function_for(cipher)(w, Blocks(message), message.start);
}

}  // namespace dael::reference
