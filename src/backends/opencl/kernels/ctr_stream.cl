// SPDX-License-Identifier: Apache-2.0
// One long message in CTR with counter caching (counter_cache.cl). An item keeps `low` for the
// whole message; `middle` takes five lookups for 256 blocks. 129 lookups a block in place of
// AES-128's 160. Offsets are multiples of 16; the counter's low 32 bits do not wrap within the
// message.

typedef struct {
    ulong in, out;  // bytes from the beginning of the buffers
    ulong size;     // bytes
    ulong unused;
    uint4 iv;
} StreamWork;

// The message's ends, where a group of 256 counters is not full: `head` blocks before the whole
// groups, and what comes after block `tail`, by the plain rounds. The first team of every
// work-group.
static inline void edges(const Tables* tables, const RoundKeys* keys, __global const uchar* in,
                         __global uchar* out, const StreamWork* work, ulong head, ulong tail) {
    if (get_local_id(1) != 0) return;
    const ulong count = head + (work->size + 15) / 16 - tail;
    for (ulong i = get_group_id(1) * kLanes + get_local_id(0); i < count;
         i += get_num_groups(1) * kLanes) {
        const ulong block = i < head ? i : i - head + tail;
        const ulong rest = work->size - block * 16;
        const int size = rest < 16 ? (int)rest : 16;
        const uint4 x =
            DAEL_KEYSTREAM ? (uint4)(0) : load_part(in, (long)(work->in + block * 16), 0, size);
        store_part(out, (long)(work->out + block * 16), 0, size,
                   crypt(tables, keys, counter_block(work->iv, block), x));
    }
}

DAEL_KERNEL ctr_stream(__global const uchar* in, __global uchar* out, const StreamWork work,
                       const RoundKeys keys) {
    DAEL_FILL_TABLES(tables);
    // Groups of 256 are aligned in the counter, not in the data: the first whole one starts `head`
    // blocks in. No stream is shorter than that: it is long, or it ends or begins at a wrap.
    const uint start = byte_swap(work.iv.w);
    const uint head = -start & 255;
    const ulong groups = (work.size / 16 - head) / 256;
    edges(&tables, &keys, in, out, &work, head, head + groups * 256);

    const ulong squad = get_global_id(1) / kSquad, squads = get_global_size(1) / kSquad;
    const uint from = (uint)(groups * squad / squads);
    const uint to = (uint)(groups * (squad + 1) / squads);
    if (from == to) return;

    const uint position = (uint)(get_local_id(1) % kSquad * (kLanes * DAEL_HELD) + get_local_id(0));
    const uint4 round1 = cached_round1(&tables, &keys, work.iv);
    uint4 low[DAEL_HELD];
#pragma unroll
    for (int k = 0; k < DAEL_HELD; ++k)
        low[k] = cached_low(&tables, &keys, round1, position + kLanes * k);

    const ulong at = (head + from * (ulong)256 + position) * 16;
    in += work.in + at;
    out += work.out + at;
    uint counter = start + head + from * 256;
    const uint end = counter + (to - from) * 256;  // may wrap to 0
    uint4 high = cached_high(&tables, &keys, round1, counter);
    while (true) {
        const uint4 base = high ^ cached_middle(&tables, &keys, round1, counter);
#pragma unroll
        for (int k = 0; k < DAEL_HELD; ++k)
            store_block(out, 512 * k,
                        finish(&tables, &keys, base ^ low[k],
                               DAEL_KEYSTREAM ? (uint4)(0) : load_block(in, 512 * k), 3));
        counter += 256;
        if (counter == end) break;
        if ((counter & 0xff00) == 0)  // bytes 12 and 13 are new
            high = cached_high(&tables, &keys, round1, counter);
        in += 4096;
        out += 4096;
    }
}
