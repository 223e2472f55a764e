// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/xts.hpp"

#include <algorithm>

#include "backends/reference/aes.hpp"
#include "modes/traits.hpp"

namespace dael::reference {
namespace {

// The two keys of 5.1, and which way the data goes.
struct Ciphers {
    const ExpandedKey &key1, &key2;
    Direction direction;
};

// 5.2: multiplication by the primitive element alpha, a shift by one bit from the first byte on;
// what falls out returns as 135 = {x^7 + x^2 + x + 1}. Without a branch on it.
void multiply_by_alpha(Block& t) noexcept {
    unsigned carry = 0;
    for (auto& byte : t) {
        const unsigned doubled = static_cast<unsigned>(byte) << 1 | carry;
        byte = static_cast<std::uint8_t>(doubled);
        carry = doubled >> 8;
    }
    t[0] = static_cast<std::uint8_t>(t[0] ^ (135 * carry));
}

// 5.3.1 and 5.4.1, steps 2 to 4: one block under the tweak T.
Block block(const Ciphers& ciphers, Block b, const Block& t) {
    for (std::size_t i = 0; i < kBlockSize; ++i) b[i] ^= t[i];
    b = ciphers.direction == Direction::encrypt ? cipher(b, ciphers.key1)
                                                : inv_cipher(b, ciphers.key1);
    for (std::size_t i = 0; i < kBlockSize; ++i) b[i] ^= t[i];
    return b;
}

// 5.3.2 and 5.4.2: one sector, `size` bytes, 16 or more.
void sector(const Ciphers& ciphers, const std::uint8_t* in, std::uint8_t* out, std::size_t size,
            const Block& number) {
    const auto load = [](const std::uint8_t* from) {
        Block b;
        std::copy_n(from, kBlockSize, b.begin());
        return b;
    };
    const std::size_t tail = size % kBlockSize;
    // The last whole block goes by itself when a partial one follows.
    const std::size_t plain = size - tail - (tail != 0 ? kBlockSize : 0);
    Block t = cipher(number, ciphers.key2);
    for (std::size_t at = 0; at < plain; at += kBlockSize) {
        std::ranges::copy(block(ciphers, load(in + at), t), out + at);
        multiply_by_alpha(t);
    }
    if (tail != 0) {
        // Ciphertext stealing: the partial block takes the head of the block before, which is
        // enciphered again with the partial block in that head's place. Deciphering meets the two
        // in the opposite order, and so uses their tweaks in the opposite order.
        Block next = t;
        multiply_by_alpha(next);
        if (ciphers.direction == Direction::decrypt) std::swap(t, next);
        Block stolen = block(ciphers, load(in + plain), t), joined = stolen;
        std::copy_n(in + plain + kBlockSize, tail, joined.begin());
        std::copy_n(stolen.begin(), tail, out + plain + kBlockSize);
        std::ranges::copy(block(ciphers, joined, next), out + plain);
        wipe(stolen.data(), stolen.size());
        wipe(joined.data(), joined.size());
        wipe(next.data(), next.size());
    }
    wipe(t.data(), t.size());
}

}  // namespace

void xts(const Cipher& cipher, const ExpandedKey& key1, const ExpandedKey& key2,
         const Message& message) {
    const Ciphers ciphers{key1, key2, cipher.direction};
    Block number = message.start;
    for (std::uint64_t at = 0; at < message.size; at += cipher.sector) {
        sector(ciphers, message.in + at, message.out + at,
               std::min<std::uint64_t>(cipher.sector, message.size - at), number);
        number = modes::sector_add(number, 1);
    }
}

}  // namespace dael::reference
