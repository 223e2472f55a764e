/* SPDX-License-Identifier: Apache-2.0
 *
 * What all of daelstrom's C interface shares: versions, errors, what is done (dael_cipher), to what
 * (dael_message), and what was done (dael_ran). Include daelstrom.h, which says what holds for
 * every call.
 */
#ifndef DAELSTROM_DAELSTROM_BASE_H
#define DAELSTROM_DAELSTROM_BASE_H

#include <stddef.h>
#include <stdint.h>

#include <daelstrom/export.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    DAEL_XTS = 7      /* sectors of 16 bytes or more */
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
    uint8_t tag;       /* GCM: bytes of the messages' tags: 4, 8, or 12 to 16 */
    uint8_t unused;    /* 0 */
    uint32_t sector;   /* XTS: bytes of a sector, 16 to 16777216 */
} dael_cipher;

/* To what it is done. 80 bytes, the layout of dael::Message: lists are used where they lie, and
 * never copied on their way to a backend. `in`, `out`, `aad` and `tag` lie in one memory space;
 * `out` is `in` itself or does not overlap it, and overlaps neither the tag nor the AAD, nor, in a
 * batch, anything of another message. */
typedef struct dael_message {
    const uint8_t* in; /* null in a counter mode: `out` gets the keystream itself */
    uint8_t* out;
    uint64_t size;      /* of `in` and of `out` */
    const uint8_t* aad; /* GCM: additional data, authenticated and not encrypted */
    uint64_t aad_size;
    uint8_t* tag; /* GCM: encryption writes it, decryption reads it */
    /* CBC, CFB, OFB: the IV. CTR, gcm_ctr: the first counter block. GCM: the pre-counter block, and
     * XTS: the first sector's number, which dael_gcm_start() and dael_xts_start() fill in. */
    uint8_t start[DAEL_BLOCK_SIZE];
    uint32_t key; /* index into the key set; 0 where there is one key */
    uint8_t skip; /* CTR, gcm_ctr: bytes of the first keystream block to leave out, 0 to 15 */
    uint8_t unused[11];
} dael_message;

/* What a call did, for those who want to know: every `ran` may be null. */
typedef struct dael_ran {
    char backend[32];  /* the backend that processed the data: "cpu", "cuda:0" */
    int32_t threads;   /* host threads that took part */
    uint32_t replaced; /* 1: a device was to do it and failed, so that the host did; else 0 */
    uint64_t chunks;   /* chunks that crossed to a device and back; 0: none */
    uint64_t unused_too[2];
} dael_ran;

/* Overwrites memory in a way that the compiler may not remove. Null with size 0 is fine. */
DAEL_API void dael_wipe(void* memory, size_t size);

/* Page-locked host memory, which a device copies to and from at full speed; plain memory where
 * there is no device. Null when memory ran out. Freeing takes null. After fork() the child has a
 * copy of its content, and may free it; what it allocates itself is plain memory. */
DAEL_API void* dael_pinned_alloc(size_t size);
DAEL_API void dael_pinned_free(void* memory);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_BASE_H */
