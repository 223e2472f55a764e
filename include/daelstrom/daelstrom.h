/* SPDX-License-Identifier: Apache-2.0
 *
 * daelstrom for C, and for whatever can call C.
 *
 * Safety: of the modes here only GCM authenticates, the others keep secrets. Never use one (key,
 * counter) or (key, IV) twice in CTR or OFB; a CBC or CFB IV must be unpredictable; ECB shows equal
 * blocks.
 *
 * Every function that can fail returns a dael_status; dael_last_error() then says, for the calling
 * thread, what exactly went wrong. No exception leaves the library and nothing is printed. Engines
 * and keys may be used by any number of threads at once, but not while they are closed or freed.
 * Sizes are in bytes. A null pointer is invalid where nothing else is said, but data of size 0 may
 * be null, and every free and close takes null.
 */
#ifndef DAELSTROM_DAELSTROM_H
#define DAELSTROM_DAELSTROM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAEL_BLOCK_SIZE 16

/* The values never change; they are those of dael::Code. */
typedef enum dael_status {
    DAEL_OK = 0,
    DAEL_INVALID_ARGUMENT = 1,
    DAEL_KEY_SIZE = 2,
    DAEL_IV_SIZE = 3,
    DAEL_RAGGED_LENGTH = 4,
    DAEL_BAD_PADDING = 5,
    DAEL_OVERLAP = 6,
    DAEL_LIMIT = 7,
    DAEL_UNKNOWN_BACKEND = 8,
    DAEL_BACKEND_ABSENT = 9,
    DAEL_UNSUPPORTED = 10,
    DAEL_OUT_OF_MEMORY = 11,
    DAEL_DEVICE = 12,
    DAEL_IO = 13,
    DAEL_BAD_FORMAT = 14,
    DAEL_INTERNAL = 15,
    DAEL_AUTHENTICATION = 16
} dael_status;

typedef enum dael_mode {
    DAEL_ECB = 0, /* whole blocks, no IV */
    DAEL_CBC = 1, /* whole blocks */
    DAEL_CFB = 2, /* CFB-128, any length */
    DAEL_OFB = 3, /* any length */
    DAEL_CTR = 4  /* any length; the IV is a 128-bit big-endian counter, which wraps */
} dael_mode;

typedef enum dael_direction { DAEL_ENCRYPT = 0, DAEL_DECRYPT = 1 } dael_direction;

/* What a status means, in one sentence; never null, whatever the value. */
const char* dael_strerror(int status);
/* What went wrong in the calling thread's last call that failed; "" if none has. Valid until the
 * thread's next call that fails. */
const char* dael_last_error(void);

typedef struct dael_engine dael_engine;
typedef struct dael_key dael_key;

/* `backend`: "auto", "cpu", "openssl", "cuda", "cuda:1", ...; null: the environment's
 * DAELSTROM_BACKEND, else "auto". A named backend is used or refused, never replaced. `threads`:
 * host threads, 0 for all cores. Close it after all its work, that on devices included. */
dael_status dael_engine_open(const char* backend, int threads, dael_engine** engine);
void dael_engine_close(dael_engine* engine);

/* `size`: 16, 24 or 32. The key is copied to locked memory, and wiped when it is freed. */
dael_status dael_key_import(const void* bytes, size_t size, dael_key** key);
void dael_key_free(dael_key* key);

/* What a call did. Every `ran` below may be null. */
typedef struct dael_ran {
    char backend[32]; /* the backend that processed the data: "cpu", "cuda:0" */
    int threads;      /* host threads that took part */
    uint64_t chunks;  /* chunks that crossed to a device and back; 0: none */
} dael_ran;

/* In the calls below `mode` is a dael_mode and `direction` a dael_direction. They are passed as
 * int, so that a value out of range is refused (DAEL_INVALID_ARGUMENT) and never undefined.
 *
 * Host memory; done when it returns. `iv`: 16 bytes; null in ECB. `offset`: CTR only, the byte of
 * the keystream at which the data starts. `out` is `in` or does not overlap it. */
dael_status dael_crypt(dael_engine* engine, const dael_key* key, int mode, int direction,
                       const uint8_t* iv, uint64_t offset, const void* in, void* out, size_t size,
                       dael_ran* ran);

/* Device memory: launches on the stream (a cudaStream_t; null is the default stream) and returns.
 */
dael_status dael_crypt_device(dael_engine* engine, const dael_key* key, int mode, int direction,
                              const uint8_t* iv, uint64_t offset, const void* device_in,
                              void* device_out, size_t size, void* stream, dael_ran* ran);

typedef struct dael_message {
    const void* in;
    void* out;
    size_t size;
    uint8_t iv[DAEL_BLOCK_SIZE]; /* ignored by ECB */
    uint64_t offset;             /* CTR only */
} dael_message;

/* Many independent messages in host memory at once; done when it returns. */
dael_status dael_crypt_batch(dael_engine* engine, const dael_key* key, int mode, int direction,
                             const dael_message* messages, size_t count, dael_ran* ran);

/* XTS, for storage sectors (IEEE 1619). It does not authenticate either; a changed block decrypts
 * to a random one. `bytes`: 32 (two AES-128 keys) or 64 (two AES-256 keys), whose halves differ. */
typedef struct dael_xts_key dael_xts_key;
dael_status dael_xts_key_import(const void* bytes, size_t size, dael_xts_key** key);
void dael_xts_key_free(dael_xts_key* key);

/* Neighbouring sectors, numbered one after another. */
typedef struct dael_xts_sectors {
    uint64_t first;      /* number of the first; the lower half of 128 bits, */
    uint64_t first_high; /* and the upper half, zero on disks */
    size_t size;         /* bytes of a sector: 16 to 16777216 */
} dael_xts_sectors;

/* Whole sectors, but for the last, which may be shorter, down to 16 bytes. `out` is `in` or does
 * not overlap it. The first is done when it returns; the second launches on the stream and returns.
 */
dael_status dael_xts(dael_engine* engine, const dael_xts_key* key, int direction,
                     const dael_xts_sectors* sectors, const void* in, void* out, size_t size,
                     dael_ran* ran);
dael_status dael_xts_device(dael_engine* engine, const dael_xts_key* key, int direction,
                            const dael_xts_sectors* sectors, const void* device_in,
                            void* device_out, size_t size, void* stream, dael_ran* ran);

/* AES-GCM and GMAC (NIST SP 800-38D), which authenticate. An IV must never repeat under one key.
 * Opening fails with DAEL_AUTHENTICATION if the tag does not match; `out` then holds no plaintext.
 * A message without data is GMAC. Tags have 4, 8, or 12 to 16 bytes. */
#define DAEL_TAG_SIZE 16
#define DAEL_NONCE_SIZE 12

/* One message in host memory. `iv_size`: 1 or more, 12 is usual. `out` is `in` or does not overlap
 * it, and overlaps neither the tag nor the additional data. */
dael_status dael_gcm_seal(dael_engine* engine, const dael_key* key, const void* iv, size_t iv_size,
                          const void* aad, size_t aad_size, const void* in, void* out, size_t size,
                          void* tag, size_t tag_size, dael_ran* ran);
dael_status dael_gcm_open(dael_engine* engine, const dael_key* key, const void* iv, size_t iv_size,
                          const void* aad, size_t aad_size, const void* in, void* out, size_t size,
                          const void* tag, size_t tag_size, dael_ran* ran);

/* Keys made ready for batches, on one engine: free them before it is closed. They are copied. */
typedef struct dael_keyset dael_keyset;
dael_status dael_keyset_prepare(dael_engine* engine, const dael_key* const* keys, size_t count,
                                dael_keyset** set);
void dael_keyset_free(dael_keyset* set);

/* The layout is that of dael::GcmMessage, 64 bytes. */
typedef struct dael_gcm_message {
    const uint8_t* in;
    uint8_t* out;
    uint64_t size;
    const uint8_t* aad;
    uint64_t aad_size;
    uint8_t* tag; /* sealing writes it, opening reads it */
    uint8_t nonce[DAEL_NONCE_SIZE];
    uint32_t key; /* index into the key set */
} dael_gcm_message;

/* Many messages in host memory; done when it returns. results[i], a dael_status, tells of message
 * i: DAEL_OK, DAEL_AUTHENTICATION, or why it was not touched. No message disturbs another. The call
 * itself fails only as a whole. */
dael_status dael_seal_batch(dael_engine* engine, const dael_keyset* keys,
                            const dael_gcm_message* messages, size_t count, int* results,
                            size_t tag_size, dael_ran* ran);
dael_status dael_open_batch(dael_engine* engine, const dael_keyset* keys,
                            const dael_gcm_message* messages, size_t count, int* results,
                            size_t tag_size, dael_ran* ran);

/* Page-locked memory, which a device reaches at full speed; plain memory where there is no device.
 * Null when memory ran out. */
void* dael_pinned_alloc(size_t size);
void dael_pinned_free(void* memory);

/* Calls `visit` for each backend that daelstrom knows. The strings are valid during the call only.
 */
typedef struct dael_backend {
    const char* name;        /* "cuda:0" */
    const char* description; /* what there is of it here; "" when absent */
    const char* summary;     /* one line on what the backend is */
    int present;             /* 1 or 0 */
    const char* missing;     /* what is missing when absent; "" when present */
} dael_backend;
dael_status dael_list_backends(void (*visit)(void* context, const dael_backend* backend),
                               void* context);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_H */
