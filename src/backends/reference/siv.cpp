// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/siv.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/key.hpp>

#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::reference {
namespace {

// Section 3: a block as a polynomial, whose coefficient of x^i is bit i of a little-endian number.
using Polynomial = unsigned __int128;

Polynomial polynomial(const std::uint8_t* bytes) noexcept {
    return Polynomial{core::load_le<std::uint64_t>(bytes + 8)} << 64 |
           core::load_le<std::uint64_t>(bytes);
}

// Section 3: a * b * x^-128 modulo x^128 + x^127 + x^126 + x^121 + 1. A bit of `a` at a time, from
// the lowest on, and a division by x after each.
Polynomial dot(Polynomial a, Polynomial b) noexcept {
    constexpr Polynomial kHigh = Polynomial{0b11100001} << 120;  // (the modulus - 1) / x
    Polynomial sum = 0;
    for (int i = 0; i < 128; ++i) {
        sum ^= b & (0 - (a >> i & 1));
        sum = (sum >> 1) ^ (kHigh & (0 - (sum & 1)));
    }
    return sum;
}

// POLYVAL of bytes that are fed one by one.
class Polyval {
  public:
    explicit Polyval(Polynomial h) noexcept : h_(h) {}
    ~Polyval() { wipe(this, sizeof *this); }
    void add(std::uint8_t byte) noexcept {
        block_[used_++] = byte;
        if (used_ == kBlockSize) end_block();
    }
    void add(std::span<const std::uint8_t> bytes) noexcept {
        for (const std::uint8_t byte : bytes) add(byte);
    }
    void pad() noexcept {  // right_pad_to_multiple_of_16_bytes()
        if (used_ != 0) end_block();
    }
    Polynomial value() const noexcept { return s_; }

  private:
    void end_block() noexcept {
        s_ = dot(s_ ^ polynomial(block_.data()), h_);
        block_.fill(0);
        used_ = 0;
    }
    Polynomial h_, s_ = 0;
    Block block_{};
    std::size_t used_ = 0;
};

// Section 4, derive_keys(): first the message-authentication key, then the message-encryption key,
// of as many bytes as the key-generating key has.
struct SivKeys {
    SivKeys(const ExpandedKey& w, const Block& nonce) noexcept
        : key_size(w.rounds() == 14 ? 32 : 16) {
        for (std::uint8_t i = 0; i < (kBlockSize + key_size) / 8; ++i) {
            Block in{i, 0, 0, 0};
            std::copy_n(nonce.begin(), 12, in.begin() + 4);
            Block out = cipher(in, w);
            std::copy_n(out.begin(), 8, bytes.begin() + 8 * i);
            wipe(out.data(), out.size());
        }
    }
    ~SivKeys() { wipe(bytes.data(), bytes.size()); }
    Polynomial authentication() const noexcept { return polynomial(bytes.data()); }
    std::span<const std::uint8_t> encryption() const noexcept {
        return std::span(bytes).subspan(kBlockSize, key_size);
    }
    std::size_t key_size;
    std::array<std::uint8_t, 48> bytes{};
};

// AES_CTR(), section 4: calls give(i, byte of keystream) for each byte of a message.
template <class Give>
void aes_ctr(const ExpandedKey& w, const Block& tag, std::uint64_t size, Give give) {
    Block block = tag;
    block[15] |= 0x80;
    auto counter = core::load_le<std::uint32_t>(block.data());
    Block keystream{};
    const core::WipeAtEnd no_keystream(keystream);
    for (std::uint64_t i = 0; i < size; ++i) {
        if (i % kBlockSize == 0) {
            core::store_le(block.data(), counter++);  // modulo 2^32
            keystream = cipher(block, w);
        }
        give(i, keystream[i % kBlockSize]);
    }
}

// Section 4: from S_s to the tag.
Block siv_tag(Polyval& hash, const ExpandedKey& w, const Message& m) noexcept {
    hash.pad();
    Block length_block;
    core::store_le(length_block.data(), std::uint64_t{8 * m.aad_size});
    core::store_le(length_block.data() + 8, std::uint64_t{8 * m.size});
    hash.add(length_block);
    Block s_s;
    core::store_le(s_s.data(), static_cast<std::uint64_t>(hash.value()));
    core::store_le(s_s.data() + 8, static_cast<std::uint64_t>(hash.value() >> 64));
    for (std::size_t i = 0; i < 12; ++i) s_s[i] ^= m.start[i];
    s_s[15] &= 0x7f;
    const Block tag = cipher(s_s, w);
    wipe(s_s.data(), s_s.size());
    return tag;
}

}  // namespace

// To decrypt, the plaintext is hashed before any of it is written.
Code gcm_siv(const Cipher& cipher, const ExpandedKey& w, const Message& m) {
    const SivKeys keys(w, m.start);
    const ExpandedKey encryption(keys.encryption());
    Polyval hash(keys.authentication());
    hash.add({m.aad, m.aad_size});
    hash.pad();
    const auto crypt = [&](const Block& tag) {
        aes_ctr(encryption, tag, m.size,
                [&](std::uint64_t i, std::uint8_t keystream) { m.out[i] = m.in[i] ^ keystream; });
    };
    Block tag;
    if (cipher.direction == Direction::encrypt) {
        hash.add({m.in, m.size});
        tag = siv_tag(hash, encryption, m);
        crypt(tag);
        std::ranges::copy(tag, m.tag);
        return Code::ok;
    }
    std::copy_n(m.tag, tag.size(), tag.begin());
    aes_ctr(encryption, tag, m.size, [&](std::uint64_t i, std::uint8_t keystream) {
        hash.add(static_cast<std::uint8_t>(m.in[i] ^ keystream));
    });
    Block expected = siv_tag(hash, encryption, m);
    const core::WipeAtEnd no_tag(expected);
    if (!modes::equal_tags(expected.data(), tag.data(), tag.size())) return Code::authentication;
    crypt(tag);
    return Code::ok;
}

}  // namespace dael::reference
