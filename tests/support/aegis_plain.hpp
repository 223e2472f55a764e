// SPDX-License-Identifier: Apache-2.0
// AEGIS by bytes, from the text of RFC 10032 and FIPS 197 and nothing of the library's: what
// kernels are held against on the host.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__)
#include <wmmintrin.h>
#endif

#include "support/bytes.hpp"

namespace dael::test::plain {

using Bits = std::array<std::uint8_t, 16>;

inline Bits operator^(Bits a, const Bits& b) {
    for (std::size_t i = 0; i < 16; ++i) a[i] ^= b[i];
    return a;
}
inline Bits operator&(Bits a, const Bits& b) {
    for (std::size_t i = 0; i < 16; ++i) a[i] &= b[i];
    return a;
}
inline std::uint8_t times(std::uint8_t a, std::uint8_t b) {  // FIPS 197 4.2
    std::uint8_t product = 0;
    for (; b != 0; b >>= 1, a = static_cast<std::uint8_t>(a << 1 ^ (a & 0x80 ? 0x1b : 0)))
        if (b & 1) product ^= a;
    return product;
}
inline const std::array<std::uint8_t, 256>& sbox() {  // FIPS 197 5.1.1
    static const auto made = [] {
        std::array<std::uint8_t, 256> box{};
        for (int x = 0; x < 256; ++x) {
            std::uint8_t inverse = 0;
            for (int y = 1; y < 256; ++y)
                if (times(static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y)) == 1)
                    inverse = static_cast<std::uint8_t>(y);
            int s = 0x63;
            for (int k = 0; k < 5; ++k) s ^= (inverse << k | inverse >> (8 - k)) & 0xff;
            box[static_cast<std::size_t>(x)] = static_cast<std::uint8_t>(s);
        }
        return box;
    }();
    return made;
}
inline Bits round_by_bytes(const Bits& in, const Bits& key) {
    const auto& box = sbox();
    const auto twice = [](unsigned a) { return a << 1 ^ (a >> 7) * 0x11b; };  // FIPS 197 4.2.1
    Bits out;
    for (std::size_t c = 0; c < 4; ++c) {
        unsigned b[4];
        for (std::size_t r = 0; r < 4; ++r) b[r] = box[in[4 * ((c + r) % 4) + r]];
        for (std::size_t r = 0; r < 4; ++r) {
            const unsigned next = b[(r + 1) % 4];
            out[4 * c + r] =
                static_cast<std::uint8_t>(twice(b[r]) ^ twice(next) ^ next ^ b[(r + 2) % 4] ^
                                          b[(r + 3) % 4] ^ key[4 * c + r]);
        }
    }
    return out;
}

// Where a CPU has an instruction for it, that, once it was held against the bytes: an oracle does
// little else, and sanitizers make bytes slow.
#if defined(__x86_64__)
__attribute__((target("aes"))) inline Bits round_by_instruction(const Bits& in, const Bits& key) {
    Bits out;
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(out.data()),
        _mm_aesenc_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in.data())),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(key.data()))));
    return out;
}
inline bool instruction_agrees() {
    if (!__builtin_cpu_supports("aes")) return false;
    for (int i = 0; i < 1024; ++i) {  // every value of a byte in every place, alike and not
        Bits in{}, key{};
        for (std::size_t k = 0; k < 16; ++k) {
            in[k] = static_cast<std::uint8_t>(i + 17 * static_cast<int>(k) * (i / 256));
            key[k] = static_cast<std::uint8_t>((i / 256) * (29 * i + static_cast<int>(k)));
        }
        if (round_by_instruction(in, key) != round_by_bytes(in, key))
            throw std::logic_error("AESENC is not FIPS 197's round");
    }
    return true;
}
inline const bool kInstructionAgrees = instruction_agrees();
inline Bits aes_round(const Bits& in, const Bits& key) {
    return kInstructionAgrees ? round_by_instruction(in, key) : round_by_bytes(in, key);
}
#else
inline Bits aes_round(const Bits& in, const Bits& key) {
    return round_by_bytes(in, key);
}
#endif

constexpr Bits kC0{0x00, 0x01, 0x01, 0x02, 0x03, 0x05, 0x08, 0x0d,
                   0x15, 0x22, 0x37, 0x59, 0x90, 0xe9, 0x79, 0x62};
constexpr Bits kC1{0xdb, 0x3d, 0x18, 0x55, 0x6d, 0xc2, 0x2f, 0xf1,
                   0x20, 0x11, 0x31, 0x42, 0x73, 0xb5, 0x28, 0xdd};

inline Bits block_of(std::span<const std::uint8_t> bytes, std::size_t at) {
    Bits block{};
    if (at < bytes.size())
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min<std::size_t>(16, bytes.size() - at), block.begin());
    return block;
}

class Aegis {
  public:
    // `degree`: states of AEGIS-128X; 0: AEGIS-256.
    Aegis(std::size_t degree, std::span<const std::uint8_t> key,
          std::span<const std::uint8_t> nonce)
        : is_256_(degree == 0), states_(std::max<std::size_t>(degree, 1)) {
        const Bits k0 = block_of(key, 0), k1 = block_of(key, 16), n0 = block_of(nonce, 0),
                   n1 = block_of(nonce, 16);
        for (std::size_t d = 0; d < states_.size(); ++d) {
            auto& s = states_[d];
            if (is_256_) {
                s = {k0 ^ n0, k1 ^ n1, kC1, kC0, k0 ^ kC0, k1 ^ kC1};
                for (int i = 0; i < 4; ++i)
                    for (const Bits& m : {k0, k1, k0 ^ n0, k1 ^ n1}) update(s, m, m);
                continue;
            }
            s = {k0 ^ n0, kC1, kC0, kC1, k0 ^ n0, k0 ^ kC0, k0 ^ kC1, k0 ^ kC0};
            Bits context{};
            context[0] = static_cast<std::uint8_t>(d);
            context[1] = static_cast<std::uint8_t>(states_.size() - 1);
            for (int i = 0; i < 10; ++i) {
                s[3] = s[3] ^ context;
                s[7] = s[7] ^ context;
                update(s, n0, k0);
            }
        }
    }
    void aad(std::span<const std::uint8_t> bytes) {
        for (std::size_t at = 0; at < bytes.size(); at += step())
            for (std::size_t d = 0; d < states_.size(); ++d)
                update(states_[d], block_of(bytes, place(at, 0, d)),
                       block_of(bytes, place(at, 1, d)));
    }
    Bytes crypt(std::span<const std::uint8_t> in, bool opens) {
        Bytes out(in.size());
        for (std::size_t at = 0; at < in.size(); at += step())
            for (std::size_t d = 0; d < states_.size(); ++d) {
                Bits taken[2];
                for (std::size_t half = 0; half < 2; ++half) {
                    const std::size_t from = place(at, half, d);
                    const Bits x = block_of(in, from), y = x ^ mask(states_[d], half);
                    const std::size_t have = from < in.size() ? in.size() - from : 0;
                    Bits cut{};
                    std::copy_n(y.begin(), std::min<std::size_t>(16, have), cut.begin());
                    if (half == 0 || !is_256_)
                        for (std::size_t i = 0; i < std::min<std::size_t>(16, have); ++i)
                            out[from + i] = cut[i];
                    taken[half] = opens ? cut : x;
                }
                update(states_[d], taken[0], taken[1]);
            }
        return out;
    }
    Bytes tag(std::uint64_t aad_size, std::uint64_t size, std::size_t tag_size) {
        Bits lengths{};
        for (std::size_t i = 0; i < 8; ++i) {
            lengths[i] = static_cast<std::uint8_t>(aad_size * 8 >> (8 * i));
            lengths[8 + i] = static_cast<std::uint8_t>(size * 8 >> (8 * i));
        }
        Bits sums[2] = {};
        const std::size_t blocks = is_256_ ? 6 : 8;
        for (auto& s : states_) {
            const Bits t = s[is_256_ ? 3 : 2] ^ lengths;
            for (int i = 0; i < 7; ++i) update(s, t, t);
            for (std::size_t i = 0; i < blocks; ++i) {
                if (tag_size == 16 && i != 7) sums[0] = sums[0] ^ s[i];
                if (tag_size == 32) sums[2 * i / blocks] = sums[2 * i / blocks] ^ s[i];
            }
        }
        Bytes made(tag_size);
        for (std::size_t i = 0; i < tag_size; ++i) made[i] = sums[i / 16][i % 16];
        return made;
    }

  private:
    std::size_t step() const { return (is_256_ ? 16 : 32) * states_.size(); }
    std::size_t place(std::size_t at, std::size_t half, std::size_t d) const {
        return at + 16 * (states_.size() * half + d);
    }
    using State = std::array<Bits, 8>;
    void update(State& s, const Bits& m0, const Bits& m1) const {
        const std::size_t blocks = is_256_ ? 6 : 8;
        State n{};
        for (std::size_t i = 0; i < blocks; ++i) {
            Bits k = s[i];
            if (i == 0) k = k ^ m0;
            if (i == 4 && !is_256_) k = k ^ m1;
            n[i] = aes_round(s[(i + blocks - 1) % blocks], k);
        }
        s = n;
    }
    Bits mask(const State& s, std::size_t half) const {
        if (is_256_) return s[1] ^ s[4] ^ s[5] ^ (s[2] & s[3]);
        return half == 0 ? s[6] ^ s[1] ^ (s[2] & s[3]) : s[2] ^ s[5] ^ (s[6] & s[7]);
    }
    const bool is_256_;
    std::vector<State> states_;
};

struct AegisSealed {
    Bytes out, tag;
};
inline AegisSealed aegis_seal(std::size_t degree, std::span<const std::uint8_t> key,
                              std::span<const std::uint8_t> nonce,
                              std::span<const std::uint8_t> aad, std::span<const std::uint8_t> in,
                              std::size_t tag_size) {
    Aegis aegis(degree, key, nonce);
    aegis.aad(aad);
    AegisSealed made{aegis.crypt(in, false), {}};
    made.tag = aegis.tag(aad.size(), in.size(), tag_size);
    return made;
}

}  // namespace dael::test::plain
