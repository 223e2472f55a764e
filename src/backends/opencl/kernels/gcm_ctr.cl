// SPDX-License-Identifier: Apache-2.0
// Counter mode over GCM's messages: only the counter's low 32 bits count, and wrap (SP 800-38D 6.2
// and 6.5). A squad takes one tile of blocks after the other. When opening, messages whose tag was
// wrong are not touched.
//
// DAEL_KEYED: 1 takes each message's key from device memory, and leaves out those of another size
// than DAEL_ROUNDS says; 0 has one for all as an argument.
// DAEL_HELD: as in counter_cache.cl; 0: no counter caching, and a squad is a team.

static inline uint4 add32(uint4 counter, uint n) {
    return (uint4)(counter.xyz, byte_swap(byte_swap(counter.w) + n));
}

#if DAEL_HELD == 0
enum { kSquad = 1 };
#else
// `groups` groups of 256 blocks, the counter of whose first, `counter`, is a multiple of 256.
static inline void cached_groups(const Tables* tables, KeyPointer key, uint4 iv, uint counter,
                                 uint groups, uint position, __global const uchar* in,
                                 __global uchar* out) {
    const uint4 round1 = cached_round1(tables, key, iv);
    uint4 low[DAEL_HELD];
#pragma unroll
    for (int k = 0; k < DAEL_HELD; ++k)
        low[k] = cached_low(tables, key, round1, position + kLanes * k);
    in += position * 16;
    out += position * 16;
    uint4 high = cached_high(tables, key, round1, counter);
    for (; groups != 0; --groups) {
        const uint4 base = high ^ cached_middle(tables, key, round1, counter);
#pragma unroll
        for (int k = 0; k < DAEL_HELD; ++k)
            store_block(out, 512 * k,
                        finish(tables, key, base ^ low[k],
                               DAEL_KEYSTREAM ? (uint4)(0) : load_block(in, 512 * k), 3));
        counter += 256;
        if ((counter & 0xff00) == 0)  // bytes 12 and 13 are new
            high = cached_high(tables, key, round1, counter);
        in += 4096;
        out += 4096;
    }
}
#endif

DAEL_KERNEL gcm_ctr(__global const uchar* in, __global uchar* out, __global const GcmItem* items,
                    __global const GcmTile* tiles, const uint count,
                    __global const GcmSchedule* schedules, __global const uint* results,
                    const uint opening, const RoundKeys one) {
    DAEL_FILL_TABLES(tables);
    const uint team = (uint)get_local_id(1), lane = (uint)get_local_id(0);
    // Neighbouring tiles go to as many work-groups as there are.
    for (uint t = (uint)(team / kSquad * get_num_groups(1) + get_group_id(1)); t < count;
         t += (uint)get_global_size(1) / kSquad) {
        const GcmTile tile = tiles[t];
        const GcmItem m = items[tile.message];
        if (opening && results[m.result] != 0) continue;
#if DAEL_KEYED
        if (schedules[tile.key].rounds != DAEL_ROUNDS) continue;  // another launch's
        const KeyPointer key = (KeyPointer)&schedules[tile.key];
#else
        const KeyPointer key = &one;
#endif
        const bool aligned = ((m.in | m.out | m.skip) & 15) == 0;
        // Before the whole groups of 256 counters, and after: by the plain rounds.
        uint head = tile.blocks, tail = tile.blocks;
#if DAEL_HELD != 0
        const uint counter = byte_swap(m.counter.w) + 1 + (uint)tile.begin;
        const uint to_group = -counter & 255;
        const uint whole = min(tile.blocks, (uint)(m.size / 16 - tile.begin));
        if (aligned && whole >= to_group + 256) {
            const uint groups = (whole - to_group) / 256;
            head = to_group;
            tail = to_group + groups * 256;
            const ulong at = (tile.begin + head) * 16;
            cached_groups(&tables, key, m.counter, counter + head, groups,
                          team % kSquad * (kLanes * DAEL_HELD) + lane, in + m.in + at,
                          out + m.out + at);
        }
#endif
        const uint plain = head + tile.blocks - tail;
        for (uint i = team % kSquad * kLanes + lane; i < plain; i += kLanes * kSquad) {
            const ulong block = tile.begin + (i < head ? i : i - head + tail);
            const long first = (long)(block * 16) - m.skip;  // in the message
            const long rest = (long)m.size - first;
            const int from = first < 0 ? (int)-first : 0, to = rest < 16 ? (int)rest : 16;
            const long source = (long)m.in + first, target = (long)m.out + first;
            const bool whole = aligned && to == 16;
#if DAEL_KEYSTREAM
            const uint4 x = (uint4)(0);
#else
            const uint4 x = whole ? load_block(in, source) : load_part(in, source, from, to);
#endif
            const uint4 y = crypt(&tables, key, add32(m.counter, (uint)block + 1), x);
            if (whole)
                store_block(out, target, y);
            else
                store_part(out, target, from, to, y);
        }
    }
}
