/* SPDX-License-Identifier: Apache-2.0
 *
 * daelstrom for C, and for whatever can call C. Sealed data and files are in daelstrom_sealed.h,
 * IPsec packets in daelstrom_packets.h, buffers of OpenCL in daelstrom_opencl.h. The smallest
 * whole program is examples/sealed_message.c.
 *
 * Safety: gcm authenticates, every other mode keeps secrets only. A start (nonce, counter block,
 * IV) must never repeat under one key; a CBC or CFB IV must be unpredictable; ECB shows equal
 * blocks.
 *
 * What holds for every call, where it does not say otherwise:
 *
 * Errors. What can fail returns a dael_status; dael_last_error() then says, for the calling
 * thread, what exactly went wrong. No exception leaves the library, nothing is printed, nothing
 * exits. A null pointer is refused (DAEL_INVALID_ARGUMENT) where nothing else is said, but data of
 * size 0 may be null, and so may every `ran` and every `options`. Modes, directions and the like
 * are numbers here: one out of range is refused and never undefined.
 *
 * Handles. What a call hands out through a pointer to a pointer (null where it failed) is yours,
 * to be freed once by its own close or free, which takes null too. Any order is fine: a handle
 * keeps alive what it needs of the engine, the keys and the sets that it was made with.
 *
 * Memory. Data, keys, options and strings that you pass stay yours and are not kept: they may go
 * when the call returns. Two things last longer: what is launched on a stream uses its data until
 * the stream has come to its end, and a batch uses its messages' data in each launch, until the
 * last has ended. Keys are copied to locked memory and wiped there. Sizes are in bytes.
 *
 * Threads. Any number may use one handle at once, unless it says "one thread at a time"; none may
 * while it is freed. dael_last_error() is each thread's own. A thread may be cancelled in the
 * midst of a call, or leave one by pthread_exit() in a callback: what the call held is released,
 * and its outputs are unspecified. An exception of C++ that a callback throws becomes
 * DAEL_INTERNAL.
 *
 * fork(). A child may go on with engines, keys and sets that work in host memory. Device backends
 * answer DAEL_DEVICE there; handles of theirs may be freed, and nothing else. Another thread of
 * the parent may be in the midst of a call when it forks.
 *
 * Versions. Structures that will grow begin with their own size: set struct_size to sizeof the
 * structure, and what you don't want to zero. A caller that was built with an older header leaves
 * the defaults to what it does not know; one that was built with a newer one is refused
 * (DAEL_UNSUPPORTED) only if it asks for something that this library does not know. In structures
 * that the library hands out, nothing beyond struct_size is there. dael_cipher, dael_message,
 * dael_device_nonces and dael_ran never change.
 */
#ifndef DAELSTROM_H
#define DAELSTROM_H

#include <stddef.h>
#include <stdint.h>

#include <daelstrom/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What all share.
 *
 * What all of daelstrom's C interface shares: versions, errors, what is done (dael_cipher), to
 * what (dael_message), and what was done (dael_ran). */

/* The interface that this header describes. It goes up when a program that was built before would
 * no longer work; what is only added does not raise it. */
#define DAEL_ABI_VERSION 1
/* The library's own, at run time: DAEL_ABI_VERSION when it was built, and "0.1.0". */
DAEL_API unsigned dael_abi_version(void);
DAEL_API const char* dael_version(void);

/* The values never change; they are those of dael::Code. */
typedef enum dael_status {
    DAEL_OK = 0,
    DAEL_INVALID_ARGUMENT = 1, /* a parameter has no meaning (a null pointer with a size) */
    DAEL_KEY_SIZE = 2,         /* a key that is not 16, 24 or 32 bytes */
    DAEL_IV_SIZE = 3,          /* an IV of a size that the mode does not take */
    DAEL_RAGGED_LENGTH = 4,    /* ECB, CBC or XTS on a length that does not fill the last block */
    DAEL_BAD_PADDING = 5,      /* PKCS#7 padding that does not check */
    DAEL_OVERLAP = 6,          /* input and output overlap without being the same buffer */
    DAEL_LIMIT = 7,            /* a limit of the mode would be passed (counter reuse, size) */
    DAEL_UNKNOWN_BACKEND = 8,  /* no backend has that name */
    DAEL_BACKEND_ABSENT = 9,   /* the backend exists but this machine or build cannot run it */
    DAEL_UNSUPPORTED = 10,     /* the backend lacks this mode, direction or memory space */
    DAEL_OUT_OF_MEMORY = 11,   /* host or device memory ran out */
    DAEL_DEVICE = 12,          /* a call to the device's driver failed; the message names it */
    DAEL_IO = 13,              /* a file, a pipe or a callback failed */
    DAEL_BAD_FORMAT = 14,      /* input that is not what it should be (truncated, no magic) */
    DAEL_INTERNAL = 15,        /* a defect in daelstrom, or an exception out of a callback */
    DAEL_AUTHENTICATION = 16 /* a tag does not match: a wrong key, nonce or AAD, or altered data */
} dael_status;

/* What a status means, in one sentence; never null, whatever the value. A literal. */
DAEL_API const char* dael_strerror(int status);
/* What went wrong in the calling thread's last call that failed; "" if none has. Valid until the
 * thread's next call that fails. Its memory is the thread's own and there from the thread's
 * first call on, so that it speaks when memory has run out, too; only a library that was loaded by
 * dlopen() gets it then, and a thread that begins with memory exhausted is ended by the C library:
 * let threads that must not be call dael_last_error() once while there is memory. Messages of more
 * than 1000 bytes are cut. */
DAEL_API const char* dael_last_error(void);

/* Modes of operation, and the values of dael_cipher's members; those of dael::Mode. */
typedef enum dael_mode {
    DAEL_ECB = 0,     /* whole blocks, no IV */
    DAEL_CBC = 1,     /* whole blocks */
    DAEL_CFB = 2,     /* CFB-128, any length */
    DAEL_OFB = 3,     /* any length */
    DAEL_CTR = 4,     /* any length; one 128-bit big-endian counter, which wraps */
    DAEL_GCM = 5,     /* any length, authenticated */
    DAEL_GCM_CTR = 6, /* GCM's counter mode alone: until its 32-bit counter would wrap */
    DAEL_XTS = 7,     /* sectors of 16 bytes or more */
    /* RFC 10032, any length, authenticated; keys of 16 bytes, of AEGIS-256 of 32 */
    DAEL_AEGIS128L = 8,
    DAEL_AEGIS256 = 9,
    DAEL_AEGIS128X2 = 10,
    DAEL_AEGIS128X4 = 11,
    DAEL_XAES256GCM = 12, /* C2SP's XAES-256-GCM, any length, authenticated; keys of 32 bytes */
    DAEL_GCM_SIV = 13     /* RFC 8452, any length, authenticated; keys of 16 or 32 bytes */
} dael_mode;
typedef enum dael_direction { DAEL_ENCRYPT = 0, DAEL_DECRYPT = 1 } dael_direction;

#define DAEL_BLOCK_SIZE 16
#define DAEL_TAG_SIZE 16
#define DAEL_NONCE_SIZE 12

/* What is done. 8 bytes, the layout of dael::Cipher:
 *     const dael_cipher seal = {DAEL_GCM, DAEL_ENCRYPT, 16, 0, 0};
 */
typedef struct dael_cipher {
    uint8_t mode;      /* dael_mode */
    uint8_t direction; /* dael_direction; CTR and OFB do the same both ways */
    uint8_t tag;       /* bytes of the messages' tags. GCM: 4, 8, or 12 to 16; AEGIS: 16 or 32;
                        * XAES-256-GCM, GCM-SIV: 16 */
    uint8_t unused;    /* 0 */
    uint32_t sector;   /* XTS: bytes of a sector, 16 to 16777216 */
} dael_cipher;

/* To what it is done. 96 bytes, the layout of dael::Message: lists are used where they lie, and
 * never copied on their way to a backend. `in`, `out`, `aad` and `tag` lie in one memory space;
 * `out` is `in` itself or does not overlap it, and overlaps neither the tag nor the AAD, nor, in a
 * batch, anything of another message. */
typedef struct dael_message {
    const uint8_t* in; /* null in a counter mode: `out` gets the keystream itself */
    uint8_t* out;
    uint64_t size; /* of `in` and of `out` */
    /* GCM, AEGIS: additional data, authenticated and not encrypted; and the tag, which encryption
     * writes and decryption reads. */
    const uint8_t* aad;
    uint64_t aad_size;
    uint8_t* tag;
    /* CBC, CFB, OFB: the IV. CTR, gcm_ctr: the first counter block. GCM: the pre-counter block, and
     * XTS: the first sector's number, which dael_gcm_start() and dael_xts_start() fill in. AEGIS,
     * XAES-256-GCM, GCM-SIV: the nonce's first 16 bytes, with zeros behind what it has. */
    uint8_t start[DAEL_BLOCK_SIZE];
    uint32_t key; /* index into the key set; 0 where there is one key */
    uint8_t skip; /* CTR, gcm_ctr: bytes of the first keystream block to leave out, 0 to 15 */
    uint8_t unused[11];
    /* Bytes 16 to 31 of what `start` begins, for modes whose nonces are longer than a block:
     * AEGIS-256 (32 bytes), XAES-256-GCM (24). No other reads it. */
    uint8_t start_rest[DAEL_BLOCK_SIZE];
} dael_message;

/* What a call did, for those who want to know: every `ran` may be null. */
typedef struct dael_ran {
    /* The backends that processed the data: "cpu", "cuda:0+cpu"; of a longer name what fits. */
    char backend[32];
    int32_t threads;   /* host threads that took part */
    uint32_t replaced; /* 1: a device was to do it and failed, so that others did; else 0 */
    uint64_t chunks;   /* chunks that crossed to a device and back; 0: none */
    /* Where several did: how much each of them, in the order of their names, to the nearest per
     * cent. Else 0. */
    uint8_t percent[16];
} dael_ran;

/* Overwrites memory in a way that the compiler may not remove. Null with size 0 is fine. */
DAEL_API void dael_wipe(void* memory, size_t size);

/* Page-locked host memory, which a device copies to and from at full speed; plain memory where
 * there is no device. Null when memory ran out. Freeing takes null. After fork() the child has a
 * copy of its content, and may free it; what it allocates itself is plain memory. */
DAEL_API void* dael_pinned_alloc(size_t size);
DAEL_API void dael_pinned_free(void* memory);

/* Engines, keys, host memory.
 *
 * Engines, keys and key sets, and messages in host memory. */

typedef struct dael_engine dael_engine;
typedef struct dael_key dael_key;
typedef struct dael_key_set dael_key_set;

/* Zero is the default of every member but the first. */
typedef struct dael_engine_options {
    size_t struct_size; /* sizeof(dael_engine_options) */
    /* "auto", or a backend by name: "reference", "openssl", "cpu", "cuda", "cuda:1", "opencl".
     * Several that work on each job together: "cuda:0+cuda:1+cpu", devices and at most one host
     * backend, or "all" (docs/devices.md). Null or "": the environment's DAELSTROM_BACKEND, else
     * "auto". A named backend is used or refused, never replaced; of several, whoever fails amid a
     * job is replaced by the others. */
    const char* backend;
    /* The form of the backend, null or "" for its best: "avx2" for cpu, "tables=1" for cuda, ...;
     * EngineOptions in engine.hpp has them all. */
    const char* form;
    int32_t threads;      /* host threads for data in host memory; 0: all cores */
    int32_t uncalibrated; /* 1: "auto" does not read the calibration that this user stored */
    uint64_t chunk;       /* most bytes of a chunk between host and device; 0: as calibrated */
    /* Called on each thread that the engine starts, before it works: for its affinity, its
     * priority, its name ("daelstrom"). It has the affinity of the thread that first needed it, and
     * takes no signals. Null: nothing is called. */
    void (*thread_started)(void* context);
    void* thread_context;
    /* Where several work on ordinary memory, or in place: seconds, and a half for each megabyte,
     * that a device may take for a chunk before it is given up. 0: 10; less: for ever. */
    double patience;
    /* What it leaves to others. Of the host's cores, where `threads` is 0, the part that it may
     * use: above 0 to 1; 0: all. Of each device, over all calls on host memory at once: bytes of
     * its memory for staging, and as many page-locked (0: up to 1.25 GiB; calls wait for each
     * other, and one that could never have room fails with DAEL_OUT_OF_MEMORY), and bytes a second
     * across its bus, each way (0: any). */
    double cpu_share;
    uint64_t device_memory;
    uint64_t copy_rate;
} dael_engine_options;

/* `options` null: all defaults. Errors: DAEL_UNKNOWN_BACKEND, DAEL_BACKEND_ABSENT (the message says
 * what is missing), DAEL_INVALID_ARGUMENT, DAEL_UNSUPPORTED (a newer option). */
DAEL_API dael_status dael_engine_open(const dael_engine_options* options, dael_engine** engine);
/* Key sets, batches, pieces and devices of the engine work on. Close it when no call with it runs;
 * in a child of fork() too. */
DAEL_API void dael_engine_close(dael_engine* engine);
/* Wipes and gives back what the engine keeps for the next call through a device: page-locked and
 * device memory, up to 512 MiB a device, which still holds the data of calls that are done. Null is
 * fine. In a child of fork(): nothing. */
DAEL_API void dael_engine_trim(dael_engine* engine);

/* `size`: 16, 24 or 32 bytes of key (AES-128, -192, -256), copied to locked memory; wiping `bytes`
 * is up to you. Errors: DAEL_KEY_SIZE, DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_key_import(const void* bytes, size_t size, dael_key** key);
/* For XTS: two keys one after the other, the data's and the tweak's, 32 bytes in all (XTS-AES-128)
 * or 64 (XTS-AES-256). Errors: as above; DAEL_INVALID_ARGUMENT for equal halves. */
DAEL_API dael_status dael_key_import_xts(const void* bytes, size_t size, dael_key** key);
/* A second key of the same bytes, freed by itself. Errors: DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_key_duplicate(const dael_key* key, dael_key** copy);
/* 128, 192 or 256, for XTS of each of the two; and 1 for an XTS key, else 0. Null: 0. */
DAEL_API int dael_key_bits(const dael_key* key);
DAEL_API int dael_key_is_xts(const dael_key* key);
/* Wipes it, unless a handle still needs it: then when that goes. */
DAEL_API void dael_key_free(dael_key* key);

/* One message in host memory, of any alignment, done when it returns: its data may then go.
 * message->key is 0. Errors: DAEL_RAGGED_LENGTH, DAEL_OVERLAP, DAEL_LIMIT, DAEL_INVALID_ARGUMENT,
 * DAEL_UNSUPPORTED, DAEL_AUTHENTICATION, DAEL_DEVICE, DAEL_OUT_OF_MEMORY. After an error the
 * output's bytes are unspecified, but a message that fails to authenticate leaves no plaintext, and
 * in place its ciphertext. In place the output is the input: an engine on a device by name that
 * fails midway (DAEL_DEVICE) may leave neither; "auto" does what it has not touched on the host,
 * and dael_run_batch tells of each message what became of it. */
DAEL_API dael_status dael_run(dael_engine* engine, const dael_cipher* cipher, const dael_key* key,
                              const dael_message* message, dael_ran* ran);

/* Keys made ready once, on the engine's backends, and used by index: all for XTS or none. Copied,
 * so the keys may be freed at once. `count`: 1 or more. Any number of threads may use a set at
 * once. Errors: DAEL_INVALID_ARGUMENT, DAEL_OUT_OF_MEMORY, DAEL_DEVICE. */
DAEL_API dael_status dael_key_set_make(dael_engine* engine, const dael_key* const* keys,
                                       size_t count, dael_key_set** set);
/* How many keys there are, and the bits of one; 0 for null, and for an index that there is not. */
DAEL_API size_t dael_key_set_size(const dael_key_set* set);
DAEL_API int dael_key_set_bits(const dael_key_set* set, uint32_t index);
/* Puts another key, of any size but of the same kind, in the place of key `index`. On the device
 * that `stream` belongs to in the stream's order, without waiting: what was launched there before
 * has the old key, what is launched later the new one, prepared batches too. On the host at once,
 * while no other thread works on host memory with the set. The key is copied. After an error every
 * key is as it was, on the host and on the device, and dael_last_error() says so; but where the
 * device took a part of the replacement and then failed, the set is used up: every call with it is
 * DAEL_DEVICE, and only another set will do. Errors: DAEL_INVALID_ARGUMENT, DAEL_DEVICE,
 * DAEL_OUT_OF_MEMORY; DAEL_UNSUPPORTED for a set that has been used on several devices, on a
 * stream that is being captured, and for a set under which any launch was captured (cuda): a graph
 * keeps the key that it has. */
DAEL_API dael_status dael_key_set_replace(dael_key_set* set, uint32_t index, const dael_key* key,
                                          void* stream);
/* Wiped when the last batch that was made with it goes too. What was launched with the set itself
 * must be done. */
DAEL_API void dael_key_set_free(dael_key_set* set);

/* Many messages in host memory at once, each under its key of the set; done when it returns.
 * codes[i], a dael_status, tells of message i: DAEL_OK; DAEL_AUTHENTICATION; or why it was not
 * touched. No message disturbs another; that they share no output is up to you. `messages` and
 * `codes` are yours and may go when it returns; the list is not written to. The call itself fails
 * with DAEL_INVALID_ARGUMENT, DAEL_DEVICE, DAEL_OUT_OF_MEMORY, and with DAEL_LIMIT where two
 * messages would be encrypted from the same start under the same key (gcm, gcm_ctr, ctr, ofb). The
 * codes then still tell of each message: DAEL_OK, it is done; DAEL_AUTHENTICATION and the like, as
 * ever; the status of the call, nothing of it was touched; DAEL_INTERNAL, nobody knows, and its
 * output, in place its data, is lost. With "auto" a device's failure is one of the call only where
 * data is lost: what is not, the host does. */
DAEL_API dael_status dael_run_batch(dael_engine* engine, const dael_cipher* cipher,
                                    const dael_key_set* keys, const dael_message* messages,
                                    size_t count, int32_t* codes, dael_ran* ran);

/* A part of a message in the memory of a device, and the stream that its work is in order with. */
typedef struct dael_shard {
    const uint8_t* in;
    uint8_t* out; /* `in` itself, or apart */
    uint64_t size;
    void* stream;
} dael_shard;

/* One message that lies in pieces on several devices of the engine, "cuda:0+cuda:1" or "auto", done
 * by each where it is, in its stream's order, and done when this returns. `message` has the start,
 * the key, and for gcm the tag and the additional data, in host memory, and no data: that is the
 * shards', in order, and every one but the last ends at a whole block of it (XTS: sector). Of gcm
 * there is one tag over all; opening decrypts nothing before it is known to be right. Modes that
 * are parallel within a message, and gcm. For dael_key_set_replace it counts as a call on host
 * memory. Errors: as dael_run; DAEL_UNSUPPORTED, also for a stream
 * that is captured. After an error the output's bytes are unspecified, but for DAEL_AUTHENTICATION
 * and what was wrong with the call, which leave all as it was. */
DAEL_API dael_status dael_run_shards(dael_engine* engine, const dael_cipher* cipher,
                                     const dael_key_set* keys, const dael_message* message,
                                     const dael_shard* shards, size_t count, dael_ran* ran);

/* Modes.
 *
 * What some modes need beside dael_run: starts of GCM's and XTS's messages, nonces that never
 * repeat, padding, and GCM and CTR in one call. */

/* GCM (NIST SP 800-38D): the start of a message, the pre-counter block J0, from a nonce of 12
 * bytes. For DAEL_GCM_CTR, as Parquet's AES_GCM_CTR_V1 has it, the start is the same. Safety: a
 * nonce must never repeat under one key, else the plaintexts' XOR and the authentication key are
 * lost. */
DAEL_API dael_status dael_gcm_start(const uint8_t nonce[DAEL_NONCE_SIZE],
                                    uint8_t start[DAEL_BLOCK_SIZE]);
/* From an IV of any size from 1 byte, which takes the key. Errors: DAEL_IV_SIZE, DAEL_LIMIT. */
DAEL_API dael_status dael_gcm_start_iv(const dael_key* key, const void* iv, size_t iv_size,
                                       uint8_t start[DAEL_BLOCK_SIZE]);

/* One message in host memory, done when it returns. `iv_size`: 1 or more, 12 is fast and usual.
 * `tag_size`: 4, 8, or 12 to 16. `out` is `in` or does not overlap it, and overlaps neither the tag
 * nor the additional data. Without data it is GMAC. Errors: as dael_run; DAEL_IV_SIZE; opening:
 * DAEL_AUTHENTICATION, and `out` then holds no plaintext (in place: its ciphertext). */
DAEL_API dael_status dael_gcm_seal(dael_engine* engine, const dael_key* key, const void* iv,
                                   size_t iv_size, const void* aad, size_t aad_size, const void* in,
                                   void* out, size_t size, void* tag, size_t tag_size,
                                   dael_ran* ran);
DAEL_API dael_status dael_gcm_open(dael_engine* engine, const dael_key* key, const void* iv,
                                   size_t iv_size, const void* aad, size_t aad_size, const void* in,
                                   void* out, size_t size, const void* tag, size_t tag_size,
                                   dael_ran* ran);

/* Counter mode (NIST SP 800-38A 6.5), both ways the same. `offset`: the byte of the keystream at
 * which the data starts. `in` null: `out` gets the keystream itself. In host memory, done when it
 * returns. Errors: as dael_run; DAEL_LIMIT where offset and size pass 2^64. Safety: no byte of the
 * keystream may be used twice under one key. */
DAEL_API dael_status dael_ctr_crypt(dael_engine* engine, const dael_key* key,
                                    const uint8_t counter[DAEL_BLOCK_SIZE], uint64_t offset,
                                    const void* in, void* out, size_t size, dael_ran* ran);
/* The same in device memory: launches on the stream and returns; the data may go when the stream
 * has come to its end. Errors: as dael_run_device. */
DAEL_API dael_status dael_ctr_crypt_device(dael_engine* engine, const dael_key* key,
                                           const uint8_t counter[DAEL_BLOCK_SIZE], uint64_t offset,
                                           const void* device_in, void* device_out, size_t size,
                                           void* stream, dael_ran* ran);

/* XTS (IEEE 1619): the start of a message that begins with this sector. The number has 128 bits;
 * `first_high` has its upper half, which disks leave zero. */
DAEL_API dael_status dael_xts_start(uint64_t first, uint64_t first_high,
                                    uint8_t start[DAEL_BLOCK_SIZE]);

/* PKCS#7 padding for ECB and CBC, of 1 to 16 bytes: a message's last block from its last
 * `size` % 16 bytes, `size` 0 to 15. Safety: where an attacker can see whether padding was right,
 * CBC without authentication gives the plaintext away, however the padding is checked. */
DAEL_API dael_status dael_pad(const void* tail, size_t size, uint8_t last[DAEL_BLOCK_SIZE]);
/* How many bytes of a decrypted last block are data; in a time that does not depend on them.
 * Errors: DAEL_BAD_PADDING, for every fault alike. */
DAEL_API dael_status dael_unpad(const uint8_t last[DAEL_BLOCK_SIZE], size_t* size);

/* Nonces that never repeat: four bytes that stay, and a big-endian counter of eight that hands out
 * each number once, to any number of threads. Safety: as long as the process lives, and fork()
 * makes a second counter that counts the same. Who seals under one key in several processes, or
 * again after a restart, gives each `fixed` bytes of its own, or keeps dael_nonces_unused(). */
typedef struct dael_nonces dael_nonces;
/* Counts from `first`, which is 0 for a new key. Errors: DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_nonces_make(const uint8_t fixed[4], uint64_t first, dael_nonces** nonces);
/* Errors: DAEL_LIMIT, when all up to 2^64 - 2 are used up; the last is kept, so that
 * dael_nonces_unused() never wraps. */
DAEL_API dael_status dael_nonces_next(dael_nonces* nonces, uint8_t nonce[DAEL_NONCE_SIZE]);
/* Fills the starts of messages for gcm or gcm_ctr, one nonce after another: all, or none and
 * DAEL_LIMIT. Nothing else in the messages is touched. */
DAEL_API dael_status dael_nonces_number(dael_nonces* nonces, dael_message* messages, size_t count);
/* The first number that has not been handed out, to be kept by who goes on later. Null: 0. */
DAEL_API uint64_t dael_nonces_unused(const dael_nonces* nonces);
DAEL_API void dael_nonces_free(dael_nonces* nonces);

/* Messages in pieces.
 *
 * One message in pieces, in every mode: for data that does not fit in memory, or comes bit by bit.
 * For messages that do, dael_run is simpler and faster.
 *
 *     encrypt, any mode:   [aad]...  update...  finish
 *     decrypt, no tag:               update...  finish
 *     decrypt gcm, aegis:  [aad]...  authenticate...  verify  update...  finish     in two passes
 *     the same in one:     [aad]...  update_unverified...  verify, or tag
 *
 * Safety: a start must never repeat under one key, so a message once finished takes nothing more;
 * dael_pieces_restart() begins another. Decrypting with a tag in two passes, the first finds out
 * whether the tag is right, and only then does the second yield plaintext; finish finds out whether
 * it was given the same bytes, so read both passes from where nobody else writes. In one pass, what
 * dael_pieces_update_unverified() yields may be anybody's forgery until dael_pieces_verify() has
 * succeeded: keep it to yourself until then, and throw it away if it fails.
 *
 * In host memory, on the calling thread, one thread at a time, done when a call returns. What is
 * refused changes nothing, and the message goes on: a call out of order or with an argument that
 * makes no sense (DAEL_INVALID_ARGUMENT), DAEL_OVERLAP, DAEL_RAGGED_LENGTH, DAEL_LIMIT. Any other
 * error ends it: nothing but restart is taken after that. After fork() parent and child each have
 * a copy: let one of them go on, else the two encrypt from the same start. */

typedef struct dael_pieces dael_pieces;

/* `start`: as in a dael_message, 16 bytes, of AEGIS-256 and XAES-256-GCM 32; null in ECB. Not
 * for GCM-SIV, which needs the whole message: DAEL_UNSUPPORTED. Keeps engine and key
 * alive. Errors: as dael_run. */
DAEL_API dael_status dael_begin(dael_engine* engine, const dael_cipher* cipher, const dael_key* key,
                                const uint8_t* start, dael_pieces** pieces);
DAEL_API void dael_pieces_free(dael_pieces* pieces);

/* gcm, aegis: additional data, in pieces of any size; all of it before the data. Errors:
 * DAEL_LIMIT. */
DAEL_API dael_status dael_pieces_aad(dael_pieces* pieces, const void* bytes, size_t size);

/* Any number of bytes; *written says how many came out (null: nobody wants to know). ECB, CBC and
 * XTS hold back what does not fill a block or sector, so that `out_size` has to be `in_size` and
 * dael_pieces_held() together, rounded down to dael_pieces_unit(); the other modes write `in_size`
 * bytes. `out` is `in` or apart from it; where something is held back, apart. Errors:
 * DAEL_INVALID_ARGUMENT (an output that is too small), DAEL_OVERLAP, DAEL_LIMIT. */
DAEL_API dael_status dael_pieces_update(dael_pieces* pieces, const void* in, size_t in_size,
                                        void* out, size_t out_size, size_t* written);

/* gcm, aegis decryption, the first of two passes: all of the ciphertext. Errors: DAEL_LIMIT. */
DAEL_API dael_status dael_pieces_authenticate(dael_pieces* pieces, const void* ciphertext,
                                              size_t size);
/* gcm, aegis decryption in one pass, before anything is verified; `size` bytes in and out. Errors:
 * as dael_pieces_update. */
DAEL_API dael_status dael_pieces_update_unverified(dael_pieces* pieces, const void* in, void* out,
                                                   size_t size);
/* gcm, aegis decryption: whether this is the message's tag, of the cipher's size. Errors:
 * DAEL_AUTHENTICATION. */
DAEL_API dael_status dael_pieces_verify(dael_pieces* pieces, const void* tag, size_t tag_size);

/* The same in one pass, for those who learn the size of gcm's tag at the end only, as callers of
 * OpenSSL's EVP do: the end, and the tag that the message should have. Not for ciphers with tags of
 * 32 bytes. Safety: comparing it with
 * the one that came, in constant time, and giving nothing away where they differ, is up to you. */
DAEL_API dael_status dael_pieces_tag(dael_pieces* pieces, uint8_t tag[DAEL_TAG_SIZE]);

/* The end; *written says how many bytes came out (null: nobody wants to know). Encryption with a
 * tag: the tag, `out_size` bytes of it (gcm: 4, 8, 12 to 16; aegis: as many as the cipher says).
 * Decryption of that in two passes: whether the second was the whole of the first
 * (DAEL_AUTHENTICATION). XTS: the last sector's bytes where it was
 * short. Else nothing, and `out` may be null. Errors: DAEL_RAGGED_LENGTH where a block, or a sector
 * of 16 bytes, is not full. */
DAEL_API dael_status dael_pieces_finish(dael_pieces* pieces, void* out, size_t out_size,
                                        size_t* written);

/* The unit in bytes, 1 where nothing is held back; and bytes held back now. Null: 0. */
DAEL_API size_t dael_pieces_unit(const dael_pieces* pieces);
DAEL_API size_t dael_pieces_held(const dael_pieces* pieces);

/* Another one in the same state, which goes its own way, and may be another thread's. Safety: the
 * two encrypt from the same start. Errors: DAEL_OUT_OF_MEMORY, DAEL_DEVICE. */
DAEL_API dael_status dael_pieces_clone(const dael_pieces* pieces, dael_pieces** copy);
/* Begins another message under the same key, wherever this one stands. Allocates nothing. `start`:
 * as for dael_begin. */
DAEL_API dael_status dael_pieces_restart(dael_pieces* pieces, const uint8_t* start);

/* What there is, and what would be chosen.
 *
 * What there is to compute with, and how a job would be done. Nothing here touches data or keys. */

/* A backend that daelstrom knows, with what this machine has of it. */
typedef struct dael_backend {
    size_t struct_size;      /* as this library has it; nothing beyond is there */
    const char* name;        /* "cuda:0" */
    const char* description; /* what there is of it here; "" when absent */
    const char* summary;     /* one line on what the backend is */
    const char* missing;     /* what is missing when absent; "" when present */
    int32_t present;         /* 1 or 0 */
    int32_t unused;          /* 0 */
} dael_backend;
/* Calls `visit` for each, on the calling thread; `backend` and its strings are valid during that
 * call only. `context` is handed through. Asks drivers, so it may take a second. */
DAEL_API dael_status dael_list_backends(void (*visit)(void* context, const dael_backend* backend),
                                        void* context);

/* The backends that an engine has in use: the forced one; under "auto" the host's, and each device
 * once a job, or dael_explain(), has had a need of it. Starts nothing. `name` is valid during the
 * call only. */
DAEL_API dael_status dael_engine_backends(const dael_engine* engine,
                                          void (*visit)(void* context, const char* name),
                                          void* context);

typedef enum dael_from { DAEL_FROM_HOST = 0, DAEL_FROM_PINNED = 1, DAEL_FROM_DEVICE = 2 } dael_from;

/* A job in outline. */
typedef struct dael_job {
    size_t struct_size; /* sizeof(dael_job) */
    dael_cipher cipher;
    int32_t key_bits; /* 128, 192 or 256 */
    int32_t from;     /* dael_from: where the data lies */
    uint64_t size;    /* of one message */
    uint64_t messages;
    uint32_t in_place; /* 1: it is, which counts where several might work on page-locked memory */
    uint32_t unused;   /* 0 */
} dael_job;

/* One way to do a job, with the planner's prediction. */
typedef struct dael_option {
    size_t struct_size;  /* as this library has it; nothing beyond is there */
    const char* backend; /* "cuda:0" */
    const char* why;     /* one sentence */
    int32_t threads;
    int32_t possible;            /* 0: `why` says what stands against it */
    int32_t measured;            /* 1: from this machine's calibration; 0: from built-in figures */
    int32_t unused;              /* 0 */
    uint64_t chunk;              /* bytes; 0 where nothing is cut */
    double gigabytes_per_second; /* predicted, payload counted once */
    double setup_seconds;        /* predicted fixed cost of the call */
    double seconds;              /* predicted in all */
    /* Of several together, "cuda:0+cpu": the part that each has in it, 0 to 1, in the order of
     * their names, and how many they are. Else null and 0. */
    const double* shares;
    size_t members;
} dael_option;

/* What an engine would do with a job and why, best first, the impossible last. The handle owns its
 * options and strings, needs no engine, and never changes. */
typedef struct dael_plan dael_plan;
/* `job` may go when it returns. Errors: DAEL_INVALID_ARGUMENT, DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_explain(const dael_engine* engine, const dael_job* job, dael_plan** plan);
/* In words, with the figures; valid as long as the plan. Null: "". */
DAEL_API const char* dael_plan_summary(const dael_plan* plan);
DAEL_API size_t dael_plan_count(const dael_plan* plan);
/* Valid as long as the plan; null where there is none. */
DAEL_API const dael_option* dael_plan_option(const dael_plan* plan, size_t index);
DAEL_API void dael_plan_free(dael_plan* plan);

/* Measures every backend here, some seconds, with a GPU up to 20, and stores the result for "auto"
 * and dael_explain of engines that are opened later. `progress`, which may be null, is called on
 * the calling thread with what is being measured (valid during that call) and how much is done, 0
 * to 1. Errors: DAEL_IO, DAEL_OUT_OF_MEMORY, and those of the host's backends; a device that fails
 * is left out. */
DAEL_API dael_status dael_calibrate(void (*progress)(void* context, const char* what, double done),
                                    void* context);

/* A device's memory and order.
 *
 * The memory of an engine's device and the order of work there, the same for every kind of device:
 * for programs that have no framework of their own to allocate and copy with.
 *
 * Everything but allocation and the waits is asynchronous and ordered by streams. Memory, streams
 * and events are the caller's to give back, to the device that they came from and before its
 * handle goes; after the work that uses them. Errors name the driver call that failed
 * (DAEL_DEVICE), or DAEL_OUT_OF_MEMORY; a failed call leaves the process and other devices usable.
 * In a child of fork() nothing here works; the handle may be freed. */

typedef struct dael_device dael_device;

/* The device of an engine that was opened on one, or the one, of an engine for "auto", that holds
 * `memory` (null: its first). Keeps the engine alive. Errors: DAEL_UNSUPPORTED for an engine on a
 * host backend; DAEL_BACKEND_ABSENT; DAEL_INVALID_ARGUMENT for memory of no device. */
DAEL_API dael_status dael_device_of(dael_engine* engine, const void* memory, dael_device** device);
DAEL_API void dael_device_free(dael_device* device);

typedef struct dael_device_info {
    size_t struct_size;       /* as this library has it; nothing beyond is there */
    const char* backend;      /* "cuda:0" */
    const char* name;         /* "NVIDIA H200" */
    const char* architecture; /* "sm_90" */
    const char* driver;       /* driver and runtime: "580.82, CUDA 13.0" */
    const char* layout;       /* of the tables that kernels use: "128 KiB" */
    uint64_t memory;          /* bytes in all */
    int32_t multiprocessors;
    int32_t shared_memory; /* 1: memory of the host can be adopted (OpenCL's SVM) */
    int32_t reads_lists;   /* 1: lists of messages may lie in device memory */
    int32_t unused;        /* 0 */
} dael_device_info;
/* Valid as long as the handle, with its strings. Null: null. */
DAEL_API const dael_device_info* dael_device_describe(const dael_device* device);

/* Device memory. What held secrets is wiped by you before it is released. */
DAEL_API dael_status dael_device_allocate(dael_device* device, size_t size, void** memory);
DAEL_API void dael_device_release(dael_device* device, void* memory);
/* Page-locked memory of the host, for copies at full speed. */
DAEL_API dael_status dael_device_allocate_pinned(dael_device* device, size_t size, void** memory);
DAEL_API void dael_device_release_pinned(dael_device* device, void* memory);
DAEL_API dael_status dael_device_free_memory(dael_device* device, uint64_t* bytes);
/* Whether the device can copy from all of this host memory at full speed; whether it is memory of
 * this device: 1 or 0. */
DAEL_API int dael_device_is_pinned(dael_device* device, const void* host_memory, size_t size);
DAEL_API int dael_device_owns(dael_device* device, const void* device_memory);

/* Asynchronous where the host memory is page-locked, which then must stay as it is until the stream
 * has come to the end of it. */
DAEL_API dael_status dael_device_copy_in(dael_device* device, void* device_memory,
                                         const void* host_memory, size_t size, void* stream);
DAEL_API dael_status dael_device_copy_out(dael_device* device, void* host_memory,
                                          const void* device_memory, size_t size, void* stream);
DAEL_API dael_status dael_device_copy_within(dael_device* device, void* to, const void* from,
                                             size_t size, void* stream);
DAEL_API dael_status dael_device_fill(dael_device* device, void* device_memory, uint8_t value,
                                      size_t size, void* stream);

/* `timed`: 1 for one whose events dael_event_elapsed_ms takes; with some drivers it is slower. */
DAEL_API dael_status dael_stream_create(dael_device* device, int timed, void** stream);
DAEL_API void dael_stream_destroy(dael_device* device, void* stream);
/* The calling thread waits for all that the stream has; errors of that work return here. */
DAEL_API dael_status dael_stream_wait(dael_device* device, void* stream);

/* An event marks a point of a stream. */
DAEL_API dael_status dael_event_create(dael_device* device, void** event);
DAEL_API void dael_event_destroy(dael_device* device, void* event);
DAEL_API dael_status dael_event_record(dael_device* device, void* event, void* stream);
/* Later work of the stream comes after the event; the calling thread waits for it. */
DAEL_API dael_status dael_stream_wait_event(dael_device* device, void* stream, void* event);
DAEL_API dael_status dael_event_wait(dael_device* device, void* event);
/* Both recorded and done. */
DAEL_API dael_status dael_event_elapsed_ms(dael_device* device, void* from, void* to,
                                           float* milliseconds);

/* Data in device memory.
 *
 * Data in device memory: one message, a few, or batches that are made ready once and launched.
 *
 * `stream` is a cudaStream_t, or what dael_opencl_stream() or dael_stream_create() gave; null is
 * the default stream. Every launch returns at once; errors of the device while it runs show at the
 * stream's next synchronisation, as with any kernel. In a child of fork() nothing here works
 * (DAEL_DEVICE), but handles may be freed. */

/* One message whose pointers are to device memory: launches and returns, without synchronising or
 * allocating; but the first use of an OpenCL kernel compiles it. `message` itself lies on the host
 * and may go when this returns, its data when the stream has come to its end. Any number of threads
 * at once. Pointers to multiples of 16 are fast. Errors: as dael_run; DAEL_UNSUPPORTED for gcm
 * (dael_launch_messages), and for CBC, CFB and OFB where they are sequential (prepare those), and
 * for engines without a device. */
DAEL_API dael_status dael_run_device(dael_engine* engine, const dael_cipher* cipher,
                                     const dael_key* key, const dael_message* message, void* stream,
                                     dael_ran* ran);

/* Where a list of messages lies. */
typedef enum dael_place { DAEL_PLACE_HOST = 0, DAEL_PLACE_DEVICE = 1 } dael_place;

/* Four bytes that stay and a big-endian counter of eight: nonces that never repeat, counted on a
 * device. 16 bytes of device memory at a multiple of 8, the layout of dael::DeviceNonces; only
 * launches of batches that were given it change it. A launch reserves its nonces in one step before
 * it uses any, so that launches that share it have different ones in any order; where too few are
 * left nothing is done (DAEL_LIMIT). To set it back repeats nonces. */
typedef struct dael_device_nonces {
    uint8_t fixed[4];
    uint32_t unused;
    uint64_t next; /* of the first message of the next launch */
} dael_device_nonces;

/* Zero is the default of every member but the first: a list on the host, as it stands. */
typedef struct dael_prepare_options {
    size_t struct_size; /* sizeof(dael_prepare_options) */
    int32_t place;      /* dael_place of the list; of its data always the device */
    int32_t unused;     /* 0; anything else is refused (DAEL_UNSUPPORTED) */
    /* In device memory, for lists in device memory: how many messages there are, read when the
     * batch runs. Null: `count`. A number above `count` counts as `count`. */
    const uint32_t* number;
    /* In device memory, for lists in device memory of gcm and gcm_ctr encryption: each launch
     * writes a new start into every message of the list, and advances the counter. Null: the starts
     * are as they stand in the list. */
    dael_device_nonces* nonces;
    /* For lists in device memory of gcm and gcm_ctr: bytes that no message has more of, data and
     * AAD together, so that kernels for longer ones need not be launched; up to 8 KiB saves most. A
     * message that is longer all the same is not done, and has DAEL_LIMIT. 0: any size. */
    uint64_t longest;
} dael_prepare_options;

/* One thread at a time, which the replay of a graph counts as, too. Launches and replays of one
 * batch follow each other in the order of the calls, whichever streams they are on. A launch that
 * fails may have been begun: what encrypts then counts as launched. */
typedef struct dael_batch dael_batch;

/* Makes ready `count` messages; with a `number` the most there may be. Allocates device memory;
 * synchronous, but waits for nobody else's work. A list on the host is checked and copied, and may
 * go when this returns. One in device memory, where a kernel may make it, must stay until the last
 * launch has ended: it is read and checked at each launch (modes that authenticate, gcm_ctr and cbc
 * encryption; cuda), and a message of it that makes no sense has a code that says so. That its
 * memory is what it says is for whoever makes the list. The batch keeps engine and set alive; the
 * keys are the set's at the launch. Errors: as dael_run, of the first message that is bad;
 * DAEL_UNSUPPORTED. */
DAEL_API dael_status dael_prepare(dael_engine* engine, const dael_cipher* cipher,
                                  const dael_key_set* keys, const dael_message* messages,
                                  uint32_t count, const dael_prepare_options* options,
                                  dael_batch** batch);

/* Launches on the stream and returns, without allocation; the data may go when the launch has
 * ended. What encrypts, from a list whose starts are fixed, is launched once only (DAEL_LIMIT after
 * that); decryption, ECB and XTS as often as wanted. It can be captured into a CUDA graph if it may
 * be launched again, or has nonces that count on the device. Errors: DAEL_LIMIT, DAEL_DEVICE. */
DAEL_API dael_status dael_launch(dael_engine* engine, dael_batch* batch, void* stream,
                                 dael_ran* ran);

/* Device memory, the batch's own until it is freed: a dael_status for each message, as a 32-bit
 * number, once a launch has ended; null where every message is done (lists from the host, outside
 * gcm decryption), and for null. */
DAEL_API const uint32_t* dael_batch_codes(const dael_batch* batch);
/* Waits for the stream, and tells what became of each message: codes[i], a dael_status. `count`: of
 * codes, at least the batch's own. Errors: DAEL_DEVICE, DAEL_INVALID_ARGUMENT. */
DAEL_API dael_status dael_results(const dael_batch* batch, void* stream, int32_t* codes,
                                  size_t count);
/* When no launch of it is under way any more: its memory on the device goes at once. */
DAEL_API void dael_batch_free(dael_batch* batch);

/* Most messages of one dael_launch_messages(), and most bytes of AAD of the host's that go along.
 */
#define DAEL_MAX_LAUNCHED 32
#define DAEL_MAX_LAUNCHED_AAD 1024

/* Zero is the default of every member but the first. */
typedef struct dael_launch_options {
    size_t struct_size; /* sizeof(dael_launch_options) */
    /* A dael_status for each message, as a 32-bit number, once the launch has ended: memory of the
     * device, or page-locked (dael_device_allocate_pinned). Null where every message is done:
     * anything but gcm decryption. */
    uint32_t* codes;
    int32_t host_aad; /* other than 0: the messages' AAD lies in the host's memory, and is copied */
    int32_t unused;   /* 0; anything else is refused (DAEL_UNSUPPORTED) */
} dael_launch_options;

/* A few messages of modes that authenticate, or gcm_ctr, in device memory, without a batch
 * (cuda): launches on the stream and returns, without allocation or synchronisation, but that a
 * set's first launch, and its first of long messages, makes what GHASH needs of its keys; from any
 * number of threads. List, options and the host's AAD are yours and may go at once, the data when
 * the launch has ended; the set's end waits for that. Up to 64 KiB a message it is one kernel for
 * each size of keys; longer ones take a few, and have memory that streams may share: their launches
 * on different streams may follow each other. Opening writes nothing of a message that is not
 * authentic. What encrypts cannot be captured into a CUDA graph (DAEL_LIMIT), and of the rest what
 * is one kernel. Errors: as dael_run, of the first message that is bad; DAEL_LIMIT for more
 * messages or AAD; DAEL_UNSUPPORTED for other modes (dael_run_device and dael_prepare have them)
 * and elsewhere. */
DAEL_API dael_status dael_launch_messages(dael_engine* engine, const dael_cipher* cipher,
                                          const dael_key_set* keys, const dael_message* messages,
                                          uint32_t count, void* stream,
                                          const dael_launch_options* options, dael_ran* ran);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_H */
