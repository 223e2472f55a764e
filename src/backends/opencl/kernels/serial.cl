// SPDX-License-Identifier: Apache-2.0
// Modes that are sequential within a message: one message to a work-item. They pay only in batches
// of many thousands of messages.
//
// DAEL_MODE: 4 CBC encryption, 5 CFB encryption, 6 OFB. DAEL_KEYED: 1 for a key to each message.

#if DAEL_KEYED
#define SERIAL_KEYS __global const GcmSchedule* schedules
#define SERIAL_KEY(segment) (KeyPointer) & schedules[(segment).key]
#else
#define SERIAL_KEYS const RoundKeys keys
#define SERIAL_KEY(segment) &keys
#endif

DAEL_KERNEL serial(__global const uchar* in, __global uchar* out, __global const Segment* list,
                   const uint count, SERIAL_KEYS) {
    DAEL_FILL_TABLES(tables);
    // Neighbouring messages, of about the same length, go to neighbouring items; teams of 32 to as
    // many work-groups as there are.
    const ulong team = get_local_id(1) * get_num_groups(1) + get_group_id(1);
    for (ulong m = team * kLanes + get_local_id(0); m < count; m += get_global_size(1) * kLanes) {
        const Segment s = list[m];
#if DAEL_KEYED
        if (schedules[s.key].rounds != DAEL_ROUNDS) continue;  // another launch's
#endif
        const KeyPointer key = SERIAL_KEY(s);
        const bool aligned = ((s.in | s.out) & 15) == 0;
        uint4 chain = s.iv;
        for (ulong at = 0; at < s.size; at += 16) {
            const int size = s.size - at < 16 ? (int)(s.size - at) : 16;
            const bool whole = aligned && size == 16;
            const uint4 x =
                whole ? load_block(in, s.in + at) : load_part(in, (long)(s.in + at), 0, size);
#if DAEL_MODE == 4  // C[i] = E(P[i] ^ C[i-1])  (SP 800-38A 6.2)
            const uint4 y = chain = crypt(&tables, key, x ^ chain, (uint4)(0));
#elif DAEL_MODE == 5  // C[i] = E(C[i-1]) ^ P[i]  (SP 800-38A 6.3)
            const uint4 y = chain = crypt(&tables, key, chain, x);
#else                 // O[i] = E(O[i-1])  (SP 800-38A 6.4)
            chain = crypt(&tables, key, chain, (uint4)(0));
            const uint4 y = chain ^ x;
#endif
            if (whole)
                store_block(out, s.out + at, y);
            else
                store_part(out, (long)(s.out + at), 0, size, y);
        }
    }
}
