// SPDX-License-Identifier: Apache-2.0
// XTS over sectors of one size (IEEE 1619, SP 800-38E). The tweaks of the sectors lie in memory:
// xts_tweaks.cl makes them. The arithmetic and the way of a team over sectors are those of
// src/kernels/xts_tweak.hpp, which also says why; the host's twin of XtsWork is in work.hpp.
//
// A tweak is a polynomial over GF(2) with its lowest coefficient in bit 0 of byte 0; x^128 is
// x^7 + x^2 + x + 1 (IEEE 1619 5.2). Nothing here branches on a tweak or uses one as an address.
//
// The host defines DAEL_WHOLE: 1 where sectors are multiples of 512 bytes at multiples of 16, so
// that every item always has a whole aligned block; 0 for sectors of any size at any address.

typedef struct {
    ulong in, out;      // bytes from the beginning of the buffers
    ulong sectors;      // whole ones, of one size
    ulong rows;         // of 32 blocks, in all
    uint sector_size;   // bytes
    uint first_tweak;   // where the first sector's tweak lies
    uint blocks;        // whole ones in a sector
    uint tail;          // bytes of its partial block
    uint unit_sectors;  // a unit is a sector, or as many short ones as fit into a row
    uint unit_rows;
    uint aligned;  // all blocks lie at multiples of 16
    uint unused;
    uint4 leaps[9];  // x^(32 * 64 * 2^i)
} XtsWork;

// Adds the terms from x^128 to x^159, whose coefficients are `over`, to the others.
static inline uint4 fold(uint4 t, uint over) {
    return t ^ (uint4)(over ^ over << 1 ^ over << 2 ^ over << 7,
                       over >> 31 ^ over >> 30 ^ over >> 25, 0, 0);
}

static inline uint funnel(uint low, uint high, uint n) {
    return (uint)(upsample(high, low) << n >> 32);
}

// t * x^n, n from 0 to 31.
static inline uint4 times_x_to(uint4 t, uint n) {
    const uint4 shifted =
        (uint4)(t.x << n, funnel(t.x, t.y, n), funnel(t.y, t.z, n), funnel(t.z, t.w, n));
    return fold(shifted, funnel(t.w, 0, n));
}

// t * x^32: from one row of 32 blocks to the next.
static inline uint4 times_x_to_32(uint4 t) {
    return fold((uint4)(0, t.xyz), t.w);
}

static inline uint4 multiply(uint4 a, uint4 b) {
    uint4 product = (uint4)(0);
#pragma unroll 1
    for (int i = 0; i < 128; ++i) {
        product ^= a & (uint4)(0u - (b.x & 1));
        b = (uint4)(b.x >> 1 | b.y << 31, b.y >> 1 | b.z << 31, b.z >> 1 | b.w << 31, b.w >> 1);
        a = times_x_to(a, 1);
    }
    return product;
}

// t * x^(32 * rows), rows below 2^15: for a team that starts within a sector.
static inline uint4 leap_rows(uint4 t, uint rows, const XtsWork* work) {
#pragma unroll 1
    for (uint near = rows % 64; near != 0; --near) t = times_x_to_32(t);
    int i = 0;
#pragma unroll 1
    for (uint far = rows / 64; far != 0; far >>= 1, ++i)
        if (far & 1) t = multiply(t, work->leaps[i]);
    return t;
}

// The first `count` bytes (0 to 15) of `head`, then those of `rest`.
static inline uint4 splice(uint4 head, uint4 rest, int count) {
    const int4 bytes = clamp((int4)(count) - (int4)(0, 4, 8, 12), 0, 4);
    const uint4 mask =
        select(((uint4)(1) << convert_uint4(8 * (bytes & 3))) - 1, (uint4)(~0u), bytes == 4);
    return (head & mask) | (rest & ~mask);
}

DAEL_KERNEL xts(__global const uchar* in, __global uchar* out, const XtsWork work,
                __global const uint4* tweaks, const RoundKeys keys) {
    DAEL_FILL_TABLES(tables);
    const uint lane = (uint)get_local_id(0), team = (uint)get_global_id(1);
    const uint teams = (uint)get_global_size(1);
    const ulong from = work.rows * team / teams, to = work.rows * (team + 1) / teams;

    // An item's place in every unit. It has nothing to do where there is no such sector or block.
    const uint lane_sector = DAEL_WHOLE ? 0 : lane / work.blocks;
    const uint lane_block = lane - lane_sector * work.blocks;
    ulong unit = from / work.unit_rows;
    uint row = (uint)(from - unit * work.unit_rows);
    uint4 t = (uint4)(0);
    bool fresh = true;  // `t` is of another unit
    for (ulong left = to - from; left != 0; --left) {
        const ulong sector = DAEL_WHOLE ? unit : unit * work.unit_sectors + lane_sector;
        const bool mine = DAEL_WHOLE || (lane_sector < work.unit_sectors && sector < work.sectors);
        if (!fresh) {
            t = times_x_to_32(t);
        } else if (mine) {
            t = times_x_to(tweaks[work.first_tweak + sector], lane_block);
            if (row != 0) t = leap_rows(t, row, &work);
        }
        const uint block = row * kLanes + lane_block;
        if (DAEL_WHOLE || (mine && block < work.blocks)) {
            const ulong at = sector * work.sector_size + block * (ulong)16;
#if DAEL_WHOLE
            store_block(out, work.out + at,
                        crypt(&tables, &keys, load_block(in, work.in + at) ^ t, t));
#else
            // A partial block goes with the whole one before it: it takes the head of that one's
            // result, and what is left, behind the partial block's own bytes, is processed under
            // the other tweak. Decryption meets the two tweaks in the opposite order (5.3.2, 5.4.2
            // of IEEE 1619).
            const long source = (long)(work.in + at), target = (long)(work.out + at);
            const uint4 after = times_x_to(t, 1);
            bool steals = work.tail != 0 && block + 1 == work.blocks;
            const uint4 last = DAEL_INVERSE ? t : after;
            uint4 tweak = DAEL_INVERSE && steals ? after : t;
            uint4 x = work.aligned ? load_block(in, source) : load_part(in, source, 0, 16);
            uint4 y = (uint4)(0);
            for (;;) {
                y = crypt(&tables, &keys, x ^ tweak, tweak);
                if (!steals) break;
                const uint4 partial = load_part(in, source + 16, 0, work.tail);
                store_part(out, target + 16, 0, work.tail, y);
                x = splice(partial, y, work.tail);
                tweak = last;
                steals = false;
            }
            if (work.aligned)
                store_block(out, target, y);
            else
                store_part(out, target, 0, 16, y);
#endif
        }
        fresh = ++row == work.unit_rows;
        if (fresh) {
            row = 0;
            ++unit;
        }
    }
}
