// SPDX-License-Identifier: Apache-2.0
// AES-128-ECB encryption, one family of kernels: where tables, round keys and state lie, and how
// many bytes a work-item makes. Nobody should encrypt with these: all but `banks` and `none` take a
// time that depends on the data (SIDE-CHANNELS.md). The program in front of this defines:
//
//   LAB_GROUP  work-items of a work-group
//   LAB_BYTES  bytes that a work-item makes of each block: 16, 8, 4 or 1
//   LAB_TABLES  CONSTANT, SHARED (one copy for the group), BANKS (a copy for each of 32 banks) or
//               NONE (the S-box is computed)
//   LAB_COUNT  T-tables: 4; 2 or 1 with rotations in the others' place
//   LAB_KEYS_SHARED  0: round keys in constant memory; 1: in shared
//   LAB_STATE  REGISTERS, AOS (a block's four words side by side) or SOA (a column's words of all
//              blocks side by side); those in shared memory
//   lab_table  __constant uint[1024], T0 to T3
#define CONSTANT 0
#define SHARED 1
#define BANKS 2
#define NONE 3
#define REGISTERS 0
#define AOS 1
#define SOA 2

#define ITEMS (16 / LAB_BYTES)      // that share a block
#define BLOCKS (LAB_GROUP / ITEMS)  // that a group works on at once
#define ROUNDS 10
#define LANES 32

#if LAB_BYTES != 16
#define MEET() barrier(CLK_LOCAL_MEM_FENCE)
#else
#define MEET()  // nobody reads what others have written
#endif

uint rotate_rows(uint word, uint rows) {
    return rows == 0 ? word : word << (8 * rows) | word >> (32 - 8 * rows);
}

uint byte_of(uint word, uint row) {
    return word >> (8 * row) & 0xff;
}

// The field of FIPS 197 section 4.2, four bytes at once.
uint times_two(uint x) {
    return (x & 0x7f7f7f7fu) << 1 ^ (x >> 7 & 0x01010101u) * 0x1b;
}
uint times(uint a, uint b) {
    uint product = 0;
    for (int bit = 0; bit < 8; ++bit) {
        product ^= a & (b >> bit & 0x01010101u) * 0xff;
        a = times_two(a);
    }
    return product;
}
uint rotate_bits(uint x, int n) {
    const uint low = 0x01010101u * (0xffu << n & 0xffu);
    return (x << n & low) | (x >> (8 - n) & ~low);
}
// SubBytes (5.1.1): x^254, then the affine map.
uint substitute(uint x) {
    const uint x2 = times(x, x), x3 = times(x2, x), x6 = times(x3, x3), x12 = times(x6, x6);
    const uint x15 = times(x12, x3), x30 = times(x15, x15), x60 = times(x30, x30);
    const uint x120 = times(x60, x60), x240 = times(x120, x120);
    const uint i = times(times(x240, x12), x2);
    return i ^ rotate_bits(i, 1) ^ rotate_bits(i, 2) ^ rotate_bits(i, 3) ^ rotate_bits(i, 4) ^
           0x63636363u;
}
uint mix_column(uint x) {
    const uint next = rotate_rows(x, 3);
    return times_two(x) ^ times_two(next) ^ next ^ rotate_rows(x, 2) ^ rotate_rows(x, 1);
}

#if LAB_TABLES == CONSTANT
#define ENTRY(t, x) lab_table[(t)*256 + (x)]
#elif LAB_TABLES == SHARED
#define ENTRY(t, x) tables[(t)*256 + (x)]
#elif LAB_TABLES == BANKS
#define ENTRY(t, x) tables[((t)*256 + (x)) * LANES + lane]
#endif

#if LAB_TABLES != NONE
// T_row of a byte, of the tables that there are.
#define TERM(row, x) rotate_rows(ENTRY((row) % LAB_COUNT, x), (row) / LAB_COUNT * LAB_COUNT)
#define COLUMN(a, b, c, d)                                                      \
    (TERM(0, byte_of(a, 0)) ^ TERM(1, byte_of(b, 1)) ^ TERM(2, byte_of(c, 2)) ^ \
     TERM(3, byte_of(d, 3)))
// Byte 1 of an entry of T0 is S.
#define BOX(word, row) (byte_of(ENTRY(0, byte_of(word, row)), 1) << 8 * (row))
#define LAST_COLUMN(a, b, c, d) (BOX(a, 0) | BOX(b, 1) | BOX(c, 2) | BOX(d, 3))
#else
#define GATHERED(a, b, c, d) (((a)&0xffu) | ((b)&0xff00u) | ((c)&0xff0000u) | ((d)&0xff000000u))
#define LAST_COLUMN(a, b, c, d) substitute(GATHERED(a, b, c, d))
#define COLUMN(a, b, c, d) mix_column(LAST_COLUMN(a, b, c, d))
#endif

#if LAB_KEYS_SHARED
#define KEY(i) round_keys[i]
#else
#define KEY(i) keys[i]
#endif

// Where column c of the group's block b lies in shared memory.
#if LAB_STATE == SOA
#define AT(b, c) ((c)*BLOCKS + (b))
#else
#define AT(b, c) ((b)*4 + (c))
#endif

__kernel __attribute__((reqd_work_group_size(LAB_GROUP, 1, 1))) void placement(
    __global const uint* in, __global uint* out, __constant uint* keys, uint blocks) {
    const uint item = get_local_id(0);
#if LAB_TABLES == SHARED
    __local uint tables[LAB_COUNT * 256];
    for (uint i = item; i < LAB_COUNT * 256; i += LAB_GROUP) tables[i] = lab_table[i];
#elif LAB_TABLES == BANKS
    __local uint tables[LAB_COUNT * 256 * LANES];
    const uint lane = item % LANES;
    for (uint i = item; i < LAB_COUNT * 256 * LANES; i += LAB_GROUP)
        tables[i] = lab_table[i / LANES];
#endif
#if LAB_KEYS_SHARED
    __local uint round_keys[4 * (ROUNDS + 1)];
    for (uint i = item; i < 4 * (ROUNDS + 1); i += LAB_GROUP) round_keys[i] = keys[i];
#endif
#if LAB_STATE != REGISTERS
    __local uint states[2][4 * BLOCKS];
    const uint mine = item / ITEMS, part = item % ITEMS;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);

    // Every item goes the same number of times around, since it meets the others within.
    for (ulong first = (ulong)get_group_id(0) * BLOCKS; first < blocks;
         first += (ulong)get_num_groups(0) * BLOCKS) {
#if LAB_STATE == REGISTERS
        const ulong block = first + item;
        if (block >= blocks) continue;
        uint a = in[4 * block] ^ KEY(0), b = in[4 * block + 1] ^ KEY(1);
        uint c = in[4 * block + 2] ^ KEY(2), d = in[4 * block + 3] ^ KEY(3);
        for (uint r = 1; r < ROUNDS; ++r) {
            const uint e = COLUMN(a, b, c, d) ^ KEY(4 * r);
            const uint f = COLUMN(b, c, d, a) ^ KEY(4 * r + 1);
            const uint g = COLUMN(c, d, a, b) ^ KEY(4 * r + 2);
            d = COLUMN(d, a, b, c) ^ KEY(4 * r + 3);
            a = e;
            b = f;
            c = g;
        }
        out[4 * block] = LAST_COLUMN(a, b, c, d) ^ KEY(4 * ROUNDS);
        out[4 * block + 1] = LAST_COLUMN(b, c, d, a) ^ KEY(4 * ROUNDS + 1);
        out[4 * block + 2] = LAST_COLUMN(c, d, a, b) ^ KEY(4 * ROUNDS + 2);
        out[4 * block + 3] = LAST_COLUMN(d, a, b, c) ^ KEY(4 * ROUNDS + 3);
#elif LAB_BYTES >= 4
        const ulong block = first + mine;
        const uint columns = LAB_BYTES / 4;
        for (uint i = 0; i < columns; ++i) {
            const uint column = part * columns + i;
            if (block < blocks) states[0][AT(mine, column)] = in[4 * block + column] ^ KEY(column);
        }
        MEET();
        for (uint r = 1; r <= ROUNDS; ++r) {
            __local const uint* from = states[(r - 1) % 2];
            for (uint i = 0; i < columns && block < blocks; ++i) {
                const uint column = part * columns + i;
                const uint a = from[AT(mine, column)], b = from[AT(mine, (column + 1) % 4)];
                const uint c = from[AT(mine, (column + 2) % 4)];
                const uint d = from[AT(mine, (column + 3) % 4)];
                if (r < ROUNDS)
                    states[r % 2][AT(mine, column)] = COLUMN(a, b, c, d) ^ KEY(4 * r + column);
                else
                    out[4 * block + column] = LAST_COLUMN(a, b, c, d) ^ KEY(4 * r + column);
            }
            MEET();
        }
#else
        // One byte: of four entries one byte each, where a column's item takes four of each.
        const ulong block = first + mine;
        const uint column = part / 4, row = part % 4;
        if (block < blocks)
            ((__local uchar*)states[0])[4 * AT(mine, column) + row] =
                (uchar)byte_of(in[4 * block + column] ^ KEY(column), row);
        MEET();
        for (uint r = 1; r <= ROUNDS; ++r) {
            if (block < blocks) {
                __local const uint* from = states[(r - 1) % 2];
                const uint a = from[AT(mine, column)], b = from[AT(mine, (column + 1) % 4)];
                const uint c = from[AT(mine, (column + 2) % 4)];
                const uint d = from[AT(mine, (column + 3) % 4)];
                const uint word = (r < ROUNDS ? COLUMN(a, b, c, d) : LAST_COLUMN(a, b, c, d)) ^
                                  KEY(4 * r + column);
                if (r < ROUNDS)
                    ((__local uchar*)states[r % 2])[4 * AT(mine, column) + row] =
                        (uchar)byte_of(word, row);
                else
                    ((__global uchar*)out)[16 * block + part] = (uchar)byte_of(word, row);
            }
            MEET();
        }
#endif
    }
}
