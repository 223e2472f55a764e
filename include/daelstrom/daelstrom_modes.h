/* SPDX-License-Identifier: Apache-2.0
 *
 * What some modes need beside dael_run: starts of GCM's and XTS's messages, nonces that never
 * repeat, padding, and GCM and CTR in one call. Include daelstrom.h, which says what holds for
 * every call: errors, who owns what, threads, fork().
 */
#ifndef DAELSTROM_DAELSTROM_MODES_H
#define DAELSTROM_DAELSTROM_MODES_H

#include <daelstrom/daelstrom_engine.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_MODES_H */
