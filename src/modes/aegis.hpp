// SPDX-License-Identifier: Apache-2.0
// What the AEGIS family means (RFC 10032) that several backends need: its constants and sizes, and
// one step of its states, over blocks of any kind: 16 bytes, or a vector of 2 or 4 such, each of a
// state of its own (RFC 10032, "Parallel Modes").
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/message.hpp>

namespace dael::aegis {

// "Conventions and Definitions": the Fibonacci sequence modulo 256.
inline constexpr Block kC0{0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d,
                           0x15, 0x22, 0x37, 0x59, 0x90, 0xe9, 0x79, 0x62};
inline constexpr Block kC1{0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2, 0x2f, 0xf1,
                           0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd};

inline constexpr int kBegin128 = 10;  // updates that AEGIS-128L and -128X begin with
inline constexpr int kBegin256 = 4;   // times four updates that AEGIS-256 begins with
inline constexpr int kEnd = 7;        // updates at the end of a message

// States side by side: D of "Parallel Modes".
constexpr std::size_t degree(Mode mode) noexcept {
    return mode == Mode::aegis128x4 ? 4 : mode == Mode::aegis128x2 ? 2 : 1;
}
// Bytes that an update takes: R.
constexpr std::size_t rate(Mode mode) noexcept {
    return (mode == Mode::aegis256 ? 1 : 2) * kBlockSize * degree(mode);
}

// ctx[i], of state i of `degree`.
constexpr Block context(std::size_t i, std::size_t degree) noexcept {
    return {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(degree - 1)};
}

// What all states take at the end: LE64(|ad|) || LE64(|msg|), in bits.
constexpr Block lengths(std::uint64_t aad_size, std::uint64_t size) noexcept {
    Block block{};
    for (std::size_t i = 0; i < 8; ++i) {
        block[i] = static_cast<std::uint8_t>(8 * aad_size >> 8 * i);
        block[8 + i] = static_cast<std::uint8_t>(8 * size >> 8 * i);
    }
    return block;
}

// A block type `B` has ^ and &, and aes_round(in, rk): SubBytes, ShiftRows, MixColumns and
// AddRoundKey of each of its blocks (AESENC). Each function below is "always inline" in kind: a
// template of the caller's own type, so that no two of a program's units share one.

// AEGIS-128L, -128X: S0 to S7.
template <class B>
struct State128 {
    B s[8];

    void update(const B& m0, const B& m1) noexcept {
        const B last = s[7];
        s[7] = aes_round(s[6], s[7]);
        s[6] = aes_round(s[5], s[6]);
        s[5] = aes_round(s[4], s[5]);
        s[4] = aes_round(s[3], s[4] ^ m1);
        s[3] = aes_round(s[2], s[3]);
        s[2] = aes_round(s[1], s[2]);
        s[1] = aes_round(s[0], s[1]);
        s[0] = aes_round(last, s[0] ^ m0);
    }
    B z0() const noexcept { return s[6] ^ s[1] ^ (s[2] & s[3]); }
    B z1() const noexcept { return s[2] ^ s[5] ^ (s[6] & s[7]); }

    // Init(); `all` makes a B of the same block in each state, `contexts` has ctx[i], or zeros
    // where there is one state only: a degree of 1 has none but zeros.
    template <class All>
    void begin(const Block& key, const Block& nonce, const B& contexts, All all) noexcept {
        const B k = all(key), n = all(nonce), c0 = all(kC0), c1 = all(kC1);
        s[0] = s[4] = k ^ n;
        s[1] = s[3] = c1;
        s[2] = c0;
        s[5] = s[7] = k ^ c0;
        s[6] = k ^ c1;
        for (int i = 0; i < kBegin128; ++i) {
            s[3] = s[3] ^ contexts;
            s[7] = s[7] ^ contexts;
            update(n, k);
        }
    }
    // Finalize(), but for the XOR over states: what a tag of 16 bytes is of, and the halves of one
    // of 32. `sizes` has lengths() in each state.
    void end(const B& sizes) noexcept {
        const B t = s[2] ^ sizes;
        for (int i = 0; i < kEnd; ++i) update(t, t);
    }
    B tag16() const noexcept { return s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ s[5] ^ s[6]; }
    B tag32_first() const noexcept { return s[0] ^ s[1] ^ s[2] ^ s[3]; }
    B tag32_second() const noexcept { return s[4] ^ s[5] ^ s[6] ^ s[7]; }
};

// AEGIS-256: S0 to S5.
template <class B>
struct State256 {
    B s[6];

    void update(const B& m) noexcept {
        const B last = s[5];
        s[5] = aes_round(s[4], s[5]);
        s[4] = aes_round(s[3], s[4]);
        s[3] = aes_round(s[2], s[3]);
        s[2] = aes_round(s[1], s[2]);
        s[1] = aes_round(s[0], s[1]);
        s[0] = aes_round(last, s[0] ^ m);
    }
    B z() const noexcept { return s[1] ^ s[4] ^ s[5] ^ (s[2] & s[3]); }

    template <class All>
    void begin(const Block& key0, const Block& key1, const Block& nonce0, const Block& nonce1,
               All all) noexcept {
        const B k0 = all(key0), k1 = all(key1), c0 = all(kC0), c1 = all(kC1);
        const B kn0 = k0 ^ all(nonce0), kn1 = k1 ^ all(nonce1);
        s[0] = kn0;
        s[1] = kn1;
        s[2] = c1;
        s[3] = c0;
        s[4] = k0 ^ c0;
        s[5] = k1 ^ c1;
        for (int i = 0; i < kBegin256; ++i) {
            update(k0);
            update(k1);
            update(kn0);
            update(kn1);
        }
    }
    void end(const B& sizes) noexcept {
        const B t = s[3] ^ sizes;
        for (int i = 0; i < kEnd; ++i) update(t);
    }
    B tag16() const noexcept { return s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ s[5]; }
    B tag32_first() const noexcept { return s[0] ^ s[1] ^ s[2]; }
    B tag32_second() const noexcept { return s[3] ^ s[4] ^ s[5]; }
};

}  // namespace dael::aegis
