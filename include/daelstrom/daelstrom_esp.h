/* SPDX-License-Identifier: Apache-2.0
 *
 * IPsec's Encapsulating Security Payload (RFC 4303) with AES-GCM (RFC 4106), for C, over tables of
 * security associations (SAs) as daelstrom_keystream.h has them. docs/esp.md says what is promised,
 * and daelstrom.h what holds for every call.
 *
 * Safety. A sequence number is sent once, and sending stops for good when they are used up. A
 * packet that is not accepted leaves nothing of its plaintext, and moves no window. A key that has
 * sent must not be used to send again by anybody else, nor after a restart. IP headers, fragments,
 * IKE, and which inner packets an SA may carry, are yours. Nobody else may write to a packet's
 * buffer during a call.
 *
 * Threads: any may call anything. Close: no call of that handle may be under way. fork(): in a
 * child nothing is sent (DAEL_ESP_EXHAUSTED) or accepted (DAEL_ESP_FAULT), other calls say
 * DAEL_LIMIT, and handles may be freed.
 */
#ifndef DAELSTROM_DAELSTROM_ESP_H
#define DAELSTROM_DAELSTROM_ESP_H

#include <daelstrom/daelstrom_keystream.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#endif /* DAELSTROM_DAELSTROM_ESP_H */
