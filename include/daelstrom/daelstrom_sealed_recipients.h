/* SPDX-License-Identifier: Apache-2.0
 *
 * For C: sealed data (daelstrom_sealed.h) for people. An envelope stands in front of the stream and
 * holds its own random key, for everybody who has one of several secret keys, or for one
 * passphrase. An envelope is a whole age v1 file (age-encryption.org/v1), so the keys of age and of
 * those who read its files work, and `age -d` gets the stream's key out; docs/format.md has its
 * bytes. daelstrom.h says what holds for every call: errors, who owns what, threads, fork().
 *
 * Safety: whoever has the envelope and one of the secrets has the stream's key for good: to write a
 * new envelope takes nothing away from copies of the old one. An envelope does not say who sealed
 * it: anybody can make one for a public recipient. It shows how many recipients it has, not who
 * they are. A passphrase is as hard to guess as it is, times what a guess costs; what opening costs
 * stands in the envelope and is verified only once that is spent, hence the limit.
 *
 * Limits: 1,000 recipients or identities. Calls block until done. Secrets are copied to locked
 * memory and wiped there; wiping yours is up to you.
 */
#ifndef DAELSTROM_DAELSTROM_SEALED_RECIPIENTS_H
#define DAELSTROM_DAELSTROM_SEALED_RECIPIENTS_H

#include <daelstrom/daelstrom_sealed.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work: what a guess at a passphrase costs, and so what opening does. scrypt (RFC 7914) with
 * N = 2^work, r = 8 and p = 1 takes 2^work KiB of memory. Where an argument is 0: DAEL_USUAL_WORK,
 * 128 MiB and some tenths of a second; where a limit is 0: DAEL_USUAL_WORK_LIMIT. */
#define DAEL_USUAL_WORK 17
#define DAEL_USUAL_WORK_LIMIT 18
#define DAEL_MOST_WORK 20
/* No envelope is longer. */
#define DAEL_MOST_ENVELOPE 131072
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
 * not 1 to DAEL_MOST_WORK. */
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

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_SEALED_RECIPIENTS_H */
