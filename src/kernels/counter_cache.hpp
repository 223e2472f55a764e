// SPDX-License-Identifier: Apache-2.0
// Counter caching: the first two rounds of CTR for five lookups a group of 256 counters, instead of
// 32 a block.
//
// In 256 consecutive counters only byte 15 changes (words n0 n1 n2 are the nonce, word 3 the
// counter).
//   After round 1 only column 0 depends on byte 15; columns 1, 2, 3 depend on bytes 14, 13, 12.
//   After round 2 every column is (something of byte 15) ^ (something of byte 14) ^ (something of
//   bytes 13, 12).
// So the state after round 2 is  low[byte 15] ^ middle[byte 14] ^ high[bytes 13, 12].  A lane keeps
// `low` in registers for the values of byte 15 that it serves, for the whole message; `high`
// changes every 65,536 blocks; `middle` takes five lookups a group. That leaves 129 lookups a block
// of AES-128's 160.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/rounds.hpp>

namespace dael::kernels {

template <int kTables, class Keys = RoundKeys>
class CounterCache {
  public:
    using LaneTables = Tables<kTables, false>;

    // `counter` is any counter block of the message; only its first 12 bytes are used, which must
    // be the same in every block processed.
    DAEL_HD CounterCache(const LaneTables& tables, const Keys& keys, const Words4& counter)
        : tables_(tables), keys_(keys) {
        const std::uint32_t n0 = counter.x ^ keys.w[0], n1 = counter.y ^ keys.w[1],
                            n2 = counter.z ^ keys.w[2];
        const std::uint32_t* k = keys.w + 4;
        // Round 1 without the terms of word 3: byte 3 goes to column 0, 2 to 1, 1 to 2, 0 to 3.
        round1_[0] = xor3(term<0>(n0), term<1>(n1), term<2>(n2)) ^ k[0];
        round1_[1] = xor3(term<0>(n1), term<1>(n2), term<3>(n0)) ^ k[1];
        round1_[2] = xor3(term<0>(n2), term<2>(n0), term<3>(n1)) ^ k[2];
        round1_[3] = xor3(term<1>(n0), term<2>(n1), term<3>(n2)) ^ k[3];
    }

    // What byte 15 = `low_byte` contributes to the state after round 2: column 0 after round 1 goes
    // to columns 0, 3, 2, 1 through T0, T1, T2, T3 (ShiftRows).
    DAEL_HD Words4 low(std::uint32_t low_byte) const {
        const std::uint32_t c = round1_[0] ^ term<3>(low_byte << 24 ^ keys_.w[3]);
        return {term<0>(c), term<3>(c), term<2>(c), term<1>(c)};
    }

    // What bytes 12 and 13 contribute, with round key 2: `counter_low` is the counter's low 32
    // bits.
    DAEL_HD Words4 high(std::uint32_t counter_low) const {
        const std::uint32_t s3 = byte_swap(counter_low) ^ keys_.w[3];
        const std::uint32_t c2 = round1_[2] ^ term<1>(s3), c3 = round1_[3] ^ term<0>(s3);
        const std::uint32_t* k = keys_.w + 8;
        return {xor3(term<2>(c2), term<3>(c3), k[0]), xor3(term<1>(c2), term<2>(c3), k[1]),
                xor3(term<0>(c2), term<1>(c3), k[2]), xor3(term<0>(c3), term<3>(c2), k[3])};
    }

    // What byte 14 contributes.
    DAEL_HD Words4 middle(std::uint32_t counter_low) const {
        const std::uint32_t s3 = byte_swap(counter_low) ^ keys_.w[3];
        const std::uint32_t c1 = round1_[1] ^ term<2>(s3);
        return {term<1>(c1), term<0>(c1), term<3>(c1), term<2>(c1)};
    }

  private:
    template <int k>
    DAEL_HD std::uint32_t term(std::uint32_t word) const {
        return tables_.template term<k>(word);
    }

    const LaneTables& tables_;
    const Keys& keys_;
    std::uint32_t round1_[4];
};

// The same for short messages: a lane goes through some of a message's counters, and keeps what 256
// of them share for as long as it stays among these.
template <int kTables, class Keys = RoundKeys>
class CounterWalk {
  public:
    // `start` as for CounterCache.
    DAEL_HD CounterWalk(const Tables<kTables, false>& tables, const Keys& keys, const Words4& start)
        : cache_(tables, keys, start) {}

    // The state after round 2 of the counter with these low 32 bits.
    DAEL_HD Words4 state(std::uint32_t counter) {
        if (counter / 256 != group_) {
            group_ = counter / 256;
            shared_ = cache_.high(counter) ^ cache_.middle(counter);
        }
        return shared_ ^ cache_.low(counter % 256);
    }

  private:
    const CounterCache<kTables, Keys> cache_;
    Words4 shared_{};
    std::uint32_t group_ = ~0u;  // which is none
};

}  // namespace dael::kernels
