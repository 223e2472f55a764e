/* SPDX-License-Identifier: Apache-2.0
 *
 * For C: a passphrase in the place of a sealed stream's key (daelstrom_sealed.h). A lock stands in
 * front of the stream and holds the stream's own random key, encrypted under scrypt (RFC 7914) of
 * the passphrase. docs/format.md has its bytes. daelstrom.h says what holds for every call: errors,
 * who owns what, threads, fork().
 *
 * Safety: a lock is as hard to guess as its passphrase, times what a guess costs. What a lock says
 * that opening costs is not verified before that has been spent: set a limit. Passphrases are
 * bytes, not kept; wiping them is up to you. Calls block until done; each takes the memory that it
 * costs.
 */
#ifndef DAELSTROM_DAELSTROM_SEALED_LOCK_H
#define DAELSTROM_DAELSTROM_SEALED_LOCK_H

#include <daelstrom/daelstrom_sealed.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAEL_LOCK_SIZE 108

/* What a guess costs, and so what opening does: scrypt with N = 2^log2_n, r and p takes 128 N r
 * bytes of memory and N r p steps. As an argument null means {17, 8, 1}, 128 MiB and some tenths of
 * a second; as a limit {18, 8, 1}. The most there is: {20, 8, 4}. */
typedef struct dael_cost {
    int32_t log2_n, r, p;
} dael_cost;

/* Whether a stream begins as a lock does, 1 or 0; 8 bytes tell. */
DAEL_API int dael_sealed_is_lock(const void* start, size_t size);
/* What opening a lock costs; nothing of it has been verified yet. */
DAEL_API dael_status dael_sealed_lock_cost(const uint8_t lock[DAEL_LOCK_SIZE], dael_cost* cost);

/* A new random key in `keys`, for one stream, and its lock. `segment`: as dael_sealed_keys_import.
 * Errors: DAEL_INVALID_ARGUMENT for a cost or a segment that cannot be. */
DAEL_API dael_status dael_sealed_lock(dael_engine* engine, const void* passphrase, size_t size,
                                      uint32_t segment, const dael_cost* cost,
                                      uint8_t lock[DAEL_LOCK_SIZE], dael_sealed_keys** keys);
/* A lock that takes more memory or more steps than `most` is refused before anything is computed.
 * Errors: DAEL_AUTHENTICATION for another passphrase or an altered lock; DAEL_BAD_FORMAT;
 * DAEL_LIMIT for its cost. */
DAEL_API dael_status dael_sealed_unlock(dael_engine* engine, const void* passphrase, size_t size,
                                        const uint8_t lock[DAEL_LOCK_SIZE], const dael_cost* most,
                                        dael_sealed_keys** keys);
/* The same key under another passphrase: what stands behind the lock stays as it is. `fresh` may be
 * `lock` itself, and is written only if all went well. Whoever has the old lock and the old
 * passphrase can still open it. `most`: of the old one. Errors: as both above. */
DAEL_API dael_status dael_sealed_relock(dael_engine* engine, const void* old_passphrase,
                                        size_t old_size, const void* new_passphrase,
                                        size_t new_size, const uint8_t lock[DAEL_LOCK_SIZE],
                                        const dael_cost* cost, const dael_cost* most,
                                        uint8_t fresh[DAEL_LOCK_SIZE]);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_SEALED_LOCK_H */
