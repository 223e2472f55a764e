/* SPDX-License-Identifier: Apache-2.0
 *
 * AES-GCM for the packets of one security association, with keystream that daelstrom makes ahead of
 * time (daelstrom_packets.h), in the manner of LibTomCrypt: one call seals a packet, one opens
 * it, and they answer with LibTomCrypt's codes. Schoenberger's thesis (Hagenberg 2011) has such
 * calls in a patched LibTomCrypt; this one is as it comes.
 *
 *     daelstrom_sa_context sa;
 *     daelstrom_sa_context_init(&sa, table, &options, key, 16);
 *     daelstrom_gcm_encrypt(&sa, pt, ct, len, header, 8, tag, &taglen);     sa.iv goes with it
 *     daelstrom_sa_context_done(&sa);
 *
 * Safety: as daelstrom_packets.h has it: a sending key belongs to one context, and to no other
 * table or process, nor to a later start. Opening verifies, releases nothing that does not, and
 * looks for no replays.
 *
 * Threads: one at a time for each context, any number for the contexts of one table. Done while
 * another thread is in a call with it: the program's fault. fork(): a child can use no context of
 * its parent's (CRYPT_INVALID_ARG or CRYPT_ERROR), as it cannot use the table: numbers would serve
 * twice.
 */
#ifndef DAELSTROM_SA_CONTEXT_H
#define DAELSTROM_SA_CONTEXT_H

#include <daelstrom/daelstrom_packets.h>
#include <tomcrypt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct daelstrom_sa_context {
    dael_sa_table* table; /* the caller's; must outlive the context */
    uint64_t sa;
    unsigned long taglen; /* bytes of its tags */
    unsigned long ivlen;  /* 8; in layout stream 12 */
    /* Of the packet: encryption writes it, and it travels with the packet; decryption reads it. */
    unsigned char iv[12];
} daelstrom_sa_context;

/* Adds an SA to the table: direction, layout, salt and sizes are the options'. The key is copied to
 * locked memory. Errors: CRYPT_INVALID_KEYSIZE, CRYPT_INVALID_ARG, CRYPT_MEM. */
int daelstrom_sa_context_init(daelstrom_sa_context* sa, dael_sa_table* table,
                              const dael_sa_options* options, const unsigned char* key,
                              unsigned long keylen);
/* Removes it, and wipes its key and keystream. */
void daelstrom_sa_context_done(daelstrom_sa_context* sa);

/* `ct` is `pt` or apart from it. `*taglen`: room for the tag, and then its size. Errors:
 * CRYPT_BUFFER_OVERFLOW for too little room; CRYPT_INVALID_ARG, also when all numbers are used up:
 * give the table another key. */
int daelstrom_gcm_encrypt(daelstrom_sa_context* sa, const unsigned char* pt, unsigned char* ct,
                          unsigned long len, const unsigned char* aad, unsigned long aadlen,
                          unsigned char* tag, unsigned long* taglen);
/* `taglen`: that of the SA. Errors: CRYPT_ERROR for a tag that does not fit, and then `pt` holds
 * what it held before, or zeros; CRYPT_INVALID_ARG. */
int daelstrom_gcm_decrypt(daelstrom_sa_context* sa, const unsigned char* ct, unsigned char* pt,
                          unsigned long len, const unsigned char* aad, unsigned long aadlen,
                          const unsigned char* tag, unsigned long taglen);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_SA_CONTEXT_H */
