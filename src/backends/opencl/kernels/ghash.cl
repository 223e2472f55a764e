// SPDX-License-Identifier: Apache-2.0
// GHASH over many messages: each tile of blocks to a sum, and the sums of long messages together.
//
// A team hashes a tile, each lane every 32nd block by Horner's rule with H^32: all multiplications
// have the same factor. DAEL_GHASH_TABLE chooses how:
//   1  By a table in local memory of that factor's multiples. A block is 32 lookups of 16 bytes.
//      Eight copies, one for each of the eight lanes that local memory serves at once, keep every
//      lookup free of bank conflicts whatever the data. To fit, the table has the multiples for
//      each byte's high four bits only; the low ones are summed apart, and their sum is multiplied
//      by x^4. All tiles of a work-group at one time must be of one key.
//   0  By integer multiplications, in constant time whatever memory is like; and a key for each
//      tile.

// Bytes `block` of a part of a message, filled up with zeros.
static inline uint4 block_of(__global const uchar* base, ulong at, ulong size, ulong block) {
    const ulong rest = size - block * 16;
    const ulong from = at + block * 16;
    if (rest >= 16 && (at & 15) == 0) return load_block(base, from);
    return load_part(base, (long)from, 0, rest < 16 ? (int)rest : 16);
}

#if DAEL_GHASH_TABLE
typedef struct {
    __local const uchar* image;
    uint copy16;  // this lane's copy, in bytes
} Multiples;

// Entry 16 b + n: factor times n, as the high four bits of byte b. Rows of eight copies.
static inline void fill_multiples(__local uint4* image, uint4 factor) {
    const uint item = (uint)(get_local_id(1) * kLanes + get_local_id(0));
    for (uint entry = item; entry < 256; entry += kLanes * DAEL_TEAMS) {
        uint4 power = factor, sum = (uint4)(0);
        for (int bit = 3; bit >= 0; --bit) {
            sum ^= power & (uint4)(0 - (entry >> bit & 1));
            power = times_x(power, 1);
        }
        for (uint b = 0; b < entry / 16; ++b) sum = times_x(sum, 8);
        for (uint k = 0; k < 8; ++k) image[entry * 8 + (k + item) % 8] = sum;
    }
}

// The four bits of `word` from bit `n` on, as the high ones of byte b.
static inline uint4 multiple(const Multiples* m, uint word, int n, int b) {
    const uint row = (n < 7 ? word << (7 - n) : word >> (n - 7)) & 0x780u;
    const uint address = (row | m->copy16) + b * 2048;
    const uint4 entry = *(__local const uint4*)(m->image + address);
#ifdef DAEL_GHASH_BANK  // as DAEL_BANK of aes.cl, in banks of 16 bytes
    return address / 16 % 8 == (get_local_id(0) + DAEL_GHASH_BANK) % 8 ? entry : (uint4)(0);
#else
    return entry;
#endif
}

static inline uint4 times_factor(const Multiples* m, uint4 a) {
    const uint words[4] = {a.x, a.y, a.z, a.w};
    uint4 high = (uint4)(0), low = (uint4)(0);
#pragma unroll
    for (int b = 0; b < 16; ++b) {
        high ^= multiple(m, words[b / 4], 28 - b % 4 * 8, b);
        low ^= multiple(m, words[b / 4], 24 - b % 4 * 8, b);
    }
    return high ^ times_x(low, 4);
}
#else
typedef struct {
    uint4 factor;
} Multiples;
static inline uint4 times_factor(const Multiples* m, uint4 a) {
    return gf_multiply(a, m->factor);
}
#endif

// This lane's share of a tile's sum. `data` holds the ciphertext, this message's from `at` on.
static inline uint4 hash_tile(const Multiples* m, __global const uchar* aad,
                              __global const uchar* data, const GcmItem* item, ulong at,
                              const GcmTile* tile) {
    const int lane = (int)get_local_id(0), blocks = (int)tile->blocks;
    const ulong aad_blocks = blocks_of(item->aad_size);
    // Most tiles are of whole blocks of data on multiples of 16.
    const bool plain = tile->begin >= aad_blocks && (at & 15) == 0 &&
                       (tile->begin + tile->blocks - aad_blocks) * 16 <= item->size;
    uint4 sum = (uint4)(0);
    // The last row is full: zeros come before the first one, and count for nothing.
    for (int i = lane - (-blocks & 31); i < blocks; i += kLanes) {
        uint4 x = (uint4)(0);
        if (i >= 0) {
            const ulong block = tile->begin + i;
            if (plain)
                x = load_block(data, at + (block - aad_blocks) * 16);
            else if (block < aad_blocks)
                x = block_of(aad, item->aad, item->aad_size, block);
            else
                x = block_of(data, at, item->size, block - aad_blocks);
        }
        sum = (i < kLanes ? (uint4)(0) : times_factor(m, sum)) ^ swap_words(x);
    }
    return sum;
}

// Tiles to sums. With tables, each `DAEL_TEAMS` tiles from the first on are of one key. A tile
// whose target is ~0 is none.
DAEL_KERNEL ghash_tiles(__global const uchar* aad, __global const uchar* data, const uint opening,
                        __global const GcmItem* items, __global const GcmTile* tiles,
                        const uint count, __global const GcmPowers* keys, __global uint4* sums) {
    const uint lane = (uint)get_local_id(0), team = (uint)get_local_id(1);
    __local uint shares[DAEL_TEAMS * kLanes * 4];
#if DAEL_GHASH_TABLE
    __local uint4 image[256 * 8];
    const Multiples multiples = {(__local const uchar*)image, lane % 8 * 16};
    uint filled = ~0u;  // the key whose multiples these are
#endif
    // Every item comes by every barrier.
    for (uint from = (uint)get_group_id(1) * DAEL_TEAMS; from < count;
         from += (uint)get_num_groups(1) * DAEL_TEAMS) {
        const bool busy = from + team < count && tiles[from + team].target != ~0u;
        const GcmTile tile = tiles[busy ? from + team : from];
#if DAEL_GHASH_TABLE
        if (filled != tiles[from].key) {
            filled = tiles[from].key;
            fill_multiples(image, keys[filled].powers[kLanes]);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#else
        const Multiples multiples = {keys[tile.key].powers[kLanes]};
#endif
        uint4 share = (uint4)(0);
        if (busy) {
            const GcmItem item = items[tile.message];
            share = hash_tile(&multiples, aad, data, &item, opening ? item.in : item.out, &tile);
            share = gf_multiply(share, keys[tile.key].powers[kLanes - 1 - lane]);
        }
        vstore4(share, team * kLanes + lane, shares);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (busy && lane < 4) {
            uint word = 0;
            for (uint i = 0; i < kLanes; ++i) word ^= shares[(team * kLanes + i) * 4 + lane];
            ((__global uint*)&sums[tile.target])[lane] = word;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    DAEL_WIPE_LOCAL(shares);
#if DAEL_GHASH_TABLE
    DAEL_WIPE_LOCAL(image);
#endif
}

// The sums of a message's tiles, all but the first of 2^log_blocks blocks, to the message's sum: a
// work-group to a message, each item every n-th sum by Horner's rule, then a tree.
DAEL_KERNEL ghash_combine(__global const GcmItem* items, __global const uint* list,
                          const uint count, const uint log_blocks, __global const GcmPowers* keys,
                          __global uint4* sums) {
    __local uint4 shares[DAEL_TEAMS * kLanes];
    const int item = (int)(get_local_id(1) * kLanes + get_local_id(0));
    for (uint m = (uint)get_group_id(1); m < count; m += (uint)get_num_groups(1)) {
        const uint message = list[m];
        const uint first = items[message].first;
        const int tiles = (int)items[message].tiles;
        __global const uint4* squares = keys[items[message].key].squares + log_blocks;
        int log_wide = 0;  // as many items as are of use
        while (1 << log_wide < tiles && 1 << log_wide < DAEL_TEAMS * kLanes) ++log_wide;
        const int wide = 1 << log_wide;
        uint4 sum = (uint4)(0);
        if (item < wide)
            for (int i = item - (-tiles & (wide - 1)); i < tiles; i += wide)
                if (i >= 0) sum = gf_multiply(sum, squares[log_wide]) ^ sums[first + i];
        shares[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int log_half = log_wide - 1; log_half >= 0; --log_half) {
            const int half_way = 1 << log_half;
            if (item < half_way)
                shares[item] =
                    gf_multiply(shares[item], squares[log_half]) ^ shares[item + half_way];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (item == 0) sums[message] = shares[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    DAEL_WIPE_LOCAL(shares);
}
