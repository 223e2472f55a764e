// SPDX-License-Identifier: Apache-2.0
// What GCM's kernels share: messages, and GHASH's field GF(2^128) with x^128 = x^7 + x^2 + x + 1
// (SP 800-38D 6.3). The host's twins are in src/backends/opencl/gcm_work.hpp.
//
// An element is four words, of which the first one's highest bit is the coefficient of x^0: a block
// with the bytes of each word swapped.
//
// A message is hashed as one sequence of blocks: its AAD, filled up to a block, then its data. What
// H does is kept one step behind: of n blocks X[i] the sum is that of X[i] H^(n-1-i), and the tag
// multiplies it by H, adds the block of lengths, and multiplies again.

typedef struct {
    ulong in, out, aad, tag;  // bytes from the beginning of their buffers
    ulong size, aad_size;     // bytes
    uint4 counter;            // J0
    uint key;                 // its index
    uint result;              // its place among the results
    uint first, tiles;        // where the partial sums begin, and how many; `first` is its own
                              // place among the sums if there is but one
    uint skip;                // counter mode alone: bytes of the first keystream block to leave out
    uint unused[3];
} GcmItem;

// Neighbouring blocks of a message's sequence, to be hashed, or of its data, to be encrypted, by
// one team.
typedef struct {
    ulong begin;  // a block
    uint blocks;
    uint message;  // the item
    uint target;   // the place of the sum
    uint key;
} GcmTile;

typedef struct {
    uint w[60];  // as in RoundKeys
    uint rounds;
    uint unused[3];
} GcmSchedule;

enum { kPowers = 33, kSquares = 40 };
typedef struct {
    uint4 powers[kPowers];    // H^0 to H^32
    uint4 squares[kSquares];  // H^(2^j)
} GcmPowers;

// Local memory keeps what a kernel leaves in it until another one writes there, which may be
// another program's, and some GPUs let that read first. For a kernel that had there what follows
// from a key, to end with; every work-item must come by. No compiler leaves volatile stores out.
static inline void wipe_local(__local uint* words, uint count) {
    barrier(CLK_LOCAL_MEM_FENCE);
    volatile __local uint* const wiped = words;
    const uint items = (uint)(get_local_size(0) * get_local_size(1));
    for (uint i = (uint)(get_local_id(1) * get_local_size(0) + get_local_id(0)); i < count;
         i += items)
        wiped[i] = 0;
}
#define DAEL_WIPE_LOCAL(array) wipe_local((__local uint*)(array), sizeof(array) / 4)

static inline uint4 swap_words(uint4 v) {
    return (uint4)(byte_swap(v.x), byte_swap(v.y), byte_swap(v.z), byte_swap(v.w));
}

static inline ulong blocks_of(ulong size) {
    return size / 16 + (size % 16 != 0);
}

// Carry-less product of two words by ordinary multiplications: with every fourth bit alone, at most
// 8 partial products meet in one place, and their sum stays below the next bit that counts.
static inline ulong clmul32(uint x, uint y) {
    const uint m = 0x11111111u;
    const ulong x0 = x & m, x1 = x & m << 1, x2 = x & m << 2, x3 = x & m << 3;
    const ulong y0 = y & m, y1 = y & m << 1, y2 = y & m << 2, y3 = y & m << 3;
    const ulong w = 0x1111111111111111ul;
    return ((x0 * y0 ^ x1 * y3 ^ x2 * y2 ^ x3 * y1) & w) |
           ((x0 * y1 ^ x1 * y0 ^ x2 * y3 ^ x3 * y2) & w << 1) |
           ((x0 * y2 ^ x1 * y1 ^ x2 * y0 ^ x3 * y3) & w << 2) |
           ((x0 * y3 ^ x1 * y2 ^ x2 * y1 ^ x3 * y0) & w << 3);
}
// The same for two words each, by Karatsuba: .x is the high half.
static inline ulong2 clmul64(uint2 a, uint2 b) {
    const ulong high = clmul32(a.x, b.x), low = clmul32(a.y, b.y);
    const ulong middle = clmul32(a.x ^ a.y, b.x ^ b.y) ^ high ^ low;
    return (ulong2)(high ^ middle >> 32, low ^ middle << 32);
}

// a * b in constant time: no branch and no address depends on a value. The derivation is in
// src/kernels/gf128.hpp.
static inline uint4 gf_multiply(uint4 a, uint4 b) {
    const ulong2 high = clmul64(a.xy, b.xy), low = clmul64(a.zw, b.zw);
    const ulong2 middle = clmul64(a.xy ^ a.zw, b.xy ^ b.zw) ^ high ^ low;
    // Products come out reflected, one bit short; p3 : p2 are x^0 to x^127, p1 : p0 the rest.
    ulong p3 = high.x, p2 = high.y ^ middle.x, p1 = low.x ^ middle.y, p0 = low.y;
    p3 = p3 << 1 | p2 >> 63;
    p2 = p2 << 1 | p1 >> 63;
    p1 = p1 << 1 | p0 >> 63;
    p0 = p0 << 1;
    // The rest times 1 + x + x^2 + x^7; what falls off the end comes back in front first.
    p1 ^= p0 << 63 ^ p0 << 62 ^ p0 << 57;
    p3 ^= p1 ^ p1 >> 1 ^ p1 >> 2 ^ p1 >> 7;
    p2 ^= p0 ^ (p0 >> 1 | p1 << 63) ^ (p0 >> 2 | p1 << 62) ^ (p0 >> 7 | p1 << 57);
    return (uint4)((uint)(p3 >> 32), (uint)p3, (uint)(p2 >> 32), (uint)p2);
}

// a * x^n for n from 1 to 8. What falls off the end, n bits of x^128 and on, comes back in front.
static inline uint4 times_x(uint4 a, uint n) {
    const uint over = a.w << (32 - n);
    return (uint4)(a.x >> n ^ over ^ over >> 1 ^ over >> 2 ^ over >> 7, a.x << (32 - n) | a.y >> n,
                   a.y << (32 - n) | a.z >> n, a.z << (32 - n) | a.w >> n);
}
