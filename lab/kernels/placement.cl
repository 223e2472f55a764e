// SPDX-License-Identifier: Apache-2.0
// AES-128 encryption, one family of kernels: where tables, round keys and state lie, how many bytes
// a work-item makes, and what came later. One source for OpenCL, which compiles it for each shape,
// and for CUDA, where the definitions below are parameters of a template (placement.cu). Nobody
// should encrypt with these: all but `banks` and `none` take a time that depends on the data
// (SIDE-CHANNELS.md). What is in front of this defines:
//
//   LAB_GROUP  work-items of a work-group
//   LAB_FORM   BLOCKS (ECB), SLICED (ECB, bitsliced), COUNTERS (CTR), CACHED (CTR, with rounds 1
//              and 2 done once for what 256 counters share)
//   LAB_BYTES  bytes that a work-item makes at once: 16, 8, 4 or 1; 32 of SLICED
//   LAB_TABLES  CONSTANT, SHARED (one copy for the group), BANKS (a copy for each of 32 banks) or
//               NONE (the S-box is computed)
//   LAB_COUNT  T-tables: 4; 2 or 1 with rotations in the others' place
//   LAB_KEYS_SHARED  0: round keys in constant memory; 1: in shared
//   LAB_STATE  REGISTERS, AOS (a block's four words side by side) or SOA (a column's words of all
//              blocks side by side); those in shared memory
//   lab_table  uint[1024] in constant memory, T0 to T3
#define BLOCKS 0
#define SLICED 1
#define COUNTERS 2
#define CACHED 3
#define CONSTANT 0
#define SHARED 1
#define BANKS 2
#define NONE 3
#define REGISTERS 0
#define AOS 1
#define SOA 2

#define ROUNDS 10
#define LANES 32
#define ITEMS (LAB_BYTES < 16 ? 16 / LAB_BYTES : 1)  // that share a block
#define AT_ONCE (LAB_GROUP * LAB_BYTES / 16)         // blocks of AES that a group works on
// Words of shared memory, one after the other: tables, keys, state. Shape::local_memory() knows.
#define TABLE_WORDS \
    (LAB_TABLES == SHARED ? LAB_COUNT * 256 : LAB_TABLES == BANKS ? LAB_COUNT * 256 * LANES : 0)
#define KEY_WORDS (LAB_KEYS_SHARED ? 4 * (ROUNDS + 1) : 0)
#define STATE_WORDS (LAB_STATE == REGISTERS ? 0 : 8 * AT_ONCE)
#define ALL_WORDS (TABLE_WORDS + KEY_WORDS + STATE_WORDS)
// The constants: round keys, the first counter (most significant word first), and the round keys in
// bit planes, eight for each round. struct Constants of lab/shape.hpp.
#define START (4 * (ROUNDS + 1))
#define PLANES (START + 4)

#ifdef __OPENCL_VERSION__
#define FUNCTION
#define KERNEL __kernel __attribute__((reqd_work_group_size(LAB_GROUP, 1, 1)))
#define CONSTANTS __constant const uint* constants
#define CONSTANT_AT(i) constants[i]
#define TABLE_IN_GLOBAL lab_table
#define SHARED_WORDS(name) __local uint name[ALL_WORDS == 0 ? 1 : ALL_WORDS]
#endif

FUNCTION uint rotate_rows(uint word, uint rows) {
    return rows == 0 ? word : word << (8 * rows) | word >> (32 - 8 * rows);
}

FUNCTION uint byte_of(uint word, uint row) {
    return word >> (8 * row) & 0xff;
}

FUNCTION uint swap_bytes(uint word) {
    return word << 24 | (word & 0xff00u) << 8 | (word >> 8 & 0xff00u) | word >> 24;
}

// The field of FIPS 197 section 4.2, four bytes at once.
FUNCTION uint times_two(uint x) {
    return (x & 0x7f7f7f7fu) << 1 ^ (x >> 7 & 0x01010101u) * 0x1b;
}
FUNCTION uint times(uint a, uint b) {
    uint product = 0;
    for (int bit = 0; bit < 8; ++bit) {
        product ^= a & (b >> bit & 0x01010101u) * 0xff;
        a = times_two(a);
    }
    return product;
}
FUNCTION uint rotate_bits(uint x, int n) {
    const uint low = 0x01010101u * (0xffu << n & 0xffu);
    return (x << n & low) | (x >> (8 - n) & ~low);
}
// SubBytes (5.1.1): x^254, then the affine map.
FUNCTION uint substitute(uint x) {
    const uint x2 = times(x, x), x3 = times(x2, x), x6 = times(x3, x3), x12 = times(x6, x6);
    const uint x15 = times(x12, x3), x30 = times(x15, x15), x60 = times(x30, x30);
    const uint x120 = times(x60, x60), x240 = times(x120, x120);
    const uint i = times(times(x240, x12), x2);
    return i ^ rotate_bits(i, 1) ^ rotate_bits(i, 2) ^ rotate_bits(i, 3) ^ rotate_bits(i, 4) ^
           0x63636363u;
}
FUNCTION uint mix_column(uint x) {
    const uint next = rotate_rows(x, 3);
    return times_two(x) ^ times_two(next) ^ next ^ rotate_rows(x, 2) ^ rotate_rows(x, 1);
}

// Bit planes: word j has bit j of 32 bytes, those of two blocks; bit 8 * row + 2 * column + block.
// The field of 256 elements as a tower: 4 with W^2 = W + 1, 16 with X^2 = X + W, 256 with
// Y^2 = Y + N, where N = WX + 1; the basis is 1, W, X, WX and Y times those.
FUNCTION void multiply_4(uint* r, const uint* a, const uint* b) {
    const uint low = a[0] & b[0], high = a[1] & b[1], both = (a[0] ^ a[1]) & (b[0] ^ b[1]);
    r[0] = low ^ high;
    r[1] = both ^ low;
}
FUNCTION void multiply_16(uint* r, const uint* a, const uint* b) {
    const uint a_sum[2] = {a[0] ^ a[2], a[1] ^ a[3]}, b_sum[2] = {b[0] ^ b[2], b[1] ^ b[3]};
    uint low[2], high[2], both[2];
    multiply_4(low, a, b);
    multiply_4(high, a + 2, b + 2);
    multiply_4(both, a_sum, b_sum);
    r[0] = low[0] ^ high[1];
    r[1] = low[1] ^ high[0] ^ high[1];
    r[2] = both[0] ^ low[0];
    r[3] = both[1] ^ low[1];
}
FUNCTION void invert_16(uint* r, const uint* a) {
    const uint sum[2] = {a[0] ^ a[2], a[1] ^ a[3]};
    uint product[2], inverse[2];
    multiply_4(product, a, a + 2);
    // Of the norm, W high^2 + high low + low^2, the inverse is the square.
    const uint norm_0 = a[3] ^ product[0] ^ a[0] ^ a[1], norm_1 = a[2] ^ product[1] ^ a[1];
    inverse[0] = norm_0 ^ norm_1;
    inverse[1] = norm_1;
    multiply_4(r, inverse, sum);
    multiply_4(r + 2, inverse, a + 2);
}
// SubBytes on all planes: into the tower, the inverse there, and back with the affine map.
FUNCTION void substitute_planes(uint* x) {
    const uint p = x[4] ^ x[6], q = x[1] ^ x[2], s = x[3] ^ p, t = x[5] ^ q, u = x[1] ^ p;
    const uint v = x[7] ^ s;
    const uint low[4] = {x[0] ^ u, v, t, x[6] ^ t};
    const uint high[4] = {x[2] ^ v, x[7] ^ u, s ^ t, x[5] ^ x[7]};
    const uint sum[4] = {low[0] ^ high[0], low[1] ^ high[1], low[2] ^ high[2], low[3] ^ high[3]};
    uint norm[4], inverse[4], y[8];
    multiply_16(norm, low, high);
    // N high^2 and low^2
    norm[0] ^= high[0] ^ high[1] ^ high[2] ^ high[3] ^ low[0] ^ low[1] ^ low[3];
    norm[1] ^= high[1] ^ high[3] ^ low[1] ^ low[2];
    norm[2] ^= high[1] ^ low[2] ^ low[3];
    norm[3] ^= high[0] ^ low[3];
    invert_16(inverse, norm);
    multiply_16(y, inverse, sum);
    multiply_16(y + 4, inverse, high);
    const uint c = y[2] ^ y[6], d = y[0] ^ y[3], e = y[5] ^ d, f = y[7] ^ c, g = y[0] ^ y[4];
    const uint h = y[1] ^ e;
    x[0] = ~(y[6] ^ g);
    x[1] = ~(y[4] ^ h);
    x[2] = f ^ h;
    x[3] = g;
    x[4] = e ^ f;
    x[5] = ~(y[3] ^ c);
    x[6] = ~(y[4] ^ y[7]);
    x[7] = f;
}
FUNCTION uint shift_rows_plane(uint x) {
    return (x & 0xffu) | (x >> 2 & 0x3f00u) | (x << 6 & 0xc000u) | (x >> 4 & 0x0f0000u) |
           (x << 4 & 0xf00000u) | (x >> 6 & 0x03000000u) | (x << 2 & 0xfc000000u);
}
FUNCTION void mix_planes(uint* x) {
    uint t[8], next[8];
    for (int j = 0; j < 8; ++j) {
        next[j] = rotate_rows(x[j], 3);
        t[j] = x[j] ^ next[j];
    }
    for (int j = 0; j < 8; ++j) {
        const uint carry = j == 0 || j == 1 || j == 3 || j == 4 ? t[7] : 0;
        x[j] = next[j] ^ rotate_rows(t[j], 2) ^ carry ^ (j > 0 ? t[j > 0 ? j - 1 : 0] : 0);
    }
}
// Eight words to eight planes, or back: bit j of a byte of word k against bit k of that of word j.
FUNCTION void transpose(uint* x) {
    for (int step = 1; step < 8; step *= 2) {
        const uint mask = step == 1 ? 0x55555555u : step == 2 ? 0x33333333u : 0x0f0f0f0fu;
        for (int k = 0; k < 8; ++k)
            if (!(k & step)) {
                const uint moved = (x[k] >> step ^ x[k + step]) & mask;
                x[k] ^= moved << step;
                x[k + step] ^= moved;
            }
    }
}

#define ENTRY(t, x)                                    \
    (LAB_TABLES == CONSTANT ? lab_table[(t)*256 + (x)] \
     : LAB_TABLES == SHARED ? tables[(t)*256 + (x)]    \
                            : tables[((t)*256 + (x)) * LANES + lane])
// T_row of a byte, of the tables that there are.
#define TERM(row, x) rotate_rows(ENTRY((row) % LAB_COUNT, x), (row) / LAB_COUNT * LAB_COUNT)
#define TERM_OF(row, word) TERM(row, byte_of(word, row))
// Byte 1 of an entry of T0 is S.
#define BOX(word, row) (byte_of(ENTRY(0, byte_of(word, row)), 1) << 8 * (row))
#define GATHERED(a, b, c, d) (((a)&0xffu) | ((b)&0xff00u) | ((c)&0xff0000u) | ((d)&0xff000000u))
#define LAST_COLUMN(a, b, c, d)                            \
    (LAB_TABLES == NONE ? substitute(GATHERED(a, b, c, d)) \
                        : (BOX(a, 0) | BOX(b, 1) | BOX(c, 2) | BOX(d, 3)))
#define COLUMN(a, b, c, d)                                             \
    (LAB_TABLES == NONE ? mix_column(substitute(GATHERED(a, b, c, d))) \
                        : (TERM_OF(0, a) ^ TERM_OF(1, b) ^ TERM_OF(2, c) ^ TERM_OF(3, d)))
#define KEY(i) (LAB_KEYS_SHARED ? round_keys[i] : CONSTANT_AT(i))

// Rounds `first` and later of a, b, c, d, which keep their names.
#define ROUNDS_FROM(first)                                  \
    for (uint r = (first); r < ROUNDS; ++r) {               \
        const uint e = COLUMN(a, b, c, d) ^ KEY(4 * r);     \
        const uint f = COLUMN(b, c, d, a) ^ KEY(4 * r + 1); \
        const uint g = COLUMN(c, d, a, b) ^ KEY(4 * r + 2); \
        d = COLUMN(d, a, b, c) ^ KEY(4 * r + 3);            \
        a = e;                                              \
        b = f;                                              \
        c = g;                                              \
    }                                                       \
    uint4 made;                                             \
    made.x = LAST_COLUMN(a, b, c, d) ^ KEY(4 * ROUNDS);     \
    made.y = LAST_COLUMN(b, c, d, a) ^ KEY(4 * ROUNDS + 1); \
    made.z = LAST_COLUMN(c, d, a, b) ^ KEY(4 * ROUNDS + 2); \
    made.w = LAST_COLUMN(d, a, b, c) ^ KEY(4 * ROUNDS + 3)

// The first counter and `number`, in words whose first byte is the lowest; the last round's key is
// not there yet.
#define COUNT_FROM_START(number)                                   \
    const uint low_word = CONSTANT_AT(START + 3) + (uint)(number); \
    const uint carry_c = low_word < (uint)(number);                \
    const uint third_word = CONSTANT_AT(START + 2) + carry_c;      \
    const uint carry_b = carry_c && third_word == 0;               \
    const uint second_word = CONSTANT_AT(START + 1) + carry_b;     \
    const uint carry_a = carry_b && second_word == 0;              \
    const uint first_word = CONSTANT_AT(START) + carry_a

// Where column c of the group's block b lies in shared memory.
#define AT(b, c) (LAB_STATE == SOA ? (c)*AT_ONCE + (b) : (b)*4 + (c))
#define MEET() \
    if (LAB_BYTES < 16) barrier(CLK_LOCAL_MEM_FENCE) /* others' words are read */

KERNEL void placement(__global const uint* in, __global uint* out, CONSTANTS, uint blocks) {
    SHARED_WORDS(words);
    const uint item = get_local_id(0), lane = item % LANES;
    __local uint* const tables = words;
    __local uint* const round_keys = words + TABLE_WORDS;
    __local uint* const states = round_keys + KEY_WORDS;
    __global const uint4* const in_4 = (__global const uint4*)in;
    __global uint4* const out_4 = (__global uint4*)out;
    for (uint i = item; i < TABLE_WORDS; i += LAB_GROUP)
        tables[i] = TABLE_IN_GLOBAL[LAB_TABLES == BANKS ? i / LANES : i];
    for (uint i = item; i < KEY_WORDS; i += LAB_GROUP) round_keys[i] = CONSTANT_AT(i);
    barrier(CLK_LOCAL_MEM_FENCE);

    const ulong stride = (ulong)get_num_groups(0) * AT_ONCE;
    if (LAB_FORM == CACHED) {
        // A warp takes 256 counters whose upper 15 bytes are the same. Round 1 changes column 0
        // alone among them, and round 2 adds one term of that to each column.
        const uint before = CONSTANT_AT(START + 3) & 0xff;  // of the first 256, that come earlier
        const ulong groups = ((ulong)before + blocks + 255) / 256;
        for (ulong group = ((ulong)get_group_id(0) * LAB_GROUP + item) / LANES; group < groups;
             group += stride / LANES) {
            const long first = (long)(group * 256) - before;
            // The earliest of the first 256 counters have the carries of the first message block.
            COUNT_FROM_START(first < 0 ? 0 : first);
            const uint s = swap_bytes(first_word) ^ KEY(0), t = swap_bytes(second_word) ^ KEY(1);
            const uint u = swap_bytes(third_word) ^ KEY(2);
            const uint v = swap_bytes(low_word & ~0xffu) ^ KEY(3);
            const uint w0 = TERM_OF(0, s) ^ TERM_OF(1, t) ^ TERM_OF(2, u) ^ KEY(4);
            const uint w1 = COLUMN(t, u, v, s) ^ KEY(5), w2 = COLUMN(u, v, s, t) ^ KEY(6);
            const uint w3 = COLUMN(v, s, t, u) ^ KEY(7);
            const uint x0 = TERM_OF(1, w1) ^ TERM_OF(2, w2) ^ TERM_OF(3, w3) ^ KEY(8);
            const uint x1 = TERM_OF(0, w1) ^ TERM_OF(1, w2) ^ TERM_OF(2, w3) ^ KEY(9);
            const uint x2 = TERM_OF(0, w2) ^ TERM_OF(1, w3) ^ TERM_OF(3, w1) ^ KEY(10);
            const uint x3 = TERM_OF(0, w3) ^ TERM_OF(2, w1) ^ TERM_OF(3, w2) ^ KEY(11);
            for (uint low = lane; low < 256; low += LANES) {
                const long block = first + low;
                if (block < 0 || block >= (long)blocks) continue;
                const uint w = w0 ^ TERM(3, byte_of(v, 3) ^ low);
                uint a = x0 ^ TERM_OF(0, w), b = x1 ^ TERM_OF(3, w);
                uint c = x2 ^ TERM_OF(2, w), d = x3 ^ TERM_OF(1, w);
                const uint4 data = in_4[block];
                ROUNDS_FROM(3);
                made.x ^= data.x;
                made.y ^= data.y;
                made.z ^= data.z;
                made.w ^= data.w;
                out_4[block] = made;
            }
        }
        return;
    }

    // Every item goes the same number of times around, since it meets the others within.
    for (ulong start = (ulong)get_group_id(0) * AT_ONCE; start < blocks; start += stride) {
        if (LAB_FORM == SLICED) {
            // Two blocks, LAB_GROUP apart, so that neighbours read neighbouring ones.
            const ulong one = start + item, other = one + LAB_GROUP;
            const ulong last = blocks - 1;  // in place of what is not there
            const uint4 p = in_4[one < last ? one : last], q = in_4[other < last ? other : last];
            uint x[8] = {p.x, q.x, p.y, q.y, p.z, q.z, p.w, q.w};
            transpose(x);
            for (int j = 0; j < 8; ++j) x[j] ^= CONSTANT_AT(PLANES + j);
            for (uint r = 1; r <= ROUNDS; ++r) {
                substitute_planes(x);
                for (int j = 0; j < 8; ++j) x[j] = shift_rows_plane(x[j]);
                if (r < ROUNDS) mix_planes(x);
                for (int j = 0; j < 8; ++j) x[j] ^= CONSTANT_AT(PLANES + 8 * r + j);
            }
            transpose(x);
            uint4 made;
            made.x = x[0];
            made.y = x[2];
            made.z = x[4];
            made.w = x[6];
            if (one < blocks) out_4[one] = made;
            made.x = x[1];
            made.y = x[3];
            made.z = x[5];
            made.w = x[7];
            if (other < blocks) out_4[other] = made;
        } else if (LAB_STATE == REGISTERS) {
            const ulong block = start + item;
            if (block >= blocks) continue;
            const uint4 data = in_4[block];
            uint a = data.x, b = data.y, c = data.z, d = data.w;
            if (LAB_FORM == COUNTERS) {
                COUNT_FROM_START(block);
                a = swap_bytes(first_word);
                b = swap_bytes(second_word);
                c = swap_bytes(third_word);
                d = swap_bytes(low_word);
            }
            a ^= KEY(0);
            b ^= KEY(1);
            c ^= KEY(2);
            d ^= KEY(3);
            ROUNDS_FROM(1);
            if (LAB_FORM == COUNTERS) {
                made.x ^= data.x;
                made.y ^= data.y;
                made.z ^= data.z;
                made.w ^= data.w;
            }
            out_4[block] = made;
        } else if (LAB_BYTES >= 4) {
            const uint mine = item / ITEMS, part = item % ITEMS, columns = LAB_BYTES / 4;
            const ulong block = start + mine;
            for (uint i = 0; i < columns; ++i) {
                const uint column = part * columns + i;
                if (block < blocks) states[AT(mine, column)] = in[4 * block + column] ^ KEY(column);
            }
            MEET();
            for (uint r = 1; r <= ROUNDS; ++r) {
                __local const uint* from = states + (r - 1) % 2 * 4 * AT_ONCE;
                __local uint* to = states + r % 2 * 4 * AT_ONCE;
                for (uint i = 0; i < columns && block < blocks; ++i) {
                    const uint column = part * columns + i;
                    const uint a = from[AT(mine, column)], b = from[AT(mine, (column + 1) % 4)];
                    const uint c = from[AT(mine, (column + 2) % 4)];
                    const uint d = from[AT(mine, (column + 3) % 4)];
                    if (r < ROUNDS)
                        to[AT(mine, column)] = COLUMN(a, b, c, d) ^ KEY(4 * r + column);
                    else
                        out[4 * block + column] = LAST_COLUMN(a, b, c, d) ^ KEY(4 * r + column);
                }
                MEET();
            }
        } else {
            // One byte: of four entries one byte each, where a column's item takes four of each.
            const uint mine = item / ITEMS, part = item % ITEMS, column = part / 4, row = part % 4;
            const ulong block = start + mine;
            if (block < blocks)
                ((__local uchar*)states)[4 * AT(mine, column) + row] =
                    (uchar)byte_of(in[4 * block + column] ^ KEY(column), row);
            MEET();
            for (uint r = 1; r <= ROUNDS; ++r) {
                __local const uint* from = states + (r - 1) % 2 * 4 * AT_ONCE;
                __local uint* to = states + r % 2 * 4 * AT_ONCE;
                if (block < blocks) {
                    const uint a = from[AT(mine, column)], b = from[AT(mine, (column + 1) % 4)];
                    const uint c = from[AT(mine, (column + 2) % 4)];
                    const uint d = from[AT(mine, (column + 3) % 4)];
                    const uint word = (r < ROUNDS ? COLUMN(a, b, c, d) : LAST_COLUMN(a, b, c, d)) ^
                                      KEY(4 * r + column);
                    if (r < ROUNDS)
                        ((__local uchar*)to)[4 * AT(mine, column) + row] =
                            (uchar)byte_of(word, row);
                    else
                        ((__global uchar*)out)[16 * block + part] = (uchar)byte_of(word, row);
                }
                MEET();
            }
        }
    }
}
