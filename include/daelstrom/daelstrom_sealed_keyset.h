/* SPDX-License-Identifier: Apache-2.0
 *
 * For C: Tink's keysets (daelstrom_sealed.h) made and changed, for the rotation of keys: one is
 * added and spread, then promoted, so that it seals; what the old one sealed is sealed anew, and
 * then the old one is disabled. dael_sealed_keys_parse() takes what comes out, and so does Tink.
 * daelstrom.h says what holds for every call: errors, who owns what, fork().
 *
 * Safety: a keyset's text holds its keys as they are. It lies here in memory that is wiped; where
 * it comes from and where it goes is up to the caller, as is that nobody else changes the same file
 * meanwhile. One thread at a time; free one when no call on it is running; a child of fork() has a
 * copy of its own.
 */
#ifndef DAELSTROM_DAELSTROM_SEALED_KEYSET_H
#define DAELSTROM_DAELSTROM_SEALED_KEYSET_H

#include <daelstrom/daelstrom_sealed.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_SEALED_KEYSET_H */
