// SPDX-License-Identifier: Apache-2.0
// AEGIS (RFC 10032): a work-item to each state, so that a message of AEGIS-128X has DAEL_DEGREE
// neighbouring ones, which meet at its tag only. An AES round of AEGIS is one_round() of aes.cl,
// whose round key is another block of the state.
//
// Opening is one pass: plaintext is written before the tag is known. What was forged is wiped, or
// where it was opened in place encrypted again, which gives the ciphertext that was there, before
// its result is written.
//
// DAEL_ROUNDS says which kind of key: 10 for AEGIS-128L and -128X, 14 for AEGIS-256.

#if DAEL_ROUNDS == 14
enum { kBlocks = 6, kBegin = 16 };
#define DAEL_HALVES 1  // blocks that an update takes
#else
enum { kBlocks = 8, kBegin = 10 };
#define DAEL_HALVES 2
#endif
enum { kEnd = 7, kRate = 16 * DAEL_HALVES * DAEL_DEGREE };

// A state is in registers where its loops are unrolled; computed rounds are long, and compilers
// slow with many.
#if DAEL_TABLES > 0
#define DAEL_BLOCKS_AT_ONCE 8
#else
#define DAEL_BLOCKS_AT_ONCE 1
#endif

#define DAEL_C0 (uint4)(0x02010100u, 0x0d080503u, 0x59372215u, 0x6279e990u)
#define DAEL_C1 (uint4)(0x55183ddbu, 0xf12fc26du, 0x42311120u, 0xdd28b573u)

typedef struct {
    uint4 s[kBlocks];
} AegisState;

// Update().
static inline void aegis_update(const Tables* t, AegisState* a, uint4 m0, uint4 m1) {
    const uint4 last = a->s[kBlocks - 1];
#pragma unroll DAEL_BLOCKS_AT_ONCE
    for (int i = kBlocks - 1; i >= 0; --i) {
        uint4 key = a->s[i];
        if (i == 0) key ^= m0;
        if (DAEL_HALVES == 2 && i == 4) key ^= m1;
        a->s[i] = one_round(t, i == 0 ? last : a->s[i == 0 ? 0 : i - 1], key);
    }
}

// What Init() begins with. `key` and `nonce`: their halves, of AEGIS-256.
static inline void aegis_first(AegisState* a, const uint4* key, const uint4* nonce) {
#if DAEL_HALVES == 1
    a->s[0] = key[0] ^ nonce[0];
    a->s[1] = key[1] ^ nonce[1];
    a->s[2] = DAEL_C1;
    a->s[3] = DAEL_C0;
    a->s[4] = key[0] ^ DAEL_C0;
    a->s[5] = key[1] ^ DAEL_C1;
#else
    a->s[0] = a->s[4] = key[0] ^ nonce[0];
    a->s[1] = a->s[3] = DAEL_C1;
    a->s[2] = DAEL_C0;
    a->s[5] = a->s[7] = key[0] ^ DAEL_C0;
    a->s[6] = key[0] ^ DAEL_C1;
#endif
}

// z0 and z1 of Enc() and Dec().
static inline uint4 aegis_z0(const AegisState* a) {
#if DAEL_HALVES == 1
    return a->s[1] ^ a->s[4] ^ a->s[5] ^ (a->s[2] & a->s[3]);
#else
    return a->s[6] ^ a->s[1] ^ (a->s[2] & a->s[3]);
#endif
}
#if DAEL_HALVES == 2
static inline uint4 aegis_z1(const AegisState* a) {
    return a->s[2] ^ a->s[5] ^ (a->s[6] & a->s[7]);
}
#endif

// 16 bytes of data from byte `at` of the message on: encrypted or decrypted by `z`. The plaintext,
// which the state takes.
static inline uint4 aegis_data(__global const uchar* in, __global uchar* out, const AeadItem* m,
                               ulong at, uint4 z, bool opening) {
    const int size = bytes_at(at, m->size);
    const uint4 x = load_bytes(in, m->in + at, size), y = x ^ z;
    store_bytes(out, m->out + at, size, y);
    return !opening ? x : size == 16 ? y : first_bytes(y, size);
}

// State `d` of a message, from its beginning to behind Finalize()'s updates: one loop over all
// updates, so that there is one place where they are compiled.
static inline void aegis_message(const Tables* t, AegisState* a, __global const uchar* in,
                                 __global uchar* out, __global const uchar* aad, const AeadItem* m,
                                 __global const GcmSchedule* schedule, uint d, bool opening) {
    // The first round keys are the key itself.
    const uint4 key[2] = {((__global const uint4*)schedule)[0],
                          ((__global const uint4*)schedule)[1]};
    const uint4 nonce[2] = {m->start, m->rest};
    aegis_first(a, key, nonce);
    const ulong aad_end = kBegin + m->aad_size / kRate + (m->aad_size % kRate != 0);
    const ulong data_end = aad_end + m->size / kRate + (m->size % kRate != 0);
    uint4 last = (uint4)(0);
    for (ulong update = 0; update < data_end + kEnd; ++update) {
        uint4 m0, m1 = (uint4)(0);
        if (update >= aad_end && update < data_end) {
            const ulong at = (update - aad_end) * kRate + d * 16;
            const uint4 z0 = aegis_z0(a);
#if DAEL_HALVES == 2
            const uint4 z1 = aegis_z1(a);
            m1 = aegis_data(in, out, m, at + 16 * DAEL_DEGREE, z1, opening);
#endif
            m0 = aegis_data(in, out, m, at, z0, opening);
        } else if (update < kBegin) {
#if DAEL_HALVES == 1
            const uint i = (uint)update & 3;  // k0, k1, k0 ^ n0, k1 ^ n1, in turn
            m0 = (i & 1) != 0 ? key[1] : key[0];
            if (i >= 2) m0 ^= (i & 1) != 0 ? nonce[1] : nonce[0];
#else
            const uint4 context = (uint4)(d | (DAEL_DEGREE - 1) << 8, 0, 0, 0);
            a->s[3] ^= context;
            a->s[7] ^= context;
            m0 = nonce[0];
            m1 = key[0];
#endif
        } else if (update < aad_end) {
            const ulong at = (update - kBegin) * kRate + d * 16;
            m0 = load_bytes(aad, m->aad + at, bytes_at(at, m->aad_size));
#if DAEL_HALVES == 2
            const ulong next = at + 16 * DAEL_DEGREE;
            m1 = load_bytes(aad, m->aad + next, bytes_at(next, m->aad_size));
#endif
        } else {
            if (update == data_end) {
                const ulong aad_bits = m->aad_size * 8, bits = m->size * 8;
                last =
                    a->s[DAEL_HALVES == 1 ? 3 : 2] ^
                    (uint4)((uint)aad_bits, (uint)(aad_bits >> 32), (uint)bits, (uint)(bits >> 32));
            }
            m0 = m1 = last;
        }
        aegis_update(t, a, m0, m1);
    }
}

// This state's share of the tag's 16 bytes number `part`.
static inline uint4 aegis_tag(const AegisState* a, uint part, uint tag_size) {
    const int blocks = tag_size == 16 ? (kBlocks == 8 ? 7 : kBlocks) : kBlocks / 2;
    uint4 sum = (uint4)(0);
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
        const bool first = i < blocks;
        if (part == 0 ? first : !first) sum ^= a->s[i];
    }
    return sum;
}

DAEL_KERNEL aegis(__global const uchar* in, __global uchar* out, __global const uchar* aad,
                  __global uchar* tags, __global const AeadItem* items, const uint count,
                  const uint tag_size, const uint opening, __global const GcmSchedule* schedules,
                  __global const GcmPowers* unused, __global uint* results) {
    DAEL_FILL_TABLES(tables);
#if DAEL_DEGREE > 1
    __local uint4 shares[DAEL_TEAMS * kLanes];
#endif
    const uint lane = (uint)get_local_id(0), d = lane % DAEL_DEGREE;
    // Neighbouring messages, of about the same length, go to neighbouring items; teams of 32 to as
    // many work-groups as there are. Every item comes by every barrier.
    const ulong each = kLanes / DAEL_DEGREE;
    const ulong team = get_local_id(1) * get_num_groups(1) + get_group_id(1);
    for (ulong from = 0; from < count; from += get_global_size(1) * each) {
        const ulong i = from + team * each + lane / DAEL_DEGREE;
        const bool listed = i < count;
        const AeadItem m = items[listed ? i : 0];
        // A key of another size may have been put in the place of the message's.
        const bool busy = listed && schedules[m.key].rounds == DAEL_ROUNDS;
        uint code = busy ? 0 : DAEL_INTERNAL;
        bool again = false;  // to encrypt what was opened in place, and forged
        for (uint pass = 0; pass < 2; ++pass) {
            AegisState state;
            if (pass == 0 ? busy : again)
                aegis_message(&tables, &state, in, out, aad, &m, &schedules[m.key], d,
                              pass == 0 && opening);
            if (pass != 0) break;
            uint differs = 0;
            for (uint part = 0; part < tag_size / 16; ++part) {
                uint4 tag = busy ? aegis_tag(&state, part, tag_size) : (uint4)(0);
#if DAEL_DEGREE > 1
                const uint place = (uint)get_local_id(1) * kLanes + lane;
                shares[place] = tag;
                barrier(CLK_LOCAL_MEM_FENCE);
                tag = (uint4)(0);
                for (uint k = 0; k < DAEL_DEGREE; ++k) tag ^= shares[place - d + k];
                barrier(CLK_LOCAL_MEM_FENCE);
#endif
                const ulong at = m.tag + 16 * part;
                if (busy && opening)
                    differs |= difference(tag, load_bytes(tags, at, 16));
                else if (busy && d == 0)
                    store_bytes(tags, at, 16, tag);
            }
            if (differs != 0) {
                code = DAEL_AUTHENTICATION;
                again = m.in_place != 0;
                for (ulong at = 16 * d; !again && at < m.size; at += 16 * DAEL_DEGREE)
                    store_bytes(out, m.out + at, bytes_at(at, m.size), (uint4)(0));
            }
        }
        if (listed && d == 0) results[m.result] = code;
    }
#if DAEL_DEGREE > 1
    DAEL_WIPE_LOCAL(shares);
#endif
}
