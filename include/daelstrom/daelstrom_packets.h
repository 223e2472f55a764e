/* SPDX-License-Identifier: Apache-2.0
 *
 * AES-GCM for packets of many security associations (SAs), with keystream made ahead of time on a
 * GPU or on other cores; docs/keystream.md says when that pays. daelstrom.h, which does not
 * include this, says what holds for every call: errors, who owns what, threads, fork().
 *
 * Safety: a counter never serves two packets of a process. A key whose SA has sent is not taken
 * for another sending SA of any table, but for one that goes on from its exported state, and must
 * not be given to any other process, nor again after a restart. dael_sa_open() looks for no
 * replays. Nobody else may write to a packet's buffers during a call.
 *
 * Threads: any may call anything; calls for one SA wait for each other, and none waits for a
 * filler or a device. Close: no call of that table may be under way; a device that does not answer
 * is waited for `patience_ms`. fork(): a child cannot use its parent's tables (DAEL_LIMIT, at
 * once); it may close them. One table serves one core that works on packets.
 */
#ifndef DAELSTROM_DAELSTROM_PACKETS_H
#define DAELSTROM_DAELSTROM_PACKETS_H

#include <daelstrom/daelstrom.h>

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

/* ESP.
 *
 * IPsec's Encapsulating Security Payload (RFC 4303) with AES-GCM (RFC 4106), for C, over tables of
 * security associations (SAs) as they are above. docs/esp.md says what is
 * promised.
 *
 * Safety. A sequence number is sent once, and sending stops for good when they are used up. A
 * packet that is not accepted leaves nothing of its plaintext, and moves no window. A key that has
 * sent must not be used to send again by anybody else, nor after a restart. IP headers, fragments,
 * IKE, and which inner packets an SA may carry, are yours. Nobody else may write to a packet's
 * buffer during a call.
 *
 * Threads: any may call anything. Close: no call of that handle may be under way. fork(): in a
 * child nothing is sent (DAEL_ESP_EXHAUSTED) or accepted (DAEL_ESP_FAULT), other calls say
 * DAEL_LIMIT, and handles may be freed. */

#define DAEL_ESP_HEADROOM 24 /* bytes before a payload that are enough for any SA, ... */
#define DAEL_ESP_TAILROOM 21 /* ... and after it; TFC padding comes on top */

/* What became of a packet. The values never change; they are those of dael::esp::Verdict. */
typedef enum dael_esp_verdict {
    DAEL_ESP_OK = 0,
    DAEL_ESP_TRUNCATED = 1, /* shorter than headers, trailer and ICV */
    DAEL_ESP_MALFORMED =
        2, /* lengths that cannot be, an SPI or number of 0; sending: next header 0 */
    DAEL_ESP_UNKNOWN_SPI = 3, /* no SA of this SPI */
    DAEL_ESP_TOO_OLD = 4,     /* before the window */
    DAEL_ESP_REPLAYED = 5,    /* came before */
    DAEL_ESP_BAD_ICV = 6,     /* forged, altered, or sealed with another key */
    DAEL_ESP_BAD_PADDING = 7, /* sealed with the SA's key, as the next two: not 1, 2, 3, ... */
    DAEL_ESP_BAD_INNER = 8,   /* the inner IP packet does not fit */
    DAEL_ESP_DUMMY = 9,       /* next header 59: to be dropped in silence */
    DAEL_ESP_IKE = 10,        /* UDP: an IKE message, which is what the packet holds now */
    DAEL_ESP_KEEPALIVE = 11,  /* UDP: one byte of 0xff */
    DAEL_ESP_EXHAUSTED = 12,  /* the SA's numbers are used up, or a lifetime is over */
    DAEL_ESP_NO_ROOM = 13,    /* sending: too little room before or after the payload */
    DAEL_ESP_FAULT = 14       /* the cipher failed */
} dael_esp_verdict;
/* In words; never null, whatever the value. A literal. */
DAEL_API const char* dael_esp_describe(int verdict);

/* A buffer and what lies in it, offset to offset + size. What goes out becomes the ESP packet in
 * the same buffer, what comes in the payload. 48 bytes, the layout of dael::esp::Packet. Never
 * changes. */
typedef struct dael_esp_packet {
    uint8_t* buffer;
    uint32_t capacity; /* bytes of the buffer */
    uint32_t offset;
    uint32_t size;
    uint32_t pad_to;     /* sending: TFC padding to at least so many bytes; 0: none */
    uint8_t next_header; /* 4: IPv4, 41: IPv6 (tunnel mode), 6: TCP, 17: UDP, ...; sending: not 0 */
    uint8_t verdict;     /* the answer: dael_esp_verdict */
    uint8_t unused[2];
    uint32_t spi;      /* an answer */
    uint64_t sequence; /* an answer: the whole number, upper half included */
    void* user;        /* the caller's own; not looked at */
} dael_esp_packet;

/* How packets come: as ESP, from a UDP header on, or as the content of a datagram of port 4500. */
typedef enum dael_esp_framing {
    DAEL_ESP_PLAIN = 0,
    DAEL_ESP_UDP = 1,
    DAEL_ESP_UDP_CONTENT = 2
} dael_esp_framing;

/* One SA. What is 0 has the default. */
typedef struct dael_esp_sa {
    size_t struct_size;
    uint32_t spi; /* 256 or above */
    uint8_t salt[4];
    uint8_t icv_size;   /* bytes: 8, 12 or 16; 0: 16 */
    uint8_t short_seq;  /* 1: sequence numbers of 32 bits; 0: extended ones, of 64 */
    uint8_t no_window;  /* receiving, 1: replays are not looked for; needs short_seq */
    uint8_t static_key; /* sending, 1: the key may have been used; refused */
    uint16_t udp_source, udp_destination; /* sending: UDP encapsulation, where not 0 */
    uint32_t window;                      /* receiving: packets, 32 to 1048576; 0: 1024 */
    uint32_t counting_ivs;                /* sending, 1: the IV is the sequence number */
    uint32_t direct;                      /* 1: no keystream ahead of time for this SA */
    uint32_t accept_again; /* receiving, 1: what the process accepted under this key before may be
                            * accepted again; 0: the window begins behind it */
    uint64_t limit;        /* sending: most packets; 0: as many as there are numbers */
    uint64_t soft_limit; /* sending: packets after which rekey_soon is said; 0: 7/8 of the limit */
    uint64_t limit_bytes, soft_limit_bytes; /* lifetimes, as of dael_sa_options */
    uint64_t lifetime_ms, soft_lifetime_ms;
    uint64_t most_bad_icvs; /* receiving: then all is DAEL_ESP_EXHAUSTED; 0: any number */
} dael_esp_sa;

/* Where an SA that receives stands. */
typedef struct dael_esp_window {
    size_t struct_size;
    uint64_t top;      /* the highest number that was accepted; 0: none */
    uint64_t accepted; /* packets */
    uint64_t* seen;    /* bit i of word j: whether top - (64 j + i) was accepted */
    size_t words;      /* of `seen`: as many as there is room for, or (an answer) were written; what
                        * they do not say counts as seen */
} dael_esp_window;

/* Never changes. */
typedef struct dael_esp_counters {
    uint64_t packets[32]; /* by verdict */
    uint64_t bytes;       /* of payloads that were sent or accepted */
    uint64_t unused[7];
} dael_esp_counters;

typedef struct dael_esp dael_esp;               /* the table, and the SAs that receive */
typedef struct dael_esp_sender dael_esp_sender; /* one SA that sends */

/* A table of its own, one for each core that works on packets; several share a filler, which they
 * keep alive. `options` may be null. Errors: as dael_sa_table_open. */
DAEL_API dael_status dael_esp_open(dael_sa_filler* filler, const dael_sa_table_options* options,
                                   dael_esp** esp);
DAEL_API void dael_esp_free(dael_esp* esp);

/* An SA that receives, while packets flow. Errors: DAEL_INVALID_ARGUMENT, also for an SPI that is
 * taken, or that no SA has; DAEL_LIMIT; DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_esp_add(dael_esp* esp, const dael_key* key, const dael_esp_sa* sa);
DAEL_API dael_status dael_esp_remove(dael_esp* esp, uint32_t spi);
/* Where it stands; with `remove` 1 where it stood in the end, after which it is removed. */
DAEL_API dael_status dael_esp_export(dael_esp* esp, uint32_t spi, int remove,
                                     dael_esp_window* window);
/* One that goes on from there. Where the process has accepted other packets since then, all up to
 * the highest number counts as seen. */
DAEL_API dael_status dael_esp_import(dael_esp* esp, const dael_key* key, const dael_esp_sa* sa,
                                     const dael_esp_window* window);
/* Every packet has its verdict; *accepted (may be null) says how many are DAEL_ESP_OK. A packet
 * that is refused is no error. */
DAEL_API dael_status dael_esp_decapsulate(dael_esp* esp, dael_esp_packet* packets, size_t count,
                                          int framing, size_t* accepted);
/* Of one SA that receives, or of all (spi 0). */
DAEL_API dael_status dael_esp_count(const dael_esp* esp, uint32_t spi, dael_esp_counters* counters);

/* An SA that sends. Errors: DAEL_INVALID_ARGUMENT, also for a key that has sent; as above. */
DAEL_API dael_status dael_esp_sender_open(dael_esp* esp, const dael_key* key, const dael_esp_sa* sa,
                                          dael_esp_sender** sender);
/* As dael_sa_export and dael_sa_import. */
DAEL_API dael_status dael_esp_sender_export(dael_esp_sender* sender, uint64_t more,
                                            dael_sa_state* state);
DAEL_API dael_status dael_esp_sender_import(dael_esp* esp, const dael_key* key,
                                            const dael_esp_sa* sa, const dael_sa_state* state,
                                            dael_esp_sender** sender);
DAEL_API void dael_esp_sender_free(dael_esp_sender* sender);
/* Each packet becomes an ESP packet, in order, or says why not and is left as it was. *sent (may be
 * null): how many are DAEL_ESP_OK. *rekey_soon (may be null): 1 once the soft limit is passed.
 * Errors: DAEL_INTERNAL, DAEL_OUT_OF_MEMORY: send nothing of these packets. */
DAEL_API dael_status dael_esp_encapsulate(dael_esp_sender* sender, dael_esp_packet* packets,
                                          size_t count, size_t* sent, int* rekey_soon);
DAEL_API dael_status dael_esp_sender_count(const dael_esp_sender* sender,
                                           dael_esp_counters* counters);

/* Bytes of the packet that `payload` bytes become with an SA's ICV and ports (outer IP headers come
 * on top), and the longest payload whose packet takes `room` bytes at most. */
DAEL_API dael_status dael_esp_packet_size(const dael_esp_sa* sa, size_t payload, size_t pad_to,
                                          size_t* size);
DAEL_API dael_status dael_esp_most_payload(const dael_esp_sa* sa, size_t room, size_t* payload);
/* The checksum that UDP needs over IPv6, which dael_esp_encapsulate leaves 0, into a datagram from
 * its UDP header on. Addresses of 16 bytes. */
DAEL_API dael_status dael_esp_udp6_checksum(uint8_t* datagram, size_t size,
                                            const uint8_t source[16],
                                            const uint8_t destination[16]);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_PACKETS_H */
