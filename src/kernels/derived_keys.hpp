// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM (C2SP) and AES-GCM-SIV (RFC 8452): what is encrypted to derive a message's keys,
// POLYVAL as GHASH, and GCM-SIV's counter, which counts in the first word of a block.
#pragma once

#include <cstdint>

#include "kernels/counter_cache.hpp"
#include "kernels/gcm_key.hpp"

namespace dael::kernels {

// CMAC's K1 of L, the cipher of zeros (SP 800-38B 6.1): twice L, as one big-endian number.
DAEL_HD Words4 cmac_subkey(const Words4& l) {
    const std::uint32_t a = byte_swap(l.x), b = byte_swap(l.y), c = byte_swap(l.z),
                        d = byte_swap(l.w);
    return {byte_swap(a << 1 | b >> 31), byte_swap(b << 1 | c >> 31), byte_swap(c << 1 | d >> 31),
            byte_swap(d << 1 ^ (0x87 & (0 - (a >> 31))))};
}
// What gives a half of XAES's derived key, number 1 or 2, of the nonce's first bytes.
DAEL_HD Words4 xaes_block(std::uint32_t number, const Words4& nonce, const Words4& k1) {
    return {0x00580000 ^ number << 8 ^ k1.x, nonce.x ^ k1.y, nonce.y ^ k1.z, nonce.z ^ k1.w};
}
// J0 of the nonce's last twelve bytes.
DAEL_HD Words4 xaes_j0(const Words4& nonce, const Words4& rest) {
    return {nonce.w, rest.x, rest.y, 0x01000000};
}

// What gives eight bytes of GCM-SIV's keys: number 0 and 1 those of H, the others the cipher's.
DAEL_HD Words4 siv_block(std::uint32_t number, const Words4& nonce) {
    return {number, nonce.x, nonce.y, nonce.z};
}
// What the tag is the cipher of.
DAEL_HD Words4 siv_tag_block(const Words4& polyval, const Words4& nonce) {
    return {polyval.x ^ nonce.x, polyval.y ^ nonce.y, polyval.z ^ nonce.z, polyval.w & 0x7fffffff};
}
// The data's first counter block.
DAEL_HD Words4 siv_counter(const Words4& tag) {
    return {tag.x, tag.y, tag.z, tag.w | 0x80000000};
}

// POLYVAL of blocks is GHASH of them reversed, under its key reversed and times x (RFC 8452,
// appendix A), and reversed once more.
DAEL_HD Words4 reversed(const Words4& v) {
    return {byte_swap(v.w), byte_swap(v.z), byte_swap(v.y), byte_swap(v.x)};
}
DAEL_HD Words4 polyval_as_ghash(const Words4& h) {
    return gf_shift(reversed(h), 1);
}
// The block of sizes: GHASH's big-endian, POLYVAL's little-endian, each as it is hashed.
DAEL_HD Words4 ghash_lengths(std::uint64_t aad_size, std::uint64_t size) {
    const std::uint64_t aad = aad_size * 8, data = size * 8;
    return {byte_swap(static_cast<std::uint32_t>(aad >> 32)),
            byte_swap(static_cast<std::uint32_t>(aad)),
            byte_swap(static_cast<std::uint32_t>(data >> 32)),
            byte_swap(static_cast<std::uint32_t>(data))};
}
DAEL_HD Words4 polyval_lengths(std::uint64_t aad_size, std::uint64_t size) {
    return ghash_lengths(size, aad_size);  // the whole block reversed
}

// CounterCache's way for a counter that is the block's first word: its lowest byte is byte 0, which
// after round 1 is column 0 alone, bytes 1, 2 and 3 are columns 3, 2 and 1. What follows is the
// same.
template <int kTables, class Keys = RoundKeys>
class SivCounterCache {
  public:
    // `counter`: any counter block of the message.
    DAEL_HD SivCounterCache(const Tables<kTables, false>& tables, const Keys& keys,
                            const Words4& counter)
        : tables_(tables), keys_(keys) {
        const std::uint32_t n1 = counter.y ^ keys.w[1], n2 = counter.z ^ keys.w[2],
                            n3 = counter.w ^ keys.w[3];
        const std::uint32_t* k = keys.w + 4;
        round1_[0] = xor3(term<1>(n1), term<2>(n2), term<3>(n3)) ^ k[0];
        round1_[1] = xor3(term<0>(n1), term<1>(n2), term<2>(n3)) ^ k[1];
        round1_[2] = xor3(term<0>(n2), term<1>(n3), term<3>(n1)) ^ k[2];
        round1_[3] = xor3(term<0>(n3), term<2>(n1), term<3>(n2)) ^ k[3];
    }

    DAEL_HD Words4 low(std::uint32_t low_byte) const {
        const std::uint32_t c = round1_[0] ^ term<0>(low_byte ^ keys_.w[0]);
        return {term<0>(c), term<3>(c), term<2>(c), term<1>(c)};
    }
    DAEL_HD Words4 middle(std::uint32_t counter) const {
        const std::uint32_t c3 = round1_[3] ^ term<1>(counter ^ keys_.w[0]);
        return {term<3>(c3), term<2>(c3), term<1>(c3), term<0>(c3)};
    }
    DAEL_HD Words4 high(std::uint32_t counter) const {
        const std::uint32_t s0 = counter ^ keys_.w[0];
        const std::uint32_t c2 = round1_[2] ^ term<2>(s0), c1 = round1_[1] ^ term<3>(s0);
        const std::uint32_t* k = keys_.w + 8;
        return {xor3(term<2>(c2), term<1>(c1), k[0]), xor3(term<1>(c2), term<0>(c1), k[1]),
                xor3(term<0>(c2), term<3>(c1), k[2]), xor3(term<3>(c2), term<2>(c1), k[3])};
    }

  private:
    template <int k>
    DAEL_HD std::uint32_t term(std::uint32_t word) const {
        return tables_.template term<k>(word);
    }

    const Tables<kTables, false>& tables_;
    const Keys& keys_;
    std::uint32_t round1_[4];
};

// A lane that goes through a message's counters: what the last one shares with the next is kept.
template <class Cache>
class CachedCounter {
  public:
    DAEL_HD explicit CachedCounter(const Cache& cache) : cache_(cache) {}
    // The state after round 2 of a counter. Lanes step by any number; by a multiple of 256 `low`
    // stays, by less than that the rest mostly does.
    DAEL_HD Words4 state(std::uint32_t counter) {
        if (counter / 256 != group_) {
            if (counter / 65536 != high_group_) {
                high_group_ = counter / 65536;
                high_ = cache_.high(counter);
            }
            group_ = counter / 256;
            shared_ = high_ ^ cache_.middle(counter);
        }
        if (counter % 256 != byte_) {
            byte_ = counter % 256;
            low_ = cache_.low(byte_);
        }
        return shared_ ^ low_;
    }

  private:
    const Cache cache_;
    Words4 high_{}, shared_{}, low_{};
    std::uint32_t group_ = ~0u, high_group_ = ~0u, byte_ = ~0u;  // which are none
};

}  // namespace dael::kernels
