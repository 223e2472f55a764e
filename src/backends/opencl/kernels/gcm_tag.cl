// SPDX-License-Identifier: Apache-2.0
// GCM's beginning and end: a key's powers of H, and a message's tag. Made for one key size; AES is
// computed without tables, since there is one block of it for each key and each message.
//
// DAEL_KEYED is 1. DAEL_AUTHENTICATION: the result of a message whose tag is another.

// A key's powers, by a work-group of one team: H is the cipher of zeros (SP 800-38D 7.1).
static inline void fill_powers(__global const GcmSchedule* schedule, __global GcmPowers* key,
                               __local uint4* powers) {
    const Tables none = {0, 0};
    const uint lane = (uint)get_local_id(0);
    if (lane == 0) {
        powers[0] = (uint4)(0x80000000u, 0, 0, 0);
        powers[1] = swap_words(crypt(&none, (KeyPointer)schedule, (uint4)(0), (uint4)(0)));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint known = 1; known < kLanes; known *= 2) {
        if (lane < known) powers[known + lane + 1] = gf_multiply(powers[known], powers[lane + 1]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint i = lane; i < kPowers; i += kLanes) key->powers[i] = powers[i];
    if (lane == 0) {
        uint4 square = powers[1];
        for (uint j = 0; j < kSquares; ++j) {
            key->squares[j] = square;
            square = gf_multiply(square, square);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// Of a set of keys, those of this size.
DAEL_KERNEL gcm_powers(__global const GcmSchedule* schedules, const uint count,
                       __global GcmPowers* keys) {
    __local uint4 powers[kPowers];
    for (uint k = (uint)get_group_id(1); k < count; k += (uint)get_num_groups(1))
        if (schedules[k].rounds == DAEL_ROUNDS) fill_powers(&schedules[k], &keys[k], powers);
    DAEL_WIPE_LOCAL(powers);
}

// Another key, of this size, in the place of key `index`: one work-group.
DAEL_KERNEL gcm_replace(const GcmSchedule key, const uint index, __global GcmSchedule* schedules,
                        __global GcmPowers* keys) {
    __local uint4 powers[kPowers];
    for (uint i = (uint)get_local_id(0); i < 60; i += kLanes) schedules[index].w[i] = key.w[i];
    if (get_local_id(0) == 0) schedules[index].rounds = key.rounds;
    barrier(CLK_GLOBAL_MEM_FENCE);
    fill_powers(&schedules[index], &keys[index], powers);
    DAEL_WIPE_LOCAL(powers);
}

// One message to a work-item: the tag is written, or compared in a time that does not depend on
// it, and the result is known.
DAEL_KERNEL gcm_tags(__global uchar* tags, __global const GcmItem* items, const uint count,
                     const uint tag_size, const uint opening, __global const GcmSchedule* schedules,
                     __global const GcmPowers* keys, __global const uint4* sums,
                     __global uint* results) {
    const Tables none = {0, 0};
    const ulong step = (ulong)get_global_size(1) * kLanes;
    for (ulong i = (ulong)get_global_id(1) * kLanes + get_local_id(0); i < count; i += step) {
        const GcmItem m = items[i];
        if (schedules[m.key].rounds != DAEL_ROUNDS) continue;  // another launch's
        const ulong aad_bits = m.aad_size * 8, bits = m.size * 8;
        const uint4 lengths =
            (uint4)((uint)(aad_bits >> 32), (uint)aad_bits, (uint)(bits >> 32), (uint)bits);
        const uint4 h = keys[m.key].powers[1];
        const uint4 hash = gf_multiply(gf_multiply(sums[i], h) ^ lengths, h);
        const uint4 tag = crypt(&none, (KeyPointer)&schedules[m.key], m.counter, swap_words(hash));
        uint code = 0;
        if (opening) {
            const uint4 differs = load_part(tags, (long)m.tag, 0, (int)tag_size) ^ tag;
            // Of the tag's words, those bytes that it has.
            uint any = 0;
            const uint words[4] = {differs.x, differs.y, differs.z, differs.w};
#pragma unroll
            for (int b = 0; b < 16; ++b)
                any |= b < (int)tag_size ? words[b / 4] >> 8 * (b % 4) & 0xffu : 0;
            code = any != 0 ? DAEL_AUTHENTICATION : 0;
        } else {
            store_part(tags, (long)m.tag, 0, (int)tag_size, tag);
        }
        results[m.result] = code;
    }
}
