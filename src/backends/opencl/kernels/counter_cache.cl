// SPDX-License-Identifier: Apache-2.0
// What consecutive counters share: of 256 in a row only byte 15 differs, so that the state after
// round 2 is  low[byte 15] ^ middle[byte 14] ^ high[bytes 12 and 13]. The derivation is in
// src/kernels/counter_cache.hpp.
//
// The host defines DAEL_HELD, how many values of `low` an item keeps, 1 to 8: a squad of
// 8 / DAEL_HELD teams shares 256 counters.

enum { kSquad = 8 / DAEL_HELD };

// The first round without the terms of word 3, by columns.
static inline uint4 cached_round1(const Tables* t, KeyPointer keys, uint4 iv) {
    const uint4 n = iv ^ ROUND_KEY(keys, 0);
    return ROUND_KEY(keys, 1) ^ (uint4)(term(t, n.x, 0) ^ term(t, n.y, 1) ^ term(t, n.z, 2),
                                        term(t, n.y, 0) ^ term(t, n.z, 1) ^ term(t, n.x, 3),
                                        term(t, n.z, 0) ^ term(t, n.x, 2) ^ term(t, n.y, 3),
                                        term(t, n.x, 1) ^ term(t, n.y, 2) ^ term(t, n.z, 3));
}
// What byte 15 contributes to the state after round 2.
static inline uint4 cached_low(const Tables* t, KeyPointer keys, uint4 round1, uint low_byte) {
    const uint c = round1.x ^ term(t, low_byte << 24 ^ keys->w[3], 3);
    return (uint4)(term(t, c, 0), term(t, c, 3), term(t, c, 2), term(t, c, 1));
}
// What bytes 12 and 13 contribute, with round key 2; `counter` is the counter's low 32 bits.
static inline uint4 cached_high(const Tables* t, KeyPointer keys, uint4 round1, uint counter) {
    const uint s = byte_swap(counter) ^ keys->w[3];
    const uint c2 = round1.z ^ term(t, s, 1), c3 = round1.w ^ term(t, s, 0);
    return ROUND_KEY(keys, 2) ^
           (uint4)(term(t, c2, 2) ^ term(t, c3, 3), term(t, c2, 1) ^ term(t, c3, 2),
                   term(t, c2, 0) ^ term(t, c3, 1), term(t, c3, 0) ^ term(t, c2, 3));
}
// What byte 14 contributes.
static inline uint4 cached_middle(const Tables* t, KeyPointer keys, uint4 round1, uint counter) {
    const uint c = round1.y ^ term(t, byte_swap(counter) ^ keys->w[3], 2);
    return (uint4)(term(t, c, 1), term(t, c, 0), term(t, c, 3), term(t, c, 2));
}
