// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/aegis.hpp"

#include <algorithm>
#include <cstring>

#include "backends/reference/aes.hpp"
#include "modes/aegis.hpp"
#include "modes/gcm.hpp"

namespace dael::reference {
namespace {

using dael::aegis::kC0, dael::aegis::kC1;

Block operator&(Block a, const Block& b) noexcept {
    for (std::size_t i = 0; i < kBlockSize; ++i) a[i] &= b[i];
    return a;
}

// "Conventions and Definitions": SubBytes, ShiftRows, MixColumns, AddRoundKey.
Block aes_round(Block in, const Block& rk) noexcept {
    sub_bytes(in);
    shift_rows(in);
    mix_columns(in);
    add_round_key(in, rk);
    return in;
}

Block block_at(const std::uint8_t* bytes) noexcept {
    Block block;
    std::memcpy(block.data(), bytes, kBlockSize);
    return block;
}

}  // namespace

Aegis::Aegis(const Cipher& cipher, std::span<const std::uint8_t> key, const Start& nonce) noexcept
    : cipher_(cipher),
      key_(key),
      d_(dael::aegis::degree(cipher.mode)),
      rate_(dael::aegis::rate(cipher.mode)) {
    restart(nonce);
}

Aegis::~Aegis() {
    wipe(v_.data(), sizeof v_);
    wipe(block_.data(), block_.size());
    wipe(stream_.data(), stream_.size());
}

void Aegis::restart(const Start& nonce) noexcept {
    block_.fill(0);
    used_ = 0;
    aad_size_ = size_ = 0;
    Block k0 = block_at(key_.data());
    if (is_256()) {
        Block k1 = block_at(key_.data() + kBlockSize);
        init_256(k0, k1, nonce.first, nonce.rest);
        wipe(k1.data(), k1.size());
    } else {
        init_128x(k0, nonce.first);
    }
    wipe(k0.data(), k0.size());
}

// "AEGIS-128X", Init(key, nonce).
void Aegis::init_128x(const Block& key, const Block& nonce) noexcept {
    Row nonce_v, key_v;
    for (std::size_t i = 0; i < d_; ++i) {
        v_[0][i] = key ^ nonce;
        v_[1][i] = kC1;
        v_[2][i] = kC0;
        v_[3][i] = kC1;
        v_[4][i] = key ^ nonce;
        v_[5][i] = key ^ kC0;
        v_[6][i] = key ^ kC1;
        v_[7][i] = key ^ kC0;
        nonce_v[i] = nonce;
        key_v[i] = key;
    }
    for (int repeat = 0; repeat < 10; ++repeat) {
        for (std::size_t i = 0; i < d_; ++i) {
            const Block ctx{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(d_ - 1)};
            v_[3][i] = v_[3][i] ^ ctx;
            v_[7][i] = v_[7][i] ^ ctx;
        }
        update_128x(nonce_v, key_v);
    }
    wipe(key_v.data(), sizeof key_v);
}

// "AEGIS-256", Init(key, nonce).
void Aegis::init_256(const Block& k0, const Block& k1, const Block& n0, const Block& n1) noexcept {
    v_[0][0] = k0 ^ n0;
    v_[1][0] = k1 ^ n1;
    v_[2][0] = kC1;
    v_[3][0] = kC0;
    v_[4][0] = k0 ^ kC0;
    v_[5][0] = k1 ^ kC1;
    for (int repeat = 0; repeat < 4; ++repeat) {
        update_256(k0);
        update_256(k1);
        update_256(k0 ^ n0);
        update_256(k1 ^ n1);
    }
}

// "AEGIS-128X", Update(M0, M1).
void Aegis::update_128x(const Row& m0, const Row& m1) noexcept {
    for (std::size_t i = 0; i < d_; ++i) {
        std::array<Block, 8> next;
        next[0] = aes_round(v_[7][i], v_[0][i] ^ m0[i]);
        next[1] = aes_round(v_[0][i], v_[1][i]);
        next[2] = aes_round(v_[1][i], v_[2][i]);
        next[3] = aes_round(v_[2][i], v_[3][i]);
        next[4] = aes_round(v_[3][i], v_[4][i] ^ m1[i]);
        next[5] = aes_round(v_[4][i], v_[5][i]);
        next[6] = aes_round(v_[5][i], v_[6][i]);
        next[7] = aes_round(v_[6][i], v_[7][i]);
        for (std::size_t j = 0; j < next.size(); ++j) v_[j][i] = next[j];
        wipe(next.data(), sizeof next);
    }
}

// "AEGIS-256", Update(M).
void Aegis::update_256(const Block& m) noexcept {
    std::array<Block, 6> next;
    next[0] = aes_round(v_[5][0], v_[0][0] ^ m);
    next[1] = aes_round(v_[0][0], v_[1][0]);
    next[2] = aes_round(v_[1][0], v_[2][0]);
    next[3] = aes_round(v_[2][0], v_[3][0]);
    next[4] = aes_round(v_[3][0], v_[4][0]);
    next[5] = aes_round(v_[4][0], v_[5][0]);
    for (std::size_t j = 0; j < next.size(); ++j) v_[j][0] = next[j];
    wipe(next.data(), sizeof next);
}

// Absorb(ai), and what Enc, Dec and DecPartial do with the plaintext.
void Aegis::absorb() noexcept {
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(used_), block_.end(), std::uint8_t{0});
    if (is_256()) {
        update_256(block_at(block_.data()));
    } else {
        Row t0, t1;
        for (std::size_t i = 0; i < d_; ++i) {
            t0[i] = block_at(block_.data() + i * kBlockSize);
            t1[i] = block_at(block_.data() + (d_ + i) * kBlockSize);
        }
        update_128x(t0, t1);
        wipe(t0.data(), sizeof t0);
        wipe(t1.data(), sizeof t1);
    }
    used_ = 0;
}

// Enc(xi), Dec(ci): z, or z0 and z1.
void Aegis::keystream() noexcept {
    for (std::size_t i = 0; i < d_; ++i) {
        const auto s = [&](std::size_t j) { return v_[j][i]; };
        const Block z0 =
            is_256() ? s(1) ^ s(4) ^ s(5) ^ (s(2) & s(3)) : s(6) ^ s(1) ^ (s(2) & s(3));
        std::memcpy(stream_.data() + i * kBlockSize, z0.data(), kBlockSize);
        if (is_256()) continue;
        const Block z1 = s(2) ^ s(5) ^ (s(6) & s(7));
        std::memcpy(stream_.data() + (d_ + i) * kBlockSize, z1.data(), kBlockSize);
    }
}

void Aegis::aad(std::span<const std::uint8_t> bytes) noexcept {
    for (const std::uint8_t byte : bytes) {
        block_[used_++] = byte;
        if (used_ == rate_) absorb();
    }
    aad_size_ += bytes.size();
}

void Aegis::update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept {
    if (size != 0 && size_ == 0 && used_ != 0) absorb();  // the AAD ends here
    for (std::size_t i = 0; i < size; ++i, ++size_) {
        if (used_ == 0) keystream();
        const std::uint8_t byte = in[i], other = byte ^ stream_[used_];
        block_[used_++] = cipher_.direction == Direction::encrypt ? byte : other;
        if (out) out[i] = other;
        if (used_ == rate_) absorb();
    }
}

// Finalize(ad_len_bits, msg_len_bits).
core::Tag Aegis::finish() noexcept {
    if (used_ != 0) absorb();
    const Block u = dael::aegis::lengths(aad_size_, size_);
    Row t;
    for (std::size_t i = 0; i < d_; ++i) t[i] = v_[is_256() ? 3 : 2][i] ^ u;
    for (int repeat = 0; repeat < 7; ++repeat) {
        if (is_256())
            update_256(t[0]);
        else
            update_128x(t, t);
    }
    wipe(t.data(), sizeof t);
    // The XOR of S0 to S6, or of S0 to S3 and of S4 to S7; of AEGIS-256 of S0 to S5, or of S0 to S2
    // and of S3 to S5: over all states.
    const auto sum = [&](std::size_t from, std::size_t to) {
        Block all{};
        for (std::size_t i = 0; i < d_; ++i)
            for (std::size_t j = from; j < to; ++j) all = all ^ v_[j][i];
        return all;
    };
    if (cipher_.tag == kBlockSize) return core::Tag(sum(0, is_256() ? 6 : 7));
    const std::size_t half = is_256() ? 3 : 4;
    core::Tag tag(sum(0, half));
    const Block second = sum(half, 2 * half);
    std::ranges::copy(second, tag.bytes.begin() + kBlockSize);
    tag.size = 2 * kBlockSize;
    return tag;
}

// To decrypt, the tag comes first, so that nothing of a forged message is ever written.
Code aegis(const Cipher& cipher, std::span<const std::uint8_t> key, const Message& message) {
    const Start nonce(message.start, message.start_rest);
    Aegis one(cipher, key, nonce);
    one.aad({message.aad, message.aad_size});
    if (cipher.direction == Direction::encrypt) {
        one.update(message.in, message.out, message.size);
        std::copy_n(one.finish().data(), cipher.tag, message.tag);
        return Code::ok;
    }
    one.update(message.in, nullptr, message.size);
    if (!modes::equal_tags(one.finish().data(), message.tag, cipher.tag))
        return Code::authentication;
    one.restart(nonce);
    one.aad({message.aad, message.aad_size});
    one.update(message.in, message.out, message.size);
    return Code::ok;
}

}  // namespace dael::reference
