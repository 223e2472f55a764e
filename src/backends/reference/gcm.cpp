// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/gcm.hpp"

#include <algorithm>

#include <daelstrom/key.hpp>

#include "modes/gcm.hpp"

namespace dael::reference {
namespace {

// 6.3, algorithm 1: X * Y.
Bits product(Bits x, Bits y) noexcept {
    constexpr Bits kR = Bits{0xe1} << 120;
    Bits z = 0, v = y;
    for (int i = 0; i < 128; ++i) {
        const Bits x_i = x >> (127 - i) & 1, lsb_1 = v & 1;
        z ^= v & (0 - x_i);
        v = (v >> 1) ^ (kR & (0 - lsb_1));
    }
    return z;
}

Bits to_bits(const Block& block) noexcept {
    Bits bits = 0;
    for (const std::uint8_t byte : block) bits = bits << 8 | byte;
    return bits;
}
Block to_block(Bits bits) noexcept {
    Block block;
    for (std::size_t i = kBlockSize; i-- > 0; bits >>= 8)
        block[i] = static_cast<std::uint8_t>(bits);
    return block;
}

Block lengths(std::uint64_t first, std::uint64_t second) noexcept {
    return to_block(Bits{8 * first} << 64 | 8 * second);
}

// 6.2: the standard incrementing function, s = 32.
Bits inc_32(Bits x) noexcept {
    const Bits low = (x + 1) & 0xffffffff;
    return (x >> 32 << 32) | low;
}

}  // namespace

void Ghash::end_block() noexcept {
    y_ = product(y_ ^ to_bits(block_), h_);
    block_.fill(0);
    used_ = 0;
}

Gcm::Gcm(Direction direction, const ExpandedKey& w, const Block& j0) noexcept
    : direction_(direction), w_(&w), h_(to_bits(cipher(Block{}, w))), ghash_(h_) {
    restart(j0);
}

Gcm::~Gcm() {
    for (Bits* bits : {&h_, &j0_, &counter_}) wipe(bits, sizeof *bits);
    wipe(keystream_.data(), keystream_.size());
}

void Gcm::restart(const Start& j0) noexcept {
    j0_ = counter_ = to_bits(j0.first);
    ghash_ = Ghash(h_);
    aad_size_ = size_ = 0;
}

void Gcm::aad(std::span<const std::uint8_t> bytes) noexcept {
    ghash_.add(bytes);
    aad_size_ += bytes.size();
}

// GCTR (6.5) from inc_32(J0) on, and GHASH of the ciphertext.
void Gcm::update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) {
    if (size != 0 && size_ == 0) ghash_.pad();  // the AAD ends here
    for (std::size_t i = 0; i < size; ++i, ++size_) {
        if (size_ % kBlockSize == 0) {
            counter_ = inc_32(counter_);
            keystream_ = cipher(to_block(counter_), *w_);
        }
        const std::uint8_t byte = in[i];
        out[i] = byte ^ keystream_[size_ % kBlockSize];
        ghash_.add(direction_ == Direction::encrypt ? out[i] : byte);
    }
}

void Gcm::authenticate(std::span<const std::uint8_t> ciphertext) noexcept {
    ghash_.pad();
    ghash_.add(ciphertext);
    size_ += ciphertext.size();
}

Block Gcm::finish() {
    ghash_.pad();
    ghash_.add(lengths(aad_size_, size_));
    return to_block(ghash_.value() ^ to_bits(cipher(to_block(j0_), *w_)));
}

// To decrypt, the tag comes first, so that nothing of a forged message is ever plaintext.
Code gcm(const Cipher& cipher, const ExpandedKey& w, const Message& message) {
    Gcm one(cipher.direction, w, message.start);
    one.aad({message.aad, message.aad_size});
    if (cipher.direction == Direction::encrypt) {
        one.update(message.in, message.out, message.size);
        std::copy_n(one.finish().begin(), cipher.tag, message.tag);
        return Code::ok;
    }
    one.authenticate({message.in, message.size});
    if (!modes::equal_tags(one.finish().data(), message.tag, cipher.tag))
        return Code::authentication;
    one.restart(message.start);
    one.update(message.in, message.out, message.size);
    return Code::ok;
}

Block gmac(const ExpandedKey& w, const Block& j0, std::span<const std::uint8_t> aad) {
    Gcm one(Direction::encrypt, w, j0);
    one.aad(aad);
    return one.finish();
}

}  // namespace dael::reference
