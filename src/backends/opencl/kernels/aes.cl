// SPDX-License-Identifier: Apache-2.0
// AES on one work-item, in OpenCL C 1.2. The maths is that of include/daelstrom/device/detail,
// written again because OpenCL C has no templates; tests hold the two together.
//
// The host defines, when it builds a program:
//   DAEL_ROUNDS   10, 12 or 14
//   DAEL_INVERSE  1 for the inverse cipher (FIPS 197 5.3.5), 0 for the cipher
//   DAEL_TEAMS    teams of a work-group
//   DAEL_UNROLL   how many rounds make the body of the loop over rounds
//   DAEL_TABLES   what lies in local memory:
//       4, 2   128 or 64 KiB: T-tables T0 to T3, or T0 and T1 and a rotation
//       1      32 KiB: T0 and rotations
//       0      8 KiB: the S-box, MixColumns computed
//      -1      nothing: all is computed
//   DAEL_KEYED    1 where round keys lie in device memory, 2 where in local memory; otherwise 0, or
//                 not defined
//   DAEL_KEYSTREAM  1 where there is no input, and the keystream itself is wanted (counter modes)
// Whatever lies there has 32 copies, and a work-item only ever reads the one in its own bank: a
// lookup takes the same time whatever the data (SIDE-CHANNELS.md).
//
// Helpers are `static inline`: of C99's `inline` alone no body is left for a call that a compiler
// does not inline, and AMD's is one that does not inline all.
//
// A team is 32 work-items with local ids 0 to 31 in dimension 0, its lanes; dimension 1 counts
// teams. So a lane's number is an id, which no compiler needs to mask: that is one instruction less
// in every lookup.

typedef struct {
    uint w[60];  // in memory order, as the host's key schedule has them
} RoundKeys;

enum { kLanes = 32 };
#define DAEL_KERNEL __kernel __attribute__((reqd_work_group_size(32, DAEL_TEAMS, 1))) void

// Arithmetic in GF(2^8) on every byte of a word (FIPS 197 4.2), without tables.

static inline uint xtime_each(uint x) {
    return ((x & 0x7f7f7f7fu) << 1) ^ ((x >> 7 & 0x01010101u) * 0x1bu);
}

static inline uint multiply_each(uint a, uint b) {
    uint product = 0;
    for (int bit = 0; bit < 8; ++bit) {
        product ^= a & ((b >> bit & 0x01010101u) * 0xffu);
        a = xtime_each(a);
    }
    return product;
}

// A linear map: the sum of the images of x's bits.
#define MAP_BITS(x, p0, p1, p2, p3, p4, p5, p6, p7)                      \
    (((x)&0x01010101u) * (p0) ^ ((x) >> 1 & 0x01010101u) * (p1) ^        \
     ((x) >> 2 & 0x01010101u) * (p2) ^ ((x) >> 3 & 0x01010101u) * (p3) ^ \
     ((x) >> 4 & 0x01010101u) * (p4) ^ ((x) >> 5 & 0x01010101u) * (p5) ^ \
     ((x) >> 6 & 0x01010101u) * (p6) ^ ((x) >> 7 & 0x01010101u) * (p7))

// x^254: the inverse of x, and 0 for 0. Squaring once, twice, four times is linear; bit i is
// {02}^i.
static inline uint inverse_each(uint x) {
    const uint x2 = MAP_BITS(x, 0x01u, 0x04u, 0x10u, 0x40u, 0x1bu, 0x6cu, 0xabu, 0x9au);
    const uint x3 = multiply_each(x2, x);
    const uint x12 = MAP_BITS(x3, 0x01u, 0x10u, 0x1bu, 0xabu, 0x5eu, 0x97u, 0xb3u, 0xc5u);
    const uint x15 = multiply_each(x12, x3);
    const uint x240 = MAP_BITS(x15, 0x01u, 0x5eu, 0xe4u, 0xe8u, 0x4du, 0x91u, 0x1du, 0x6cu);
    return multiply_each(multiply_each(x240, x12), x2);
}

static inline uint rotate_each(uint x, uint n) {
    const uint low = (0xffu << n & 0xffu) * 0x01010101u;
    return (x << n & low) | (x >> (8 - n) & ~low);
}

// SubBytes, or its inverse (FIPS 197 5.1.1, 5.3.2).
static inline uint sub_each(uint x) {
#if DAEL_INVERSE
    return inverse_each(rotate_each(x, 1) ^ rotate_each(x, 3) ^ rotate_each(x, 6) ^ 0x05050505u);
#else
    const uint i = inverse_each(x);
    return i ^ rotate_each(i, 1) ^ rotate_each(i, 2) ^ rotate_each(i, 3) ^ rotate_each(i, 4) ^
           0x63636363u;
#endif
}

// MixColumns, or its inverse, on one column with row 0 in the lowest byte (FIPS 197 5.1.3, 5.3.3).
static inline uint mix_column(uint a) {
#if DAEL_INVERSE
    const uint a2 = xtime_each(a), a4 = xtime_each(a2), a8 = xtime_each(a4);
    return (a8 ^ a4 ^ a2) ^ rotate(a8 ^ a2 ^ a, 24u) ^ rotate(a8 ^ a4 ^ a, 16u) ^
           rotate(a8 ^ a, 8u);
#else
    const uint below = rotate(a, 24u);
    return xtime_each(a) ^ xtime_each(below) ^ below ^ rotate(a, 16u) ^ rotate(a, 8u);
#endif
}

// Rows 0 to 3 of columns a to d.
static inline uint gather_rows(uint a, uint b, uint c, uint d) {
    return (a & 0xffu) | (b & 0xff00u) | (c & 0xff0000u) | (d & 0xff000000u);
}

// The tables: an image in local memory, made of rows of 32 copies of one word. With 4 and 2
// T-tables a row of the even table is followed by the same row of the odd one. The S-box by itself
// has four entries to a word.

#define DAEL_IMAGE_ROWS (DAEL_TABLES > 0 ? 256 * DAEL_TABLES : 64)
#define DAEL_IMAGE_WORDS (kLanes * DAEL_IMAGE_ROWS)

// For a kernel to begin with: declares `tables` and fills it. Every work-item must come by.
#if DAEL_TABLES >= 0
#define DAEL_FILL_TABLES(tables)               \
    __local uint dael_image[DAEL_IMAGE_WORDS]; \
    fill_tables(dael_image);                   \
    barrier(CLK_LOCAL_MEM_FENCE);              \
    const Tables tables = {(__local const uchar*)dael_image, (uint)get_local_id(0) * 4}
#else
#define DAEL_FILL_TABLES(tables) const Tables tables = {0, 0}
#endif

typedef struct {
    __local const uchar* image;
    uint lane4;  // this work-item's copy, in bytes
} Tables;

// The row of T0 for `x`.
#define DAEL_T0_ROW(x) (DAEL_TABLES == 1 ? (x) : 2 * (x))

// Each entry is computed once, by one item; then every lane takes its copy.
static inline void fill_tables(__local uint* image) {
    const uint lane = (uint)get_local_id(0), team = (uint)get_local_id(1);
    for (uint x = team * kLanes + lane; x < 256; x += DAEL_TEAMS * kLanes) {
#if DAEL_TABLES > 0
        image[DAEL_T0_ROW(x) * kLanes] = mix_column(sub_each(x) & 0xffu);
#else
        if (x < 64) image[x * kLanes] = sub_each(4 * x * 0x01010101u + 0x03020100u);
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint row = team; row < DAEL_IMAGE_ROWS; row += DAEL_TEAMS) {
#if DAEL_TABLES > 1
        const uint source = DAEL_T0_ROW(row % 512 / 2);
        const uint turn = 16 * (row / 512) + 8 * (row & 1);
#else
        const uint source = row, turn = 0;
#endif
        const uint word = rotate(image[source * kLanes], turn);
        if (lane != 0 || row != source) image[row * kLanes + lane] = word;
    }
}

// For tests: with DAEL_BANK there are zeros in all banks but the one that many beside the lane's.
static inline uint load_local(const Tables* t, uint address) {
    const uint word = *(__local const uint*)(t->image + address);
#ifdef DAEL_BANK
    return address / 4 % kLanes == (get_local_id(0) + DAEL_BANK) % kLanes ? word : 0;
#else
    return word;
#endif
}

#if DAEL_TABLES <= 0
// SubBytes on the four bytes of a word.
static inline uint substitute(const Tables* t, uint x) {
#if DAEL_TABLES < 0
    return sub_each(x);
#else
    uint y = 0;
    for (int k = 0; k < 4; ++k) {
        const uint byte = x >> 8 * k & 0xffu;
        const uint word = load_local(t, (byte >> 2) * 128 + t->lane4);
        y |= (word >> 8 * (byte & 3) & 0xffu) << 8 * k;
    }
    return y;
#endif
}
#endif

#if DAEL_TABLES > 0
// Byte k of `word` through T-table `table`, which must be there.
static inline uint lookup(const Tables* t, uint word, int k, int table) {
#if DAEL_TABLES == 1
    const uint row = (k == 0 ? word << 7 : word >> (8 * k - 7)) & 0x7f80u;
    return load_local(t, row | t->lane4);
#else
    const uint row = (k == 0 ? word << 8 : word >> (8 * k - 8)) & 0xff00u;
    return load_local(t, (row | t->lane4) + table / 2 * 65536 + table % 2 * 128);
#endif
}
#endif

// One term of a column: byte k of `word` through T-table k.
static inline uint term(const Tables* t, uint word, int k) {
#if DAEL_TABLES > 0
    return rotate(lookup(t, word, k, k % DAEL_TABLES), (uint)(k / DAEL_TABLES * DAEL_TABLES * 8));
#else
    return rotate(mix_column(substitute(t, word >> 8 * k & 0xffu) & 0xffu), 8u * k);
#endif
}

// One column of a round: rows 0 to 3 of columns a to d through SubBytes and MixColumns, and the
// round key.
static inline uint column(const Tables* t, uint a, uint b, uint c, uint d, uint key) {
#if DAEL_TABLES > 0
    return term(t, a, 0) ^ term(t, b, 1) ^ term(t, c, 2) ^ term(t, d, 3) ^ key;
#else
    return mix_column(substitute(t, gather_rows(a, b, c, d))) ^ key;
#endif
}

#if DAEL_TABLES > 0 && DAEL_INVERSE
// A T0 entry of the inverse cipher is {0e}, {09}, {0d}, {0b} times S^-1(x), whose sum is {01} times
// S^-1(x): no table of its own is needed. Puts it into every byte.
static inline uint sum_bytes(uint entry) {
    const uint pairs = entry ^ rotate(entry, 16u);
    return pairs ^ rotate(pairs, 8u);
}
#endif

// The same in the last round, without MixColumns.
static inline uint last_column(const Tables* t, uint a, uint b, uint c, uint d, uint key) {
#if DAEL_TABLES <= 0
    return substitute(t, gather_rows(a, b, c, d)) ^ key;
#elif DAEL_INVERSE
    return gather_rows(sum_bytes(lookup(t, a, 0, 0)), sum_bytes(lookup(t, b, 1, 0)),
                       sum_bytes(lookup(t, c, 2, 0)), sum_bytes(lookup(t, d, 3, 0))) ^
           key;
#else
    // Bytes 1 and 2 of a T0 entry are S(x).
    return gather_rows(lookup(t, a, 0, 0) >> 8, lookup(t, b, 1, 0), lookup(t, c, 2, 0),
                       lookup(t, d, 3, 0) << 8) ^
           key;
#endif
}

static inline uint4 one_round(const Tables* t, uint4 s, uint4 key) {
#if DAEL_INVERSE  // InvShiftRows: row i comes from column j - i (FIPS 197 5.3.1)
    return (uint4)(column(t, s.x, s.w, s.z, s.y, key.x), column(t, s.y, s.x, s.w, s.z, key.y),
                   column(t, s.z, s.y, s.x, s.w, key.z), column(t, s.w, s.z, s.y, s.x, key.w));
#else  // ShiftRows: row i comes from column j + i (FIPS 197 5.1.2)
    return (uint4)(column(t, s.x, s.y, s.z, s.w, key.x), column(t, s.y, s.z, s.w, s.x, key.y),
                   column(t, s.z, s.w, s.x, s.y, key.z), column(t, s.w, s.x, s.y, s.z, key.w));
#endif
}

static inline uint4 last_round(const Tables* t, uint4 s, uint4 key) {
#if DAEL_INVERSE
    return (uint4)(last_column(t, s.x, s.w, s.z, s.y, key.x),
                   last_column(t, s.y, s.x, s.w, s.z, key.y),
                   last_column(t, s.z, s.y, s.x, s.w, key.z),
                   last_column(t, s.w, s.z, s.y, s.x, key.w));
#else
    return (uint4)(last_column(t, s.x, s.y, s.z, s.w, key.x),
                   last_column(t, s.y, s.z, s.w, s.x, key.y),
                   last_column(t, s.z, s.w, s.x, s.y, key.z),
                   last_column(t, s.w, s.x, s.y, s.z, key.w));
#endif
}

// Round keys are a kernel's argument, or lie in device or local memory, on multiples of 16.
#if DAEL_KEYED == 2
typedef __local const uint4* KeyPointer;
#define ROUND_KEY(keys, r) (keys)[r]
#elif DAEL_KEYED
typedef __global const RoundKeys* KeyPointer;
#define ROUND_KEY(keys, r) ((__global const uint4*)(keys))[r]
#else
typedef const RoundKeys* KeyPointer;
#define ROUND_KEY(keys, r)                                                      \
    (uint4)((keys)->w[4 * (r)], (keys)->w[4 * (r) + 1], (keys)->w[4 * (r) + 2], \
            (keys)->w[4 * (r) + 3])
#endif

// Rounds `first` to the end, then XORs `mask`. `first` must be a constant.
static inline uint4 finish(const Tables* t, KeyPointer keys, uint4 s, uint4 mask, int first) {
#pragma unroll DAEL_UNROLL
    for (int r = first; r < DAEL_ROUNDS; ++r) s = one_round(t, s, ROUND_KEY(keys, r));
    return last_round(t, s, ROUND_KEY(keys, DAEL_ROUNDS) ^ mask);
}

// The block cipher, in the program's direction, ^ mask.
static inline uint4 crypt(const Tables* t, KeyPointer keys, uint4 block, uint4 mask) {
    return finish(t, keys, block ^ ROUND_KEY(keys, 0), mask, 1);
}

// Blocks in memory.

static inline uint byte_swap(uint x) {
    return as_uint(as_uchar4(x).wzyx);
}

// The 128-bit big-endian counter `start` + `index`, modulo 2^128 (SP 800-38A B.1).
static inline uint4 counter_block(uint4 start, ulong index) {
    const ulong low = (ulong)byte_swap(start.z) << 32 | byte_swap(start.w);
    const ulong high = (ulong)byte_swap(start.x) << 32 | byte_swap(start.y);
    const ulong sum = low + index;
    const ulong carried = high + (sum < low ? 1 : 0);
    return (uint4)(byte_swap((uint)(carried >> 32)), byte_swap((uint)carried),
                   byte_swap((uint)(sum >> 32)), byte_swap((uint)sum));
}

// Bytes `from` to `to` (0 to 16) of the block at `at`; the others are zero and not touched.
static inline uint4 load_part(__global const uchar* base, long at, int from, int to) {
    uint words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int b = 0; b < 16; ++b)
        if (from <= b && b < to) words[b / 4] |= (uint)base[at + b] << 8 * (b % 4);
    return (uint4)(words[0], words[1], words[2], words[3]);
}
static inline void store_part(__global uchar* base, long at, int from, int to, uint4 v) {
    const uint words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int b = 0; b < 16; ++b)
        if (from <= b && b < to) base[at + b] = (uchar)(words[b / 4] >> 8 * (b % 4));
}
// A whole block at a multiple of 16.
static inline uint4 load_block(__global const uchar* base, ulong at) {
    return *(__global const uint4*)(base + at);
}
static inline void store_block(__global uchar* base, ulong at, uint4 v) {
    *(__global uint4*)(base + at) = v;
}
