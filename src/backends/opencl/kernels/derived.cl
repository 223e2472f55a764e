// SPDX-License-Identifier: Apache-2.0
// Modes whose messages have keys of their own, derived of a key of the set and the nonce:
// XAES-256-GCM (C2SP) and AES-GCM-SIV (RFC 8452). What is derived lies in local memory, and ends
// with the kernel.
//
// DAEL_SIV: 1 AES-GCM-SIV, 0 XAES-256-GCM. DAEL_WIDE: 1 gives each message a work-group, 0 a team.
// DAEL_KEYED is 2. DAEL_ROUNDS is that of the keys, the set's and the derived ones; messages of
// others are another launch's, or, in XAES, which has one size, are not done.
//
// A message's items hash as ghash.cl's do: each every n-th block by Horner's rule with H^n. POLYVAL
// is GHASH of the same blocks, bytes in reverse, under x H (RFC 8452, appendix A), so that there is
// one field.
//
// XAES opens in two passes, and decrypts what is authentic only. The tag of GCM-SIV is the
// plaintext's: what was forged is wiped, or where it was opened in place encrypted again, which
// gives the ciphertext that was there, before its result is written.

#if DAEL_WIDE
enum { kShare = DAEL_TEAMS * kLanes, kAtOnce = 1 };  // items of a message, messages of a group
#else
enum { kShare = kLanes, kAtOnce = DAEL_TEAMS };
#endif

// A block as an element of GHASH's field.
static inline uint4 to_element(uint4 block) {
    return DAEL_SIV ? block.wzyx : swap_words(block);
}

// SubWord() of FIPS 197 5.2.
static inline uint substitute_word(const Tables* t, uint w) {
    return last_column(t, w, w, w, w, 0);
}

// The rest of a key schedule (FIPS 197 5.2), whose first words, the key, are there.
static inline void expand_key(const Tables* t, __local uint* w) {
    const int words = DAEL_ROUNDS - 6;
    uint last = w[words - 1], power = 1;
    for (int i = words, k = 0; i < 4 * (DAEL_ROUNDS + 1); ++i, k = k + 1 == words ? 0 : k + 1) {
        if (k == 0) {
            last = substitute_word(t, rotate(last, 24u)) ^ power;
            power = xtime_each(power);
        } else if (words == 8 && k == 4) {
            last = substitute_word(t, last);
        }
        last ^= w[i - words];
        w[i] = last;
    }
}

// What block `i` of those that a message's keys are made of is the cipher of. `h`: the set's key's
// H, which is the cipher of zeros.
static inline uint4 deriving_block(const AeadItem* m, uint4 h, uint i) {
#if DAEL_SIV
    return (uint4)(i, m->start.xyz);
#else
    // CMAC's of one block: a 16-bit number, "X", 0, and N[:12], with its first subkey (SP 800-38B
    // 6.1), which is twice the cipher of zeros.
    const uint4 subkey = (uint4)(h.x << 1 | h.y >> 31, h.y << 1 | h.z >> 31, h.z << 1 | h.w >> 31,
                                 h.w << 1 ^ (0x87u & (0 - (h.x >> 31))));
    return (uint4)((i + 1) << 8 | 0x580000u, m->start.xyz) ^ swap_words(subkey);
#endif
}

// The counter of data block `block`. `start`: of GCM-SIV, the tag (RFC 8452, section 4).
static inline uint4 counter_of(uint4 start, ulong block) {
#if DAEL_SIV
    return (uint4)(start.x + (uint)block, start.yz, start.w | 0x80000000u);
#else
    return (uint4)(start.xyz, byte_swap((uint)block + 2));
#endif
}

// A message as a sequence of blocks: its AAD, its data, their lengths.
static inline ulong sequence_of(const AeadItem* m) {
    return blocks_of(m->aad_size) + blocks_of(m->size) + 1;
}

// What is done with its data: encrypted or decrypted, or zeros in its place, or it is read alone.
typedef struct {
    bool crypts, wipes;
    bool hashes_output;
} Way;

// From block `first` of the sequence, which may be before it, each kShare-th one to `end`: this
// item's share of the hash.
static inline uint4 go_over(const Tables* t, KeyPointer schedule, __global const uchar* in,
                            __global uchar* out, __global const uchar* aad, const AeadItem* m,
                            uint4 start, uint4 step, Way way, long first, long end) {
    const ulong aad_blocks = blocks_of(m->aad_size), sequence = sequence_of(m);
    uint4 share = (uint4)(0);
    for (long i = first; i < end; i += kShare) {
        uint4 x = (uint4)(0);
        if (i >= (long)sequence - 1) {
            const ulong aad_bits = m->aad_size * 8, bits = m->size * 8;
            const uint4 lengths =
                (uint4)((uint)(aad_bits >> 32), (uint)aad_bits, (uint)(bits >> 32), (uint)bits);
            x = DAEL_SIV ? lengths.zwxy : lengths;
        } else if (i >= (long)aad_blocks) {
            const ulong block = i - aad_blocks;
            const int size = bytes_at(block * 16, m->size);
            x = load_bytes(in, m->in + block * 16, size);
            uint4 y = (uint4)(0);
            if (way.crypts) y = crypt(t, schedule, counter_of(start, block), x);
            if (way.crypts || way.wipes) store_bytes(out, m->out + block * 16, size, y);
            x = to_element(!way.hashes_output ? x : size == 16 ? y : first_bytes(y, size));
        } else if (i >= 0) {
            x = to_element(load_bytes(aad, m->aad + i * 16, bytes_at(i * 16, m->aad_size)));
        }
        // Of the first row there is no sum yet.
        share = (i < first + kShare ? (uint4)(0) : gf_multiply(share, step)) ^ x;
    }
    return share;
}

DAEL_KERNEL derived(__global const uchar* in, __global uchar* out, __global const uchar* aad,
                    __global uchar* tags, __global const AeadItem* items, const uint count,
                    const uint tag_size, const uint opening, __global const GcmSchedule* schedules,
                    __global const GcmPowers* keys, __global uint* results) {
    DAEL_FILL_TABLES(tables);
    __local uint4 blocks[DAEL_TEAMS * kLanes];  // what items tell each other
    __local uint4 schedule_memory[kAtOnce * (DAEL_ROUNDS + 1)];
    // Of an id in any case: where all of a work-group's items have a message by its number alone,
    // PoCL 3 makes it zeros.
    const uint slot = (uint)get_local_id(1) / (DAEL_WIDE ? DAEL_TEAMS : 1);
    const uint item = ((uint)get_local_id(1) * kLanes + (uint)get_local_id(0)) % kShare;
    __local uint4* const shared = blocks + slot * kShare;
    __local uint4* const schedule = schedule_memory + slot * (DAEL_ROUNDS + 1);
    // Neighbouring messages, of about the same length, go to as many work-groups as there are.
    // Every item comes by every barrier.
    const ulong team = slot * get_num_groups(1) + get_group_id(1);
    for (ulong from = 0; from < count; from += get_num_groups(1) * kAtOnce) {
        const bool listed = from + team < count;
        const AeadItem m = items[listed ? from + team : 0];
        const bool busy = listed && schedules[m.key].rounds == DAEL_ROUNDS;
        if (busy)
            for (uint r = item; r <= DAEL_ROUNDS; r += kShare)
                schedule[r] = ((__global const uint4*)&schedules[m.key])[r];
        barrier(CLK_LOCAL_MEM_FENCE);

        // The message's keys: GCM-SIV has the first half of each block, of which two are the hash
        // key.
        const uint made_of = DAEL_SIV ? DAEL_ROUNDS / 2 - 1 : 2;
        uint4 made = (uint4)(0);
        if (busy && item < made_of)
            made = crypt(&tables, schedule, deriving_block(&m, keys[m.key].powers[1], item),
                         (uint4)(0));
        barrier(CLK_LOCAL_MEM_FENCE);
        if (busy && item < made_of) {
#if DAEL_SIV
            if (item < 2)
                ((__local uint2*)shared)[item] = made.xy;
            else
                ((__local uint2*)schedule)[item - 2] = made.xy;
#else
            schedule[item] = made;
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (busy && item == 0) expand_key(&tables, (__local uint*)schedule);
        barrier(CLK_LOCAL_MEM_FENCE);

        // H, or x times POLYVAL's. Item 1 has GCM's mask of the tag.
        uint4 start, mask = (uint4)(0);
#if DAEL_SIV
        start = opening && busy ? load_bytes(tags, m.tag, 16) : (uint4)(0);
        if (busy && item == 0) shared[0] = times_x(to_element(shared[0]), 1);
#else
        start = (uint4)(m.start.w, m.rest.xy, 0);
        if (busy && item < 2) {
            mask = crypt(&tables, schedule,
                         item == 0 ? (uint4)(0) : (uint4)(start.xyz, byte_swap(1u)), (uint4)(0));
            if (item == 0) shared[0] = swap_words(mask);
        }
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint known = 1; known < kShare; known *= 2) {
            if (busy && item < known)
                shared[known + item] = gf_multiply(shared[known - 1], shared[item]);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const uint4 step = shared[kShare - 1], own = shared[kShare - 1 - item];  // H^n
        barrier(CLK_LOCAL_MEM_FENCE);

        const ulong sequence = sequence_of(&m);
        const bool opens = opening != 0, hashes_output = opens == (DAEL_SIV != 0);
        Way way = {busy && hashes_output, false, hashes_output};
        uint4 share = (uint4)(0);
        if (busy)
            share = go_over(&tables, schedule, in, out, aad, &m, start, step, way,
                            // The last row is full: zeros come before the first block, and count
                            // for nothing.
                            (long)item - (long)(-sequence & (kShare - 1)), (long)sequence);
        shared[item] = gf_multiply(share, own);
        for (uint wide = kShare / 2; wide != 0; wide /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item < wide) shared[item] ^= shared[item + wide];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        uint4 tag = (uint4)(0);
        if (busy && item == 1 - DAEL_SIV) {
            tag = to_element(shared[0]);  // which is its own inverse
#if DAEL_SIV
            tag ^= (uint4)(m.start.xyz, 0);
            tag.w &= 0x7fffffffu;
            tag = crypt(&tables, schedule, tag, (uint4)(0));
#else
            tag ^= mask;
#endif
            shared[0] = tag;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        tag = shared[0];
        if (busy && !opens && item == 0) store_bytes(tags, m.tag, 16, tag);
        const bool forged = busy && opens && difference(tag, load_bytes(tags, m.tag, 16)) != 0;
        way.hashes_output = false;
#if DAEL_SIV
        if (!opens) start = tag;
        way.crypts = !opens || (forged && m.in_place);
        way.wipes = forged && !m.in_place;
#else
        way.crypts = opens && !forged;
#endif
        if (busy && (way.crypts || way.wipes))
            go_over(&tables, schedule, in, out, aad, &m, start, (uint4)(0), way,
                    (long)(blocks_of(m.aad_size) + item), (long)sequence - 1);
        // Before its keys make room for the next one's.
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        // GCM-SIV has two sizes of keys, and no third.
        if (listed && item == 0 && (busy || !DAEL_SIV || schedules[m.key].rounds == 12))
            results[m.result] = !busy ? DAEL_INTERNAL : forged ? DAEL_AUTHENTICATION : 0;
    }
    DAEL_WIPE_LOCAL(blocks);
    DAEL_WIPE_LOCAL(schedule_memory);
}
