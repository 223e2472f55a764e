/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines, keys and key sets, and messages in host memory. Include daelstrom.h, which says what
 * holds for every call: errors, who owns what, threads, fork().
 */
#ifndef DAELSTROM_DAELSTROM_ENGINE_H
#define DAELSTROM_DAELSTROM_ENGINE_H

#include <daelstrom/daelstrom_base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dael_engine dael_engine;
typedef struct dael_key dael_key;
typedef struct dael_keyset dael_keyset;

/* Zero is the default of every member but the first. */
typedef struct dael_engine_options {
    size_t struct_size; /* sizeof(dael_engine_options) */
    /* "auto", or a backend by name: "reference", "openssl", "cpu", "cuda", "cuda:1", "opencl",
     * "opengl". Null or "": the environment's DAELSTROM_BACKEND, else "auto". A named backend is
     * used or refused, never replaced. */
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
DAEL_API dael_status dael_keyset_make(dael_engine* engine, const dael_key* const* keys,
                                      size_t count, dael_keyset** set);
/* How many keys there are, and the bits of one; 0 for null, and for an index that there is not. */
DAEL_API size_t dael_keyset_size(const dael_keyset* set);
DAEL_API int dael_keyset_bits(const dael_keyset* set, uint32_t index);
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
DAEL_API dael_status dael_keyset_replace(dael_keyset* set, uint32_t index, const dael_key* key,
                                         void* stream);
/* Wiped when the last batch that was made with it goes too. What was launched with the set itself
 * must be done. */
DAEL_API void dael_keyset_free(dael_keyset* set);

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
                                    const dael_keyset* keys, const dael_message* messages,
                                    size_t count, int32_t* codes, dael_ran* ran);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_ENGINE_H */
