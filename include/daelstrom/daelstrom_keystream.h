/* SPDX-License-Identifier: Apache-2.0
 *
 * AES-GCM for packets of many security associations (SAs), with keystream made ahead of time on a
 * GPU or on other cores; docs/keystream.md says when that pays. daelstrom.h, which does not include
 * this, says what holds for every call: errors, who owns what, threads, fork().
 *
 * Safety: a counter never serves two packets of a process. A key whose SA has sent is not taken for
 * another sending SA of any table, but for one that goes on from its exported state, and must not
 * be given to any other process, nor again after a restart. dael_sa_open() looks for no replays.
 * Nobody else may write to a packet's buffers during a call.
 *
 * Threads: any may call anything; calls for one SA wait for each other, and none waits for a filler
 * or a device. Close: no call of that table may be under way; a device that does not answer is
 * waited for `patience_ms`. fork(): a child cannot use its parent's tables (DAEL_LIMIT, at once);
 * it may close them. One table serves one core that works on packets. */
#ifndef DAELSTROM_DAELSTROM_KEYSTREAM_H
#define DAELSTROM_DAELSTROM_KEYSTREAM_H

#include <daelstrom/daelstrom_engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Brings keystream, for one table or several. */
typedef struct dael_sa_filler dael_sa_filler;
typedef struct dael_sa_filler_options {
    size_t struct_size;   /* sizeof(dael_sa_filler_options) */
    int32_t threads;      /* 0: 1 */
    int32_t lanes;        /* of each thread, on a device: blocks under way at once; 0: 8 */
    const int32_t* cpus;  /* processors for its threads (dael-filler-0, ...); null: those of the */
    size_t cpu_count;     /* program's first thread */
    uint32_t patience_ms; /* how long closing waits for a device that hangs; 0: 5000 */
    int32_t unused;       /* 0, as of every structure here */
} dael_sa_filler_options;
/* Errors: DAEL_INVALID_ARGUMENT, DAEL_OUT_OF_MEMORY, DAEL_DEVICE. */
DAEL_API dael_status dael_sa_filler_open(dael_engine* engine, const dael_sa_filler_options* options,
                                         dael_sa_filler** filler);
DAEL_API void dael_sa_filler_close(dael_sa_filler* filler);

typedef enum dael_sa_plan {
    DAEL_SA_MEASURED = 0, /* keystream ahead of time where that is faster, as opening measures */
    DAEL_SA_AHEAD = 1,    /* in any case */
    DAEL_SA_DIRECT = 2    /* never: packets are encrypted as they come */
} dael_sa_plan;

typedef struct dael_sa_table dael_sa_table;
typedef struct dael_sa_table_options {
    size_t struct_size; /* sizeof(dael_sa_table_options) */
    size_t budget;      /* bytes of keystream ready or under way at once; 0: 8 MiB */
    size_t block;       /* bytes that one launch makes at most; 0: as the budget allows */
    uint32_t overlap;   /* receiving: packets' worth kept for late ones; 0: 2048 */
    uint32_t idle_ms;   /* without packets for so long, an SA gives up its keystream; 0: 200 */
    uint32_t most_sas;  /* at once; 0: 1048576 */
    int32_t plan;       /* dael_sa_plan */
} dael_sa_table_options;
DAEL_API dael_status dael_sa_table_open(dael_sa_filler* filler,
                                        const dael_sa_table_options* options,
                                        dael_sa_table** table);
DAEL_API void dael_sa_table_close(dael_sa_table* table);

typedef enum dael_sa_direction { DAEL_SA_SENDING = 0, DAEL_SA_RECEIVING = 1 } dael_sa_direction;
typedef enum dael_sa_layout {
    DAEL_SA_RFC4106 = 0, /* the standard: IVs of 8 bytes */
    DAEL_SA_STREAM = 1   /* one counter stream, IVs of 12 bytes: for peers that do the same */
} dael_sa_layout;
typedef enum dael_sa_ivs {
    DAEL_SA_BY_SIZE = 0, /* two bits say how long the packet is, the others count */
    DAEL_SA_COUNTING = 1 /* the IV is the packet's number */
} dael_sa_ivs;

typedef struct dael_sa_options {
    size_t struct_size;   /* sizeof(dael_sa_options) */
    int32_t direction;    /* dael_sa_direction */
    int32_t layout;       /* dael_sa_layout */
    int32_t ivs;          /* dael_sa_ivs */
    int32_t stale_key;    /* 1: something was sent under this key before; it can only receive */
    uint8_t salt[4];      /* agreed on with the key */
    uint8_t first_iv[12]; /* stream */
    uint64_t tag_size;    /* bytes; 0: 16 */
    uint64_t limit;       /* packets sent; then DAEL_LIMIT. 0: as many as there are numbers */
    uint64_t soft_limit;  /* from here on sealing says "rekey soon"; 0: 7/8 of the limit */
    uint64_t quota;       /* bytes of keystream ready or under way at once; 0: no limit */
    int32_t direct;       /* 1: no keystream is made ahead of time for it */
    int32_t unused;
    /* Lifetimes of the key, 0: none; then DAEL_LIMIT, and from the soft ones on "rekey soon". */
    uint64_t limit_bytes, soft_limit_bytes, lifetime_ms, soft_lifetime_ms;
    uint64_t most_failed; /* receiving: after so many packets that failed, DAEL_LIMIT; 0: never */
} dael_sa_options;

/* Where a sending SA stands: no secret, but not to be altered, and for one SA alone. */
typedef struct dael_sa_state {
    size_t struct_size; /* sizeof(dael_sa_state) */
    uint64_t next;      /* number of the next packet */
    uint64_t ivs[4], bytes, age_ms;
} dael_sa_state;

/* `sa` names it for as long as the table lives. Errors: DAEL_INVALID_ARGUMENT, DAEL_LIMIT. */
DAEL_API dael_status dael_sa_add(dael_sa_table* table, const dael_key* key,
                                 const dael_sa_options* options, uint64_t* sa);
/* Another key and salt, numbers from 1 on; otherwise as it was. */
DAEL_API dael_status dael_sa_rekey(dael_sa_table* table, uint64_t sa, const dael_key* key,
                                   const uint8_t salt[4]);
DAEL_API dael_status dael_sa_remove(dael_sa_table* table, uint64_t sa);
/* The state beyond `more` packets, which are all that the SA may send from here on until it exports
 * again; with 0 it has sent its last. With the same layout and first_iv, whoever imports it repeats
 * no number; a process takes the last state of its own SAs once. Both: DAEL_INVALID_ARGUMENT. */
DAEL_API dael_status dael_sa_export(dael_sa_table* table, uint64_t sa, uint64_t more,
                                    dael_sa_state* state);
DAEL_API dael_status dael_sa_import(dael_sa_table* table, const dael_key* key,
                                    const dael_sa_options* options, const dael_sa_state* state,
                                    uint64_t* sa);

/* In host memory. Never changes. */
typedef struct dael_sa_packet {
    const uint8_t* in;
    uint8_t* out; /* `in` itself, or apart from it */
    size_t size;  /* of `in` and of `out` */
    const uint8_t* aad;
    size_t aad_size;
    uint8_t* iv;  /* 8 bytes, stream: 12. Sealing writes it, opening reads it */
    uint8_t* tag; /* sealing writes it, opening reads it */
} dael_sa_packet;

/* Seals all packets, or none. `numbered`, which may be null, is called when the packets have their
 * numbers (first, first + 1, ...) and before any AAD is read; it must call nothing of the table.
 * `first` and `rekey_soon` may be null. Errors: DAEL_LIMIT, DAEL_INVALID_ARGUMENT. */
DAEL_API dael_status dael_sa_seal(dael_sa_table* table, uint64_t sa, const dael_sa_packet* packets,
                                  size_t count, void (*numbered)(void* context, uint64_t first),
                                  void* context, uint64_t* first, int32_t* rekey_soon);
typedef struct dael_sa_sealed {
    size_t struct_size;
    uint64_t first;     /* number of the first packet */
    uint64_t epoch;     /* which of the SA's keys it was: 1, and one more with each rekeying */
    int32_t rekey_soon; /* a soft limit is passed */
    int32_t unused;
} dael_sa_sealed;
/* The same, and says more. */
DAEL_API dael_status dael_sa_seal_telling(dael_sa_table* table, uint64_t sa,
                                          const dael_sa_packet* packets, size_t count,
                                          void (*numbered)(void* context, uint64_t first),
                                          void* context, dael_sa_sealed* sealed);
/* codes[i], a dael_status: DAEL_OK, DAEL_AUTHENTICATION, DAEL_INVALID_ARGUMENT. After the latter
 * two the output holds what it held before, in place the ciphertext, or zeros. */
DAEL_API dael_status dael_sa_open(dael_sa_table* table, uint64_t sa, const dael_sa_packet* packets,
                                  size_t count, int32_t* codes);

typedef struct dael_sa_counters {
    size_t struct_size;             /* as this library has it; nothing beyond is there */
    uint64_t packets, bytes;        /* that were sealed or opened, or failed to open */
    uint64_t hits, partial, direct; /* packets: all of their keystream was there, a part, none */
    uint64_t overlapped;            /* those of the first two that came late, out of order */
    uint64_t failed;                /* to open */
    uint64_t windows;               /* runs of keystream that came */
    uint64_t made, used, dropped, ready; /* bytes of keystream */
    uint64_t fill_errors, memory;        /* of a table */
} dael_sa_counters;
/* Of one SA, or (0) of the table. `counters->struct_size` is the caller's. */
DAEL_API dael_status dael_sa_count(const dael_sa_table* table, uint64_t sa,
                                   dael_sa_counters* counters);
typedef struct dael_sa_status {
    size_t struct_size;
    uint64_t next;                    /* sending: number of the next packet */
    uint64_t epoch;                   /* which of its keys it has */
    uint64_t age_ms, since_packet_ms; /* of the key; since the last call with packets */
    int32_t key_bits;
    int32_t rekey_soon, expired; /* a soft limit or a hard one is passed */
    int32_t ahead;               /* keystream is made for it now */
} dael_sa_status;
DAEL_API dael_status dael_sa_read_status(const dael_sa_table* table, uint64_t sa,
                                         dael_sa_status* status);
/* How those stand who bring keystream: for a monitor. dael_sa_explain() has the last fault's text.
 */
typedef struct dael_sa_filling {
    size_t struct_size;
    uint64_t faults;   /* since the filler was opened */
    uint64_t retry_ms; /* until it is tried again */
    uint64_t waits_ms; /* that the oldest block has been under way: a device that hangs */
    int32_t works;     /* 0: after a fault, for as long as it rests */
    int32_t unused;
} dael_sa_filling;
DAEL_API dael_status dael_sa_read_filling(const dael_sa_table* table, dael_sa_filling* filling);
/* What was measured, and what is done for that: some lines of text, to `visit`, during which they
 * are valid. */
DAEL_API dael_status dael_sa_explain(const dael_sa_table* table,
                                     void (*visit)(void* context, const char* text), void* context);
/* Waits until there is nothing to fill: for tests and measurements. */
DAEL_API dael_status dael_sa_settle(dael_sa_table* table);

/* SAs from a file in libconfig's form (docs/keystream.md) enter the table in the file's order, up
 * to the first that is refused; `visit`, which may be null, gets each. Errors, with file and line:
 * DAEL_IO, DAEL_BAD_FORMAT, DAEL_KEY_SIZE, those of dael_sa_add; DAEL_UNSUPPORTED. */
DAEL_API dael_status dael_sa_load(dael_sa_table* table, const char* path,
                                  void (*visit)(void* context, uint64_t sa), void* context);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_KEYSTREAM_H */
