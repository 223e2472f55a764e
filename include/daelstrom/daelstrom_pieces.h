/* SPDX-License-Identifier: Apache-2.0
 *
 * One message in pieces, in every mode: for data that does not fit in memory, or comes bit by bit.
 * For messages that do, dael_run is simpler and faster. Include daelstrom.h, which says what holds
 * for every call: errors, who owns what, threads, fork().
 *
 *     encrypt, any mode:   [aad]...  update...  finish
 *     decrypt, not gcm:              update...  finish
 *     decrypt gcm:         [aad]...  authenticate...  verify  update...  finish     in two passes
 *     the same in one:     [aad]...  update_unverified...  verify, or tag
 *
 * Safety: a start must never repeat under one key, so a message once finished takes nothing more;
 * dael_pieces_restart() begins another. Decrypting gcm in two passes, the first finds out whether
 * the tag is right, and only then does the second yield plaintext; finish finds out whether it was
 * given the same bytes, so read both passes from where nobody else writes. In one pass, what
 * dael_pieces_update_unverified() yields may be anybody's forgery until dael_pieces_verify() has
 * succeeded: keep it to yourself until then, and throw it away if it fails.
 *
 * In host memory, on the calling thread, one thread at a time, done when a call returns. What is
 * refused changes nothing, and the message goes on: a call out of order or with an argument that
 * makes no sense (DAEL_INVALID_ARGUMENT), DAEL_OVERLAP, DAEL_RAGGED_LENGTH, DAEL_LIMIT. Any other
 * error ends it: nothing but restart is taken after that. After fork() parent and child each have a
 * copy: let one of them go on, else the two encrypt from the same start.
 */
#ifndef DAELSTROM_DAELSTROM_PIECES_H
#define DAELSTROM_DAELSTROM_PIECES_H

#include <daelstrom/daelstrom_engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dael_pieces dael_pieces;

/* `start`: as in a dael_message; null in ECB. Keeps engine and key alive. Errors: as dael_run. */
DAEL_API dael_status dael_begin(dael_engine* engine, const dael_cipher* cipher, const dael_key* key,
                                const uint8_t start[DAEL_BLOCK_SIZE], dael_pieces** pieces);
DAEL_API void dael_pieces_free(dael_pieces* pieces);

/* gcm: additional data, in pieces of any size; all of it before the data. Errors: DAEL_LIMIT. */
DAEL_API dael_status dael_pieces_aad(dael_pieces* pieces, const void* bytes, size_t size);

/* Any number of bytes; *written says how many came out (null: nobody wants to know). ECB, CBC and
 * XTS hold back what does not fill a block or sector, so that `out_size` has to be `in_size` and
 * dael_pieces_held() together, rounded down to dael_pieces_unit(); the other modes write `in_size`
 * bytes. `out` is `in` or apart from it; where something is held back, apart. Errors:
 * DAEL_INVALID_ARGUMENT (an output that is too small), DAEL_OVERLAP, DAEL_LIMIT. */
DAEL_API dael_status dael_pieces_update(dael_pieces* pieces, const void* in, size_t in_size,
                                        void* out, size_t out_size, size_t* written);

/* gcm decryption, the first of two passes: all of the ciphertext. Errors: DAEL_LIMIT. */
DAEL_API dael_status dael_pieces_authenticate(dael_pieces* pieces, const void* ciphertext,
                                              size_t size);
/* gcm decryption in one pass, before anything is verified; `size` bytes in and out. Errors: as
 * dael_pieces_update. */
DAEL_API dael_status dael_pieces_update_unverified(dael_pieces* pieces, const void* in, void* out,
                                                   size_t size);
/* gcm decryption: whether this is the message's tag, of the cipher's size. Errors:
 * DAEL_AUTHENTICATION. */
DAEL_API dael_status dael_pieces_verify(dael_pieces* pieces, const void* tag, size_t tag_size);

/* gcm decryption in one pass, for those who learn the size of the tag at the end only, as callers
 * of OpenSSL's EVP do: the end, and the tag that the message should have. Safety: comparing it with
 * the one that came, in constant time, and giving nothing away where they differ, is up to you. */
DAEL_API dael_status dael_pieces_tag(dael_pieces* pieces, uint8_t tag[DAEL_TAG_SIZE]);

/* The end; *written says how many bytes came out (null: nobody wants to know). gcm encryption: the
 * tag, `out_size` bytes of it (4, 8, 12 to 16). gcm decryption in two passes: whether the second
 * was the whole of the first (DAEL_AUTHENTICATION). XTS: the last sector's bytes where it was
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
 * null in ECB. */
DAEL_API dael_status dael_pieces_restart(dael_pieces* pieces, const uint8_t start[DAEL_BLOCK_SIZE]);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_PIECES_H */
