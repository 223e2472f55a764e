// SPDX-License-Identifier: Apache-2.0
// The modes whose blocks are independent: ECB, CTR, CBC and CFB decryption, over one segment or
// many, of any length and alignment, in place or not.
//
// A unit is 32 neighbouring blocks of a segment, the last of which may be short. A team of 32
// work-items takes a contiguous share of all units, one block to an item, from the last to the
// first. In place and chained (DAEL_CHAINED), a block is needed after the one before it was
// written: within its share a team comes by the later one first, and the one before its share is
// saved by the kernel save_before() ahead of all writing.
//
// DAEL_MODE: 0 ECB, 1 CTR, 2 CBC decryption, 3 CFB decryption. DAEL_CHAINED: 1 for 2 and 3 in
// place.

// Where a team's share ends; it begins where the share of the team before it ends.
typedef struct {
    ulong unit;  // of the segment, one after the last
    uint segment;
    uint unused;
} ShareEnd;

static inline ulong units_of(const Segment* s) {
    return (s->skip + s->size + 511) / 512;
}

// The end of a team's share: of a list as the host has divided it, of one segment evenly.
static inline ShareEnd share_end(__global const ShareEnd* ends, ulong units, uint teams,
                                 uint team) {
    if (ends) return ends[team];
    const ShareEnd end = {units * (team + 1) / teams, 0, 0};
    return end;
}

#if DAEL_CHAINED
DAEL_KERNEL save_before(__global const uchar* in, const Segment one, __global const Segment* list,
                        __global const ShareEnd* ends, const ulong units, __global uint4* before) {
    const uint team = (uint)get_global_id(1);
    if (team == 0 || get_local_id(0) != 0) return;
    const ShareEnd begin = share_end(ends, units, (uint)get_global_size(1), team - 1);
    const Segment s = list ? list[begin.segment] : one;
    if (begin.unit != 0 && begin.unit < units_of(&s))
        before[team] = load_part(in, (long)(s.in + begin.unit * 512) - 16, 0, 16);
}
#endif

DAEL_KERNEL blocks(__global const uchar* in, __global uchar* out, const Segment one,
                   __global const Segment* list, __global const ShareEnd* ends, const ulong units,
                   __global const uint4* before, const RoundKeys keys) {
    DAEL_FILL_TABLES(tables);
    const uint lane = (uint)get_local_id(0), team = (uint)get_global_id(1);
    const uint teams = (uint)get_global_size(1);
    ulong left = units * (team + 1) / teams - units * team / teams;
    ShareEnd at = share_end(ends, units, teams, team);
    Segment s = list ? list[at.segment] : one;

#if DAEL_CHAINED
    // Every item comes by every barrier.
    for (ulong steps = units / teams + 1; steps != 0; --steps) {
        const bool busy = left != 0;
#else
    for (; left != 0;) {
        const bool busy = true;
#endif
        if (busy) {
            while (at.unit == 0) {
                s = list[--at.segment];
                at.unit = units_of(&s);
            }
            --at.unit;
            --left;
        }
        const ulong block = at.unit * kLanes + lane;
        const long first = (long)(block * 16) - s.skip;  // in the segment's data
        const long rest = (long)s.size - first;
        const bool whole = busy && rest >= 16 && ((s.in | s.out) & 15) == 0 && s.skip == 0;
        const int from = first < 0 ? (int)-first : 0;
        const int to = !busy || rest <= from ? from : rest < 16 ? (int)rest : 16;
        const long source = (long)s.in + first, target = (long)s.out + first;
#if DAEL_KEYSTREAM
        const uint4 x = (uint4)(0);
#else
        const uint4 x = whole ? load_block(in, source) : load_part(in, source, from, to);
#endif

#if DAEL_MODE >= 2
        uint4 previous = s.iv;
        if (busy && block != 0 && to > from) {
#if DAEL_CHAINED
            if (left == 0 && lane == 0)
                previous = before[team];
            else
#endif
                previous = whole ? load_block(in, source - 16) : load_part(in, source - 16, 0, 16);
        }
#endif
#if DAEL_CHAINED
        barrier(CLK_GLOBAL_MEM_FENCE);  // all have read before one writes
#endif

#if DAEL_MODE == 0
        const uint4 y = crypt(&tables, &keys, x, (uint4)(0));
#elif DAEL_MODE == 1  // SP 800-38A 6.5
        const uint4 y = crypt(&tables, &keys, counter_block(s.iv, block), x);
#elif DAEL_MODE == 2  // P[i] = D(C[i]) ^ C[i-1]  (SP 800-38A 6.2)
    const uint4 y = crypt(&tables, &keys, x, previous);
#else                 // P[i] = E(C[i-1]) ^ C[i]  (SP 800-38A 6.3)
    const uint4 y = crypt(&tables, &keys, previous, x);
#endif
        if (whole)
            store_block(out, target, y);
        else
            store_part(out, target, from, to, y);
    }
}
