/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealed data for C: a stream of any size, encrypted and authenticated segment by segment, so that
 * it can be opened in constant memory, in parallel, and from anywhere. The format is Tink's
 * streaming AEAD AES-GCM-HKDF, byte for byte; docs/format.md describes it. daelstrom.h says what
 * holds for every call: errors, who owns what, threads, fork(). Recipients and passphrases:
 * daelstrom_sealed_recipients.h. For those who move the bytes themselves:
 * daelstrom_sealed_chunks.h.
 *
 * Safety: whoever opens gets verified plaintext only, segment by segment in order. That a stream is
 * whole is known once its last segment is verified: what was handed out before is authentic, but
 * may be only the beginning. Associated data (`aad`) is not stored; opening takes the same. A
 * sealed stream tells its size and nothing else about its plaintext. AES-GCM does not commit to its
 * key: do not try keys that a stranger chose.
 *
 * Calls block until done, and may run in a child of fork() with an engine on host backends.
 */
#ifndef DAELSTROM_DAELSTROM_SEALED_H
#define DAELSTROM_DAELSTROM_SEALED_H

#include <daelstrom/daelstrom_engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a ciphertext segment with its tag, in Tink's templates ..._4KB and ..._1MB. */
#define DAEL_SEALED_SMALL_SEGMENT 4096
#define DAEL_SEALED_LARGE_SEGMENT 1048576

/* What seals and what may open: the first key seals, and opening tries every one. In locked memory
 * that is wiped. Any number of threads at once. */
typedef struct dael_sealed_keys dael_sealed_keys;

/* `size`: 16 or 32 bytes: Tink's AES128_GCM_HKDF_... and AES256_GCM_HKDF_..., with SHA-256. Seals
 * with segments of `segment` bytes, one of the two above unless a format asks for another (0: the
 * large ones), and opens both. The bytes are copied; wiping them is up to you. Errors:
 * DAEL_KEY_SIZE, DAEL_INVALID_ARGUMENT. */
DAEL_API dael_status dael_sealed_keys_import(const void* bytes, size_t size, uint32_t segment,
                                             dael_sealed_keys** keys);
/* A keyset as Tink writes it in JSON, not encrypted: the primary key seals, every enabled one
 * opens. Nothing of the text is kept but the keys. Errors: DAEL_BAD_FORMAT, DAEL_UNSUPPORTED,
 * DAEL_LIMIT. */
DAEL_API dael_status dael_sealed_keys_parse(const void* json, size_t size, dael_sealed_keys** keys);
/* The key that seals, alone, in a handle of its own: what it opens was not sealed with one of the
 * others. Errors: DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_sealed_keys_sealing(const dael_sealed_keys* keys,
                                              dael_sealed_keys** alone);
/* Bytes of a segment of what is sealed with these keys. Null: 0. */
DAEL_API uint32_t dael_sealed_keys_segment(const dael_sealed_keys* keys);
/* Wipes them, unless a handle still needs them: then when that goes. */
DAEL_API void dael_sealed_keys_free(dael_sealed_keys* keys);

/* Bytes that sealing makes of `plain` bytes. Errors: DAEL_LIMIT. */
DAEL_API dael_status dael_sealed_size(const dael_sealed_keys* keys, uint64_t plain,
                                      uint64_t* sealed);

/* From memory to memory; the two lie apart (DAEL_OVERLAP, before anything is touched).
 * `sealed_size` must be what dael_sealed_size says. Errors: as dael_run_batch; DAEL_LIMIT. */
DAEL_API dael_status dael_sealed_seal(dael_engine* engine, const dael_sealed_keys* keys,
                                      const void* aad, size_t aad_size, const void* plain,
                                      size_t plain_size, void* sealed, size_t sealed_size,
                                      dael_ran* ran);
/* `plain_room` may be anything from the plaintext's size on; `sealed_size` is always enough.
 * *plain_size says how much came out. Errors: DAEL_AUTHENTICATION, naming the segment, after
 * which all of `plain` is wiped; those of the engine, after which what was written is;
 * DAEL_BAD_FORMAT for what is too short to be sealed data, DAEL_OVERLAP and DAEL_INVALID_ARGUMENT,
 * after which nothing is touched. */
DAEL_API dael_status dael_sealed_open(dael_engine* engine, const dael_sealed_keys* keys,
                                      const void* aad, size_t aad_size, const void* sealed,
                                      size_t sealed_size, void* plain, size_t plain_room,
                                      uint64_t* plain_size, dael_ran* ran);

/* Where a stream comes from: puts some bytes into `out`, whose size is never 0, and returns how
 * many; as few as it likes. 0 is the end, a negative number a failure (DAEL_IO): what ends a stream
 * before its time seals a beginning, so an error of read(2) must not become 0. */
typedef int64_t (*dael_read)(void* context, void* out, size_t size);
/* All of `size` bytes of a stream, from byte `at` on; 0, or another number for a failure. */
typedef int (*dael_read_at)(void* context, uint64_t at, void* out, size_t size);
/* Where a stream goes; 0, or another number for a failure. */
typedef int (*dael_write)(void* context, const void* bytes, size_t size);

/* From a stream to a stream, in constant memory. The callbacks are called on the calling thread,
 * with their contexts, and not after it has returned. *size (may be null) says how many bytes went
 * out. When opening, verified plaintext goes out before the end is known to be authentic: throw it
 * away if the call fails. Errors: as above; DAEL_IO. */
DAEL_API dael_status dael_sealed_seal_stream(dael_engine* engine, const dael_sealed_keys* keys,
                                             const void* aad, size_t aad_size, dael_read read,
                                             void* read_context, dael_write write,
                                             void* write_context, uint64_t* size, dael_ran* ran);
DAEL_API dael_status dael_sealed_open_stream(dael_engine* engine, const dael_sealed_keys* keys,
                                             const void* aad, size_t aad_size, dael_read read,
                                             void* read_context, dael_write write,
                                             void* write_context, uint64_t* size, dael_ran* ran);

/* A sealed stream that can be read from anywhere: reads what a range touches, and nothing else. Any
 * number of threads at once, where `read` serves them; close it when no call on it is running. A
 * child of fork() may go on with it, with an engine on host backends. Keeps engine and keys alive;
 * `read` and its context are used until it is closed. */
typedef struct dael_sealed_file dael_sealed_file;
/* `size`: of the whole stream behind `read`. Errors: DAEL_BAD_FORMAT, DAEL_AUTHENTICATION, DAEL_IO.
 */
DAEL_API dael_status dael_sealed_file_open(dael_engine* engine, const dael_sealed_keys* keys,
                                           const void* aad, size_t aad_size, dael_read_at read,
                                           void* context, uint64_t size, dael_sealed_file** file);
DAEL_API void dael_sealed_file_close(dael_sealed_file* file);

/* Bytes of plaintext, as the stream's size tells. That nothing was cut off or added is known once
 * the last segment is verified: by the second call, or by a read that reaches the end. Null: 0. */
DAEL_API uint64_t dael_sealed_file_size(const dael_sealed_file* file);
DAEL_API dael_status dael_sealed_file_check_size(dael_sealed_file* file);

/* `size` bytes of plaintext from byte `at` on; none are verified like others, and at the file's
 * size the end with them. On failure all of `out` is wiped. Errors: DAEL_AUTHENTICATION, naming the
 * segment; DAEL_INVALID_ARGUMENT for a range that passes the end, and then nothing is touched;
 * DAEL_IO. */
DAEL_API dael_status dael_sealed_file_read(dael_sealed_file* file, uint64_t at, void* out,
                                           size_t size, dael_ran* ran);
/* All of the plaintext straight into device memory, with an engine for "auto" or a device; no
 * plaintext is ever in host memory. `size` must be the file's. Runs on `stream`, after what it
 * holds already; done when it returns, and then the whole stream is verified. On failure all of the
 * memory is wiped, but what is refused up front (DAEL_INVALID_ARGUMENT, DAEL_UNSUPPORTED,
 * DAEL_BACKEND_ABSENT) touches nothing. `readers`: that many of the engine's threads call the
 * file's callback at once, if it may be called so; 0 and 1: the calling thread alone. One core
 * copies from the page cache a fifth of what the bus takes. */
DAEL_API dael_status dael_sealed_file_read_all(dael_sealed_file* file, void* device_out,
                                               size_t size, void* stream, int readers,
                                               dael_ran* ran);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_SEALED_H */
