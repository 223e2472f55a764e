/* SPDX-License-Identifier: Apache-2.0
 *
 * For C: sealed streams (daelstrom_sealed.h) chunk by chunk, without any reading or writing: the
 * caller moves the bytes. daelstrom.h says what holds for every call: errors, who owns what,
 * threads, fork().
 *
 *     stream  = header | segment 0 | segment 1 | ... | the last segment
 *     segment = ciphertext | tag of 16 bytes
 *
 * The header counts to segment 0, so that segment i ends at byte (i + 1) * layout.segment. A chunk
 * is some neighbouring whole segments; only the last one of a stream may be shorter. Plaintext lies
 * packed in memory of its own, which may not overlap the stream's (DAEL_OVERLAP, before anything is
 * touched); or in place, in the chunk's memory, each segment's where its ciphertext is:
 * dael_sealed_place() tells.
 *
 * Safety: a sealer seals each segment once, in order, so that no nonce repeats. An opener hands out
 * verified plaintext only; that the stream is whole is known once its last segment is verified.
 */
#ifndef DAELSTROM_DAELSTROM_SEALED_CHUNKS_H
#define DAELSTROM_DAELSTROM_SEALED_CHUNKS_H

#include <daelstrom/daelstrom_sealed.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_SEALED_CHUNKS_H */
