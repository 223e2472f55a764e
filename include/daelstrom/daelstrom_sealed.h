/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealed data for C: a stream of any size, encrypted and authenticated segment by segment, so that
 * it can be opened in constant memory, in parallel, and from anywhere. The format is Tink's
 * streaming AEAD AES-GCM-HKDF, byte for byte; docs/format.md describes it. daelstrom.h says what
 * holds for every call: errors, who owns what, threads, fork(). Further down: chunks, for those who
 * move the bytes themselves; keysets that are made and changed; recipients and passphrases; files
 * put in their places.
 *
 * Safety: whoever opens gets verified plaintext only, segment by segment in order. That a stream
 * is whole is known once its last segment is verified: what was handed out before is authentic,
 * but may be only the beginning. Associated data (`aad`) is not stored; opening takes the same. A
 * sealed stream tells its size and nothing else about its plaintext. AES-GCM does not commit to
 * its key: do not try keys that a stranger chose.
 *
 * Calls block until done, and may run in a child of fork() with an engine on host backends.
 */
#ifndef DAELSTROM_DAELSTROM_SEALED_H
#define DAELSTROM_DAELSTROM_SEALED_H

#include <daelstrom/daelstrom.h>

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

/* Chunks, for those who move bytes themselves.
 *
 * Sealed streams, as above, chunk by chunk, without any reading or writing: the
 * caller moves the bytes.
 *
 *     stream  = header | segment 0 | segment 1 | ... | the last segment
 *     segment = ciphertext | tag of 16 bytes
 *
 * The header counts to segment 0, so that segment i ends at byte (i + 1) * layout.segment. A chunk
 * is some neighbouring whole segments; only the last one of a stream may be shorter. Plaintext
 * lies packed in memory of its own, which may not overlap the stream's (DAEL_OVERLAP, before
 * anything is touched); or in place, in the chunk's memory, each segment's where its ciphertext
 * is: dael_sealed_place() tells.
 *
 * Safety: a sealer seals each segment once, in order, so that no nonce repeats. An opener hands
 * out verified plaintext only; that the stream is whole is known once its last segment is
 * verified. */

/* These three never change. */
typedef struct dael_sealed_range {
    uint64_t at, size;
} dael_sealed_range;
typedef struct dael_sealed_chunk {
    uint64_t first, count;    /* number of its first segment, and how many there are */
    dael_sealed_range plain;  /* where its bytes lie in the plaintext */
    dael_sealed_range sealed; /* and in the stream, with the header */
    uint64_t last;            /* 1: the stream ends with it */
} dael_sealed_chunk;
/* Where things lie in one stream. */
typedef struct dael_sealed_layout {
    uint64_t segment; /* bytes of a whole segment, with its tag */
    uint64_t header;  /* bytes */
} dael_sealed_layout;

/* Arithmetic alone, thread-safe; a layout is what dael_sealer_layout() or dael_opener_layout()
 * gave.
 *
 * From the size of a plaintext to that of its stream, and back. Errors: DAEL_LIMIT for more than
 * 2^32 segments; DAEL_BAD_FORMAT where no stream ends. */
DAEL_API dael_status dael_sealed_size_of_plain(const dael_sealed_layout* layout, uint64_t plain,
                                               uint64_t* sealed);
DAEL_API dael_status dael_sealed_plain_size(const dael_sealed_layout* layout, uint64_t sealed,
                                            uint64_t* plain);
/* The smallest chunk that holds `plain`, of a plaintext of `size` bytes; one that reaches the end
 * has the last segment, even where that is empty. Fetch its `sealed` range and open it. Errors:
 * DAEL_INVALID_ARGUMENT for a range that passes the end. */
DAEL_API dael_status dael_sealed_covering(const dael_sealed_layout* layout,
                                          const dael_sealed_range* plain, uint64_t size,
                                          dael_sealed_chunk* chunk);
/* The chunk that begins with segment `first` and has `sealed` bytes of the stream: whole segments,
 * unless it is the last. Errors: DAEL_INVALID_ARGUMENT, DAEL_BAD_FORMAT, DAEL_LIMIT. */
DAEL_API dael_status dael_sealed_chunk_of(const dael_sealed_layout* layout, uint64_t first,
                                          uint64_t sealed, int last, dael_sealed_chunk* chunk);
/* Where in a chunk's memory the plaintext of its i-th segment lies when it is in place. */
DAEL_API dael_status dael_sealed_place(const dael_sealed_layout* layout,
                                       const dael_sealed_chunk* chunk, uint64_t i,
                                       dael_sealed_range* place);

/* Makes one stream, its chunks one after another. One thread at a time: a second one is refused
 * (DAEL_INVALID_ARGUMENT), since both would use the same nonces. Free it when no call on it is
 * running. Keeps the engine alive, and no plaintext. */
typedef struct dael_sealer dael_sealer;
/* With a random salt and nonce prefix. The first of the keys seals. Errors: the engine's. */
DAEL_API dael_status dael_sealer_start(dael_engine* engine, const dael_sealed_keys* keys,
                                       const void* aad, size_t aad_size, dael_sealer** sealer);
DAEL_API void dael_sealer_free(dael_sealer* sealer);
DAEL_API dael_status dael_sealer_layout(const dael_sealer* sealer, dael_sealed_layout* layout);
/* The chunk that so many bytes of plaintext would make now: it tells how much room they take.
 * Errors: as dael_sealer_seal. */
DAEL_API dael_status dael_sealer_next(const dael_sealer* sealer, uint64_t plain, int last,
                                      dael_sealed_chunk* chunk);
/* Seals the next chunk: whole segments of plaintext, but for the last, which has a byte at least
 * unless it is the first too. What comes out is as dael_sealer_next() said, and the first one
 * begins with the header. `sealed` may be larger. Errors: DAEL_INVALID_ARGUMENT, DAEL_OVERLAP
 * (nothing is touched); DAEL_LIMIT; those of the engine, after which this stream cannot go on.
 * Neither can it after its last chunk, nor in a child of fork(), where its parent's nonces would
 * repeat. */
DAEL_API dael_status dael_sealer_seal(dael_sealer* sealer, const void* plain, size_t plain_size,
                                      void* sealed, size_t sealed_size, int last, dael_ran* ran);
/* The same in place: `chunk` holds `plain` bytes of plaintext where dael_sealed_place() says. */
DAEL_API dael_status dael_sealer_seal_in_place(dael_sealer* sealer, void* chunk, size_t chunk_size,
                                               uint64_t plain, int last, dael_ran* ran);

/* Opens one stream, its chunks in any order, by any number of threads at once, and in a child of
 * fork() with an engine on host backends. Free it when no call on it is running. Keeps the engine
 * alive. */
typedef struct dael_opener dael_opener;
/* How much of a stream's beginning dael_opener_start() looks at, if there is that much. Null: 0. */
DAEL_API size_t dael_opener_head_size(const dael_sealed_keys* keys);
/* By a stream's beginning; `whole`: that is all of it. Makes no plaintext. Errors: DAEL_BAD_FORMAT;
 * DAEL_AUTHENTICATION where several keys are tried and none fits; those of the engine. */
DAEL_API dael_status dael_opener_start(dael_engine* engine, const dael_sealed_keys* keys,
                                       const void* aad, size_t aad_size, const void* head,
                                       size_t head_size, int whole, dael_opener** opener);
DAEL_API void dael_opener_free(dael_opener* opener);
DAEL_API dael_status dael_opener_layout(const dael_opener* opener, dael_sealed_layout* layout);
/* `sealed` and `plain` have the chunk's sizes; in place, `bytes` are its bytes of the stream.
 * Errors: DAEL_AUTHENTICATION, naming the first segment that fails; those of the engine. After them
 * all of `plain`, or of `bytes`, is wiped. DAEL_INVALID_ARGUMENT, DAEL_OVERLAP: nothing is touched.
 */
DAEL_API dael_status dael_opener_open(const dael_opener* opener, const dael_sealed_chunk* chunk,
                                      const void* sealed, size_t sealed_size, void* plain,
                                      size_t plain_size, dael_ran* ran);
DAEL_API dael_status dael_opener_open_in_place(const dael_opener* opener,
                                               const dael_sealed_chunk* chunk, void* bytes,
                                               size_t size, dael_ran* ran);

/* Keysets.
 *
 * Tink's keysets, as above, made and changed, for the rotation of keys: one is
 * added and spread, then promoted, so that it seals; what the old one sealed is sealed anew, and
 * then the old one is disabled. dael_sealed_keys_parse() takes what comes out, and so does Tink.
 * daelstrom.h says what holds for every call: errors, who owns what, fork().
 *
 * Safety: a keyset's text holds its keys as they are. It lies here in memory that is wiped; where
 * it comes from and where it goes is up to the caller, as is that nobody else changes the same
 * file meanwhile. One thread at a time; free one when no call on it is running; a child of fork()
 * has a copy of its own. */

typedef struct dael_sealed_keyset dael_sealed_keyset;

/* Without a key: nothing takes one before one was added. Errors: DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_sealed_keyset_create(dael_sealed_keyset** keyset);
/* As dael_sealed_keys_parse(), but keys of other types, keys that cannot be read and a primary key
 * that is none are let pass, to be listed and mended. The text is copied; wiping yours is up to
 * you. Errors: DAEL_BAD_FORMAT, DAEL_UNSUPPORTED, DAEL_LIMIT, DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_sealed_keyset_parse(const void* json, size_t size,
                                              dael_sealed_keyset** keyset);
/* Wipes it. */
DAEL_API void dael_sealed_keyset_free(dael_sealed_keyset* keyset);

/* In Tink's numbers; others may come from a later Tink. */
#define DAEL_SEALED_KEY_ENABLED 1
#define DAEL_SEALED_KEY_DISABLED 2
#define DAEL_SEALED_KEY_DESTROYED 3
/* What may be shown of a key. Texts end in a zero, and are cut where they are longer. */
typedef struct dael_sealed_keyset_entry {
    size_t struct_size; /* sizeof(dael_sealed_keyset_entry) */
    uint32_t id;
    int32_t status;
    uint32_t primary; /* 1: it seals */
    uint32_t unused;  /* 0 */
    char type[64];    /* "AesGcmHkdfStreamingKey", or what it is instead */
    char shape[96];   /* a template's name, or the numbers; empty where it cannot be read */
} dael_sealed_keyset_entry;
/* How many keys there are. Null: 0. */
DAEL_API size_t dael_sealed_keyset_count(const dael_sealed_keyset* keyset);
/* The i-th of them, as they stand in the text. Errors: DAEL_INVALID_ARGUMENT. */
DAEL_API dael_status dael_sealed_keyset_entry_at(const dael_sealed_keyset* keyset, size_t i,
                                                 dael_sealed_keyset_entry* entry);

/* A new random key, enabled; the primary one if there was none before. `name`: one of Tink's
 * templates, "AES256_GCM_HKDF_1MB" (null: this), "AES256_GCM_HKDF_4KB", "AES128_GCM_HKDF_1MB",
 * "AES128_GCM_HKDF_4KB". *id is its number. Errors: DAEL_INVALID_ARGUMENT, DAEL_LIMIT. */
DAEL_API dael_status dael_sealed_keyset_add(dael_sealed_keyset* keyset, const char* name,
                                            uint32_t* id);
/* Changes to the key of this number. The primary key can be neither disabled nor removed, and what
 * is disabled not be promoted. What it is already is no error. Errors: DAEL_INVALID_ARGUMENT,
 * naming the number; a failure changes nothing. */
DAEL_API dael_status dael_sealed_keyset_promote(dael_sealed_keyset* keyset, uint32_t id);
DAEL_API dael_status dael_sealed_keyset_enable(dael_sealed_keyset* keyset, uint32_t id);
DAEL_API dael_status dael_sealed_keyset_disable(dael_sealed_keyset* keyset, uint32_t id);
DAEL_API dael_status dael_sealed_keyset_remove(dael_sealed_keyset* keyset, uint32_t id);

/* Its text, as Tink writes it: secret, wiping it is up to you. `size` must be what the first says,
 * which is 0 for null; there is no zero behind it. Errors: DAEL_INVALID_ARGUMENT. */
DAEL_API size_t dael_sealed_keyset_json_size(const dael_sealed_keyset* keyset);
DAEL_API dael_status dael_sealed_keyset_write_json(const dael_sealed_keyset* keyset, void* out,
                                                   size_t size);

/* Recipients and passphrases.
 *
 * Sealed data, as above, for people. An envelope stands in front of the stream
 * and holds its own random key, for everybody who has one of several secret keys, or for one
 * passphrase. An envelope is a whole age v1 file (age-encryption.org/v1), so the keys of age and
 * of those who read its files work, and `age -d` gets the stream's key out; docs/format.md has its
 * bytes.
 *
 * Safety: whoever has the envelope and one of the secrets has the stream's key for good: to write
 * a new envelope takes nothing away from copies of the old one. An envelope does not say who
 * sealed it: anybody can make one for a public recipient. It shows how many recipients it has, not
 * who they are. A passphrase is as hard to guess as it is, times what a guess costs; what opening
 * costs stands in the envelope and is verified only once that is spent, hence the limit.
 *
 * Limits: 1,000 recipients or identities. Calls block until done. Secrets are copied to locked
 * memory and wiped there; wiping yours is up to you. */

/* Work: what a guess at a passphrase costs, and so what opening does. scrypt (RFC 7914) with
 * N = 2^work, r = 8 and p = 1 takes 2^work KiB of memory. Where an argument is 0: DAEL_USUAL_WORK,
 * 128 MiB and some tenths of a second; where a limit is 0: DAEL_USUAL_WORK_LIMIT. */
#define DAEL_USUAL_WORK 17
#define DAEL_USUAL_WORK_LIMIT 18
#define DAEL_MAX_WORK 20
/* No envelope is longer. */
#define DAEL_MAX_ENVELOPE 131072
/* Characters of a secret key as text, "AGE-SECRET-KEY-1...", and of its recipient, "age1...",
 * without the zero behind. */
#define DAEL_IDENTITY_SIZE 74
#define DAEL_RECIPIENT_SIZE 62
/* And of those of age 1.3, post-quantum, "AGE-SECRET-KEY-PQ-1..." and "age1pq1...". */
#define DAEL_HYBRID_IDENTITY_SIZE 77
#define DAEL_HYBRID_RECIPIENT_SIZE 1959

/* Whom an envelope is for. Any number of threads at once, but for _add. */
typedef struct dael_recipients dael_recipients;
/* As a recipients file has them: "age1...", or age 1.3's post-quantum "age1pq1...", on each line,
 * but for empty ones and those that begin with #. The two kinds do not go together
 * (DAEL_INVALID_ARGUMENT). UTF-8, or UTF-16 with its mark. Errors: DAEL_BAD_FORMAT, naming the
 * line; DAEL_UNSUPPORTED for other kinds (SSH keys, age's plugins), and for post-quantum ones where
 * libcrypto is older than OpenSSL 3.5; DAEL_LIMIT. */
DAEL_API dael_status dael_recipients_parse(const void* text, size_t size,
                                           dael_recipients** recipients);
/* One passphrase, which is bytes. Errors: DAEL_INVALID_ARGUMENT for an empty one, or work that is
 * not 1 to DAEL_MAX_WORK. */
DAEL_API dael_status dael_recipients_of_passphrase(const void* passphrase, size_t size,
                                                   int32_t work, dael_recipients** recipients);
/* Those of `others` too. Errors: DAEL_INVALID_ARGUMENT for a passphrase, which is always alone;
 * DAEL_LIMIT. */
DAEL_API dael_status dael_recipients_add(dael_recipients* recipients,
                                         const dael_recipients* others);
/* Bytes of the envelopes that are made for them. Null: 0. */
DAEL_API size_t dael_recipients_envelope_size(const dael_recipients* recipients);
DAEL_API void dael_recipients_free(dael_recipients* recipients);

/* What opens an envelope: secret keys, or one passphrase. Any number of threads at once, but for
 * _add. */
typedef struct dael_identities dael_identities;
/* As an identity file has them: "AGE-SECRET-KEY-1..." or "AGE-SECRET-KEY-PQ-1..." on each line, but
 * for empty ones and those that begin with #. Those of age's plugins, and of a kind that this
 * libcrypto lacks, are passed over if others remain. Errors: as dael_recipients_parse. No message
 * holds any of the text. */
DAEL_API dael_status dael_identities_parse(const void* text, size_t size,
                                           dael_identities** identities);
/* `most`: work that is refused before anything is computed if an envelope asks for more. Errors: as
 * dael_recipients_of_passphrase. */
DAEL_API dael_status dael_identities_of_passphrase(const void* passphrase, size_t size,
                                                   int32_t most, dael_identities** identities);
/* Those of `others` too. Errors: as dael_recipients_add. */
DAEL_API dael_status dael_identities_add(dael_identities* identities,
                                         const dael_identities* others);
/* Their public half: whom to seal for. Errors: DAEL_INVALID_ARGUMENT for a passphrase, which has
 * none. */
DAEL_API dael_status dael_identities_recipients(const dael_identities* identities,
                                                dael_recipients** recipients);
/* Wipes them. */
DAEL_API void dael_identities_free(dael_identities* identities);

/* A new secret key and its recipient, as text with a zero behind it. `identity` holds the secret:
 * wiping it is up to you. `recipient` may be null. */
DAEL_API dael_status dael_identity_make(char identity[DAEL_IDENTITY_SIZE + 1],
                                        char recipient[DAEL_RECIPIENT_SIZE + 1]);
/* The same, post-quantum: ML-KEM-768 and X25519 together. Errors: DAEL_UNSUPPORTED where libcrypto
 * is older than OpenSSL 3.5. */
DAEL_API dael_status dael_identity_make_hybrid(char identity[DAEL_HYBRID_IDENTITY_SIZE + 1],
                                               char recipient[DAEL_HYBRID_RECIPIENT_SIZE + 1]);

/* Whether a file begins as an envelope does, or any other age file, 1 or 0; 22 bytes tell. */
DAEL_API int dael_is_envelope(const void* start, size_t size);
/* What the beginning of a file tells of the envelope there. Nothing of it is verified yet. */
typedef struct dael_envelope_info {
    size_t struct_size; /* sizeof(dael_envelope_info) */
    size_t size;        /* bytes; the stream begins behind them. 0: give more of the file */
    size_t stanzas;     /* at most so many recipients; 1 for a passphrase */
    int32_t work;       /* what it asks of scrypt; 0: it takes identities, not a passphrase */
    int32_t unused;     /* 0 */
} dael_envelope_info;
/* Where info->size comes out as 0 and there is no more, the file is cut off, or an age file that
 * holds no sealed data. Errors: DAEL_BAD_FORMAT, DAEL_UNSUPPORTED for another version, DAEL_LIMIT:
 * no more need be read. */
DAEL_API dael_status dael_envelope_read(const void* start, size_t size, dael_envelope_info* info);

/* A new random key in `keys`, for one stream, and its envelope. `size` must be what
 * dael_recipients_envelope_size says; `segment`: as dael_sealed_keys_import. Errors:
 * DAEL_INVALID_ARGUMENT for a segment that cannot be; DAEL_OUT_OF_MEMORY for scrypt's. */
DAEL_API dael_status dael_envelope_make(const dael_recipients* recipients, uint32_t segment,
                                        void* envelope, size_t size, dael_sealed_keys** keys);
/* The keys in an envelope, which is the first of `size` bytes of a file; what follows is not looked
 * at. Errors: DAEL_AUTHENTICATION for other identities, another passphrase, or an envelope that was
 * altered, and for age files that hold something else; DAEL_INVALID_ARGUMENT for identities where
 * it takes a passphrase, and the reverse; DAEL_BAD_FORMAT; DAEL_LIMIT for what it asks of scrypt;
 * DAEL_UNSUPPORTED. */
DAEL_API dael_status dael_envelope_open(const dael_identities* identities, const void* start,
                                        size_t size, uint32_t segment, dael_sealed_keys** keys);
/* Another envelope for the same key: the stream behind it stays as it is. `fresh_size` must be what
 * dael_recipients_envelope_size says, and `fresh` is written only if all went well. Errors: as
 * both above. */
DAEL_API dael_status dael_envelope_rewrap(const dael_identities* identities, const void* start,
                                          size_t size, const dael_recipients* recipients,
                                          void* fresh, size_t fresh_size);

/* Files put in their places.
 *
 * For C: one way to put a file in its place, by descriptors, and keys as people keep them in
 * files. A file is written without a name, or under a hidden one beside its own, and gets its name
 * when all is well: it is there whole or not at all, takes the place of what was looked at when it
 * began and of nothing newer, lets nobody in who could not read what it was made of, and is on the
 * disk before its name is where that matters.
 *
 *     dael_file* file = NULL;
 *     dael_file_options options = {.struct_size = sizeof options, .existing = DAEL_FILE_REPLACED};
 *     if (dael_file_begin(AT_FDCWD, "data.sealed", &options, &file, NULL) != DAEL_OK) ...
 *     write(dael_file_fd(file), bytes, size);
 *     if (dael_file_commit(file, NULL) != DAEL_OK) ...    what was there is there still
 *     dael_file_discard(file);
 *
 * Threads: a handle is for one thread at a time; any number of handles may be at work at once, on
 * the same names too. Nobody writes to its descriptor during dael_file_commit(), closes the
 * descriptor, or uses it after dael_file_discard(). fork(): a child can neither commit what its
 * parent began (DAEL_INVALID_ARGUMENT) nor discard it: there dael_file_discard() frees the handle
 * and closes its descriptors, and leaves the file alone, whether or not the parent has ended it.
 *
 * Every `error` (may be null) gets the errno of what went wrong, else 0: EEXIST, EISDIR, ESTALE
 * for what is another file by now, EXDEV for what is no regular file, or what the system said. */

/* What may lie there already. */
typedef enum dael_file_existing {
    DAEL_FILE_REFUSED = 0,  /* nothing, not even by the time of the commit (EEXIST) */
    DAEL_FILE_REPLACED = 1, /* what is there when it begins; not another one, nor a newer one. The
                               new one gets its owner, group, permissions and attributes */
    DAEL_FILE_WHATEVER = 2  /* anything by then, of which nothing is kept: caches, where the last
                               one is as good as any */
} dael_file_existing;

/* What a file was when its content was read: dael_file_identify(). */
typedef struct dael_file_identity {
    uint64_t device, number, size; /* st_dev, st_ino, bytes */
    int64_t modified_s, changed_s; /* seconds, and */
    int64_t modified_ns, changed_ns;
    uint64_t unused;
} dael_file_identity;
DAEL_API dael_status dael_file_identify(int fd, dael_file_identity* identity);

typedef struct dael_file_options {
    size_t struct_size;
    int32_t existing;   /* dael_file_existing */
    uint32_t permitted; /* permissions of a new file that is made of nothing, less the umask; 0:
                           0666 */
    int32_t secret;     /* 1: for its owner alone (0600), whatever it replaces; on the disk first */
    int32_t sync;       /* 1: on the disk before it has its name; what is replaced always is */
    int32_t no_follow;  /* 1: a link at the path's end is refused (ELOOP) */
    int32_t streams;    /* 1: a pipe, a device or a descriptor of this process by its name
                           (/dev/stdout) is written to as it is; else it is refused (EXDEV) */
    int32_t has_input;  /* 1: `input` is an open descriptor of what the file is made of: the file
                           must not be that one (DAEL_OVERLAP), and lets nobody in who cannot read
                           it. Used during the call alone */
    int32_t input;
    const dael_file_identity* only; /* not null: it replaces this file as it was then, or nothing
                                       (ESTALE); with DAEL_FILE_REPLACED */
} dael_file_options;

/* A file on its way. */
typedef struct dael_file dael_file;

/* `folder`: an open folder that a relative `path` begins at, or AT_FDCWD. `path` ends in a zero;
 * null options are all zero. Links at its end are followed as the kernel would, and only to what
 * was found behind them then. Nothing is under the name yet. Errors: DAEL_IO, DAEL_OVERLAP. */
DAEL_API dael_status dael_file_begin(int folder, const char* path, const dael_file_options* options,
                                     dael_file** file, int* error);
/* To be written to, from its beginning; owned by the handle. Open for reading too, but for what is
 * no file. Null, or after a commit that went well: -1. */
DAEL_API int dael_file_fd(const dael_file* file);
/* 1 if a file was there when it began; 1 if what is written goes out at once (`streams`). */
DAEL_API int dael_file_replaces(const dael_file* file);
DAEL_API int dael_file_is_stream(const dael_file* file);
/* Gives it its name, once. After a failure what was there is there still, and nothing of the new
 * file is; it remains to be discarded. Waits for the disk where that is due. Errors: DAEL_IO;
 * DAEL_INVALID_ARGUMENT the second time, and in a child of fork(). */
DAEL_API dael_status dael_file_commit(dael_file* file, int* error);
/* What could not be kept of what was replaced (owner, group, attributes), or may not be on the
 * disk: a sentence for people, the first by 0; null behind the last. Valid until the discard. */
DAEL_API const char* dael_file_warning(const dael_file* file, size_t index);
/* Frees the handle and closes its descriptor; what was not committed has never been. Takes null. */
DAEL_API void dael_file_discard(dael_file* file);

/* For what is read, changed and replaced: a descriptor, for reading, of the regular file of that
 * name, which no other process holds by this call until it is closed (flock). Waits for it; what
 * has the name once the lock is ours is what is handed out, so that two who change a file by turns
 * lose nothing. Errors: DAEL_IO. */
DAEL_API dael_status dael_file_open_locked(int folder, const char* path, int* fd, int* error);
/* A folder below an open one, by names alone: no link is followed, and no "..". For *at() calls
 * (O_PATH); to be closed by the caller. Errors: DAEL_IO (ELOOP, EXDEV, ENOTDIR for a link). */
DAEL_API dael_status dael_file_open_below(int folder, const char* path, int* fd, int* error);

/* An AES key as people keep it: 16, 24 or 32 bytes, or 32, 48 or 64 hexadecimal digits with
 * optional white space behind them, which are always taken as digits: by chance, raw keys never
 * are. `key` has 32 bytes, of which *key_size are written; wiping them is up to you. The time that
 * this takes depends on sizes alone. `name` is what the error calls it (null: "the key"). Errors:
 * DAEL_KEY_SIZE. */
DAEL_API dael_status dael_key_decode(const void* text, size_t size, const char* name, void* key,
                                     size_t* key_size);
/* The same of a file. *open_to (may be null) gets the permissions, 0 to 077, that others have to
 * it, which are worth a warning. Errors: DAEL_IO, DAEL_KEY_SIZE. */
DAEL_API dael_status dael_key_read_file(int folder, const char* path, void* key, size_t* key_size,
                                        uint32_t* open_to, int* error);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_SEALED_H */
