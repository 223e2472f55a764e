/* SPDX-License-Identifier: Apache-2.0
 * Sealed data from C: what Tink made, memory, streams, files, chunks and envelopes. */
#include <daelstrom/daelstrom_sealed.h>
#include <stddef.h>
#include <stdlib.h>

#include "capi.h"

/* Of tests/vectors/tink/streaming.json, which stock Tink made: byte i of the plaintext is i. */
enum { kPlain = 100 };
static const char kAad[] = "associated data of 100";
static const char kBareKey[] = "514b593964b1a02b396fcbd67b9c9f95";
static const char kBareSealed[] =
    "186dcfb13d58a2c5124724a07cc88596880d0bc154864c6f3839590959b736d5"
    "2f80d58b70e08bc49ef0875a18c46b8e87697326ad618c97bdad474939f5a193"
    "432a59e332e9b143f326e37cbe7eb3da6b6140f727e59b88e30e801035b34cf5"
    "89ea63188001d090d4bef6d062f6d980d120c9d9cb2f12024875738f41d0b214"
    "40d47c67308b87ca7fd4ab25";
static const char kKeyset[] = /* with segments of 64 bytes */
    "{\"primaryKeyId\": 1000, \"key\": [{\"keyData\": {\"typeUrl\": \"type."
    "googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey\", \"value\":"
    " \"EgYIQBAQGAEaEI9kR3BYv/+dF4K4ibGod/g=\", \"keyMaterialType\": \"SYMM"
    "ETRIC\"}, \"status\": \"ENABLED\", \"keyId\": 1000, \"outputPrefixType"
    "\": \"RAW\"}]}";
static const char kSealed[] =
    "183d295b2faed384644ff025267d3ed8c86657265a72a8d68e42313e2c9db02b"
    "b5c2316502c734de50f6b04396c5c486b700645d96728872cfd4c98cd7f33a97"
    "dc0aa0d3b9957b814436b85e8894e234ab04a1478bbc9cb7c25660d44153b63e"
    "0bbf401abe19c05427a7f45e3ba9eb9f1f4461a485834bc90a9fa7ccd9910d34"
    "aa151f84174b5cd30e26db84930b5c2b5da3b3d84192960f53c031dbd88e8940"
    "99aaf5903dc12fceddb255f1";

struct made {
    dael_engine* engine;
    dael_sealed_keys *keys, *bare;
    uint8_t plain[kPlain], sealed[256];
    size_t size; /* of what is sealed under `keys` */
};

static void in_memory(struct made* m) {
    uint8_t out[kPlain], again[256], bare[256];
    uint64_t size = 99;
    dael_ran ran;
    EXPECT(dael_sealed_keys_segment(m->keys) == 64);
    EXPECT(dael_sealed_keys_segment(m->bare) == DAEL_SEALED_SMALL_SEGMENT);
    EXPECT(dael_sealed_size(m->keys, kPlain, &size) == DAEL_OK && size == m->size);
    const size_t bare_size = from_hex(kBareSealed, bare);
    EXPECT(dael_sealed_open(m->engine, m->bare, kAad, 22, bare, bare_size, out, kPlain, &size,
                            NULL) == DAEL_OK);
    EXPECT(size == kPlain && memcmp(out, m->plain, kPlain) == 0);
    memset(out, 1, kPlain);
    EXPECT(dael_sealed_open(m->engine, m->keys, kAad, 22, m->sealed, m->size, out, kPlain, &size,
                            &ran) == DAEL_OK);
    EXPECT(size == kPlain && memcmp(out, m->plain, kPlain) == 0 && ran.backend[0] != 0);

    EXPECT(dael_sealed_seal(m->engine, m->keys, NULL, 0, m->plain, kPlain, again, m->size, NULL) ==
           DAEL_OK);
    EXPECT(dael_sealed_open(m->engine, m->keys, NULL, 0, again, m->size, out, kPlain, NULL, NULL) ==
           DAEL_OK);
    EXPECT(memcmp(out, m->plain, kPlain) == 0);

    again[m->size - 1] ^= 1; /* on failure all of it is wiped */
    EXPECT(dael_sealed_open(m->engine, m->keys, NULL, 0, again, m->size, out, kPlain, &size,
                            NULL) == DAEL_AUTHENTICATION);
    EXPECT(size == 0 && out[1] == 0 && out[99] == 0);
    EXPECT(dael_sealed_open(m->engine, m->keys, NULL, 0, again, 5, out, kPlain, &size, NULL) ==
           DAEL_BAD_FORMAT);
    EXPECT(dael_sealed_seal(m->engine, m->keys, NULL, 0, again, kPlain, again, m->size, NULL) ==
           DAEL_OVERLAP);
    EXPECT(dael_sealed_seal(m->engine, m->keys, NULL, 0, m->plain, kPlain, again, 1, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_seal(m->engine, m->keys, NULL, 1, m->plain, 0, again, 1, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_seal(NULL, m->keys, NULL, 0, m->plain, 0, again, 1, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_open(m->engine, NULL, NULL, 0, again, 1, out, 0, NULL, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_size(NULL, 0, &size) == DAEL_INVALID_ARGUMENT);
}

/* A stream in memory, read a few bytes at a time, as a pipe is. */
struct tape {
    uint8_t bytes[512];
    size_t size, at, step;
    int fails;
};
static int64_t read_tape(void* context, void* out, size_t size) {
    struct tape* const tape = context;
    size_t count = tape->size - tape->at;
    if (tape->fails) return -7;
    if (count > size) count = size;
    if (count > tape->step) count = tape->step;
    memcpy(out, tape->bytes + tape->at, count);
    tape->at += count;
    return (int64_t)count;
}
static int write_tape(void* context, const void* bytes, size_t size) {
    struct tape* const tape = context;
    if (tape->fails || size > sizeof tape->bytes - tape->size) return 28;
    memcpy(tape->bytes + tape->size, bytes, size);
    tape->size += size;
    return 0;
}
static int read_at(void* context, uint64_t at, void* out, size_t size) {
    const struct tape* const tape = context;
    if (tape->fails || at > tape->size || size > tape->size - at) return 5;
    memcpy(out, tape->bytes + at, size);
    return 0;
}

static void streams(struct made* m) {
    struct tape plain = {.size = kPlain, .step = 3}, sealed = {.step = 7}, out = {.step = 1};
    uint64_t size = 0;
    memcpy(plain.bytes, m->plain, kPlain);
    EXPECT(dael_sealed_seal_stream(m->engine, m->keys, kAad, 22, read_tape, &plain, write_tape,
                                   &sealed, &size, NULL) == DAEL_OK);
    EXPECT(size == m->size && sealed.size == size);
    EXPECT(dael_sealed_open_stream(m->engine, m->keys, kAad, 22, read_tape, &sealed, write_tape,
                                   &out, &size, NULL) == DAEL_OK);
    EXPECT(size == kPlain && memcmp(out.bytes, m->plain, kPlain) == 0);

    plain.at = 0;
    plain.fails = 1;
    REFUSED(dael_sealed_seal_stream(m->engine, m->keys, kAad, 22, read_tape, &plain, write_tape,
                                    &sealed, &size, NULL),
            DAEL_IO, "-7");
    EXPECT(size == 0);
    plain.fails = 0;
    sealed.fails = 1;
    REFUSED(dael_sealed_seal_stream(m->engine, m->keys, kAad, 22, read_tape, &plain, write_tape,
                                    &sealed, &size, NULL),
            DAEL_IO, "28");
    EXPECT(dael_sealed_seal_stream(m->engine, m->keys, kAad, 22, NULL, &plain, write_tape, &sealed,
                                   NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_open_stream(m->engine, m->keys, kAad, 22, read_tape, &plain, NULL, &sealed,
                                   NULL, NULL) == DAEL_INVALID_ARGUMENT);
}

/* Read from anywhere, with the engine's and the keys' own handles gone. */
static void files(struct made* m) {
    struct tape tape = {.size = m->size};
    uint8_t out[kPlain], json[512];
    dael_engine* engine = engine_on("openssl");
    dael_sealed_keys* keys = NULL;
    dael_sealed_file* file = NULL;
    memcpy(tape.bytes, m->sealed, m->size);
    memcpy(json, kKeyset, sizeof kKeyset - 1);
    EXPECT(dael_sealed_keys_parse(json, sizeof kKeyset - 1, &keys) == DAEL_OK);
    EXPECT(dael_sealed_file_open(engine, keys, kAad, 22, read_at, &tape, m->size, &file) ==
           DAEL_OK);
    dael_engine_close(engine);
    dael_sealed_keys_free(keys);
    EXPECT(dael_sealed_file_size(file) == kPlain);
    EXPECT(dael_sealed_file_read(file, 41, out, 50, NULL) == DAEL_OK);
    EXPECT(memcmp(out, m->plain + 41, 50) == 0);
    EXPECT(dael_sealed_file_read(file, 51, out, 50, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_file_check_size(file) == DAEL_OK);
    EXPECT(dael_sealed_file_read_all(file, out, kPlain, NULL, 4, NULL) == DAEL_UNSUPPORTED);
    tape.bytes[m->size - 1] ^= 1;
    EXPECT(dael_sealed_file_read(file, 0, out, kPlain, NULL) == DAEL_AUTHENTICATION);
    tape.fails = 1;
    REFUSED(dael_sealed_file_read(file, 0, out, kPlain, NULL), DAEL_IO, "5");
    EXPECT(dael_sealed_file_read(file, 0, NULL, 1, NULL) == DAEL_INVALID_ARGUMENT);
    dael_sealed_file_close(file);

    EXPECT(dael_sealed_file_open(m->engine, m->keys, kAad, 22, NULL, &tape, m->size, &file) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_file_open(m->engine, m->keys, kAad, 22, read_at, &tape, m->size, &file) ==
           DAEL_IO);
    EXPECT(file == NULL);
    EXPECT(dael_sealed_file_size(NULL) == 0);
    EXPECT(dael_sealed_file_check_size(NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_file_read(NULL, 0, out, 1, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_file_read_all(NULL, out, 1, NULL, 1, NULL) == DAEL_INVALID_ARGUMENT);
    dael_sealed_file_close(NULL);
}

static void chunks(struct made* m) {
    uint8_t sealed[256], out[kPlain];
    dael_sealer* sealer = NULL;
    dael_opener* opener = NULL;
    dael_sealed_layout layout;
    dael_sealed_chunk chunk;
    dael_sealed_range place;
    uint64_t size = 0;
    EXPECT(dael_sealer_start(m->engine, m->keys, kAad, 22, &sealer) == DAEL_OK);
    EXPECT(dael_sealer_layout(sealer, &layout) == DAEL_OK);
    EXPECT(layout.segment == 64 && layout.header == 24);
    /* Two whole segments, 24 and 48 bytes of plaintext; then the rest. */
    EXPECT(dael_sealer_next(sealer, 72, 0, &chunk) == DAEL_OK);
    EXPECT(chunk.count == 2 && chunk.sealed.at == 0 && chunk.sealed.size == 128 && !chunk.last);
    EXPECT(dael_sealer_seal(sealer, m->plain, 72, sealed, 127, 0, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealer_seal(sealer, m->plain, 71, sealed, 256, 0, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealer_seal(sealer, m->plain, 72, sealed, 128, 0, NULL) == DAEL_OK);
    memcpy(sealed + 128, m->plain + 72, 28);
    EXPECT(dael_sealer_seal_in_place(sealer, sealed + 128, 44, 28, 1, NULL) == DAEL_OK);
    EXPECT(dael_sealer_seal(sealer, m->plain, 1, sealed, 256, 1, NULL) == DAEL_INVALID_ARGUMENT);
    dael_sealer_free(sealer);

    const size_t head = dael_opener_head_size(m->keys);
    EXPECT(dael_opener_start(m->engine, m->keys, kAad, 22, sealed, head < 172 ? head : 172, 0,
                             &opener) == DAEL_OK);
    EXPECT(dael_opener_layout(opener, &layout) == DAEL_OK);
    EXPECT(dael_sealed_plain_size(&layout, 172, &size) == DAEL_OK && size == kPlain);
    EXPECT(dael_sealed_size_of_plain(&layout, kPlain, &size) == DAEL_OK && size == 172);
    const dael_sealed_range some = {30, 60};
    EXPECT(dael_sealed_covering(&layout, &some, kPlain, &chunk) == DAEL_OK);
    EXPECT(chunk.first == 1 && chunk.count == 2 && chunk.plain.at == 24 && chunk.last == 1);
    EXPECT(dael_opener_open(opener, &chunk, sealed + chunk.sealed.at, chunk.sealed.size, out,
                            chunk.plain.size, NULL) == DAEL_OK);
    EXPECT(memcmp(out, m->plain + 24, 76) == 0);
    EXPECT(dael_sealed_chunk_of(&layout, 0, 128, 0, &chunk) == DAEL_OK);
    EXPECT(dael_opener_open_in_place(opener, &chunk, sealed, 128, NULL) == DAEL_OK);
    EXPECT(dael_sealed_place(&layout, &chunk, 1, &place) == DAEL_OK);
    EXPECT(place.size == 48 && memcmp(sealed + place.at, m->plain + 24, 48) == 0);
    EXPECT(dael_sealed_place(&layout, &chunk, 2, &place) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_opener_open_in_place(opener, &chunk, sealed, 128, NULL) == DAEL_AUTHENTICATION);
    EXPECT(sealed[30] == 0);
    layout.segment = 0;
    EXPECT(dael_sealed_plain_size(&layout, 172, &size) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_opener_open(NULL, &chunk, sealed, 1, out, 1, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_opener_open(opener, NULL, sealed, 1, out, 1, NULL) == DAEL_INVALID_ARGUMENT);
    dael_opener_free(opener);
    dael_opener_free(NULL);
    dael_sealer_free(NULL);
    EXPECT(dael_opener_head_size(NULL) == 0);
}

static void opens(struct made* m, const dael_identities* identities, const void* envelope,
                  size_t size, const uint8_t* sealed, uint64_t sealed_size) {
    uint8_t out[kPlain];
    dael_sealed_keys* keys = NULL;
    EXPECT(dael_envelope_open(identities, envelope, size, 0, &keys) == DAEL_OK);
    EXPECT(dael_sealed_open(m->engine, keys, NULL, 0, sealed, sealed_size, out, kPlain, NULL,
                            NULL) == DAEL_OK);
    EXPECT(memcmp(out, m->plain, kPlain) == 0);
    dael_sealed_keys_free(keys);
}

static void envelopes(struct made* m) {
    uint8_t envelope[512], fresh[512], sealed[256];
    char alice[DAEL_IDENTITY_SIZE + 1], bob[DAEL_IDENTITY_SIZE + 1], text[DAEL_RECIPIENT_SIZE + 1];
    dael_recipients *both = NULL, *more = NULL, *house = NULL;
    dael_identities *of_alice = NULL, *of_bob = NULL, *by_house = NULL, *by_trees = NULL;
    dael_sealed_keys *keys = NULL, *none = NULL;
    dael_envelope_info info = {.struct_size = sizeof info};
    uint64_t size = 0;

    EXPECT(dael_identity_make(alice, text) == DAEL_OK);
    EXPECT(strlen(alice) == DAEL_IDENTITY_SIZE && strlen(text) == DAEL_RECIPIENT_SIZE);
    EXPECT(dael_identity_make(bob, NULL) == DAEL_OK);
    EXPECT(dael_recipients_parse(text, strlen(text), &both) == DAEL_OK);
    EXPECT(dael_identities_parse(alice, strlen(alice), &of_alice) == DAEL_OK);
    EXPECT(dael_identities_parse(bob, strlen(bob), &of_bob) == DAEL_OK);
    EXPECT(dael_identities_recipients(of_bob, &more) == DAEL_OK);
    EXPECT(dael_recipients_add(both, more) == DAEL_OK);
    dael_recipients_free(more);
    EXPECT(dael_recipients_of_passphrase("house", 5, 3, &house) == DAEL_OK);
    EXPECT(dael_recipients_add(both, house) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_identities_of_passphrase("house", 5, 0, &by_house) == DAEL_OK);
    EXPECT(dael_identities_of_passphrase("trees", 5, 2, &by_trees) == DAEL_OK);

    const size_t has = dael_recipients_envelope_size(both);
    EXPECT(has > 200 && has < sizeof envelope);
    EXPECT(dael_envelope_make(both, 4096, envelope, has - 1, &keys) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_envelope_make(both, 4096, envelope, has, &keys) == DAEL_OK);
    EXPECT(dael_sealed_keys_segment(keys) == 4096);
    EXPECT(dael_sealed_size(keys, kPlain, &size) == DAEL_OK);
    EXPECT(dael_sealed_seal(m->engine, keys, NULL, 0, m->plain, kPlain, sealed, size, NULL) ==
           DAEL_OK);
    EXPECT(dael_is_envelope(envelope, 22) && !dael_is_envelope(m->sealed, 22));
    EXPECT(!dael_is_envelope(NULL, 0));
    EXPECT(dael_envelope_read(envelope, has, &info) == DAEL_OK);
    EXPECT(info.size == has && info.stanzas == 2 && info.work == 0);
    EXPECT(dael_envelope_read(envelope, has - 1, &info) == DAEL_OK && info.size == 0);
    EXPECT(dael_envelope_read(m->sealed, 30, &info) == DAEL_BAD_FORMAT);
    opens(m, of_alice, envelope, has, sealed, size);
    opens(m, of_bob, envelope, sizeof envelope, sealed, size);
    EXPECT(dael_envelope_open(by_house, envelope, has, 0, &none) == DAEL_INVALID_ARGUMENT);
    EXPECT(none == NULL);

    const size_t then = dael_recipients_envelope_size(house);
    EXPECT(dael_envelope_rewrap(of_bob, envelope, has, house, fresh, then + 1) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_envelope_rewrap(of_bob, envelope, has, house, fresh, then) == DAEL_OK);
    EXPECT(dael_envelope_read(fresh, then, &info) == DAEL_OK && info.work == 3);
    opens(m, by_house, fresh, then, sealed, size);
    EXPECT(dael_envelope_open(by_trees, fresh, then, 0, &none) == DAEL_LIMIT);
    dael_identities_free(by_trees);
    EXPECT(dael_identities_of_passphrase("trees", 5, 3, &by_trees) == DAEL_OK);
    EXPECT(dael_envelope_open(by_trees, fresh, then, 0, &none) == DAEL_AUTHENTICATION);
    EXPECT(dael_envelope_open(of_alice, fresh, then, 0, &none) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_identities_add(of_alice, of_bob) == DAEL_OK);
    EXPECT(dael_identities_add(of_alice, by_house) == DAEL_INVALID_ARGUMENT);

    EXPECT(dael_recipients_parse("age1x", 5, &more) == DAEL_BAD_FORMAT && more == NULL);
    EXPECT(dael_recipients_parse(NULL, 1, &more) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_recipients_of_passphrase("x", 1, 21, &more) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_identities_recipients(by_house, &more) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_envelope_open(NULL, fresh, then, 0, &none) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_envelope_make(NULL, 0, fresh, then, &none) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_envelope_rewrap(of_bob, envelope, has, NULL, fresh, then) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_identity_make(NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_recipients_envelope_size(NULL) == 0);
    dael_sealed_keys_free(keys);
    dael_recipients_free(both);
    dael_recipients_free(house);
    dael_recipients_free(NULL);
    dael_identities_free(of_alice);
    dael_identities_free(of_bob);
    dael_identities_free(by_house);
    dael_identities_free(by_trees);
    dael_identities_free(NULL);
}

/* A keyset made and changed, and what it says of its keys. */
static void keysets(struct made* m) {
    dael_sealed_keyset *keyset = NULL, *again = NULL;
    dael_sealed_keyset_entry entry = {.struct_size = sizeof entry};
    dael_sealed_keys* keys = NULL;
    uint32_t first = 0, second = 0;
    EXPECT(dael_sealed_keyset_create(&keyset) == DAEL_OK && dael_sealed_keyset_count(keyset) == 0);
    EXPECT(dael_sealed_keyset_add(keyset, "AES1024", &first) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keyset_add(keyset, NULL, &first) == DAEL_OK && first != 0);
    EXPECT(dael_sealed_keyset_add(keyset, "AES128_GCM_HKDF_4KB", &second) == DAEL_OK);
    EXPECT(dael_sealed_keyset_count(keyset) == 2);
    EXPECT(dael_sealed_keyset_entry_at(keyset, 0, &entry) == DAEL_OK);
    EXPECT(entry.id == first && entry.status == DAEL_SEALED_KEY_ENABLED && entry.primary == 1);
    EXPECT(strcmp(entry.shape, "AES256_GCM_HKDF_1MB") == 0);
    EXPECT(strcmp(entry.type, "AesGcmHkdfStreamingKey") == 0);
    EXPECT(entry.struct_size == sizeof entry);
    EXPECT(dael_sealed_keyset_entry_at(keyset, 2, &entry) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keyset_disable(keyset, first) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keyset_promote(keyset, second) == DAEL_OK);
    EXPECT(dael_sealed_keyset_disable(keyset, first) == DAEL_OK);
    EXPECT(dael_sealed_keyset_promote(keyset, first) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keyset_remove(keyset, second) == DAEL_INVALID_ARGUMENT);

    const size_t size = dael_sealed_keyset_json_size(keyset);
    char* const json = malloc(size);
    EXPECT(json && dael_sealed_keyset_write_json(keyset, json, size - 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keyset_write_json(keyset, json, size) == DAEL_OK);
    EXPECT(dael_sealed_keyset_parse(json, size, &again) == DAEL_OK);
    EXPECT(dael_sealed_keyset_entry_at(again, 0, &entry) == DAEL_OK);
    EXPECT(entry.id == first && entry.status == DAEL_SEALED_KEY_DISABLED && entry.primary == 0);
    EXPECT(dael_sealed_keys_parse(json, size, &keys) == DAEL_OK);
    EXPECT(dael_sealed_keys_segment(keys) == DAEL_SEALED_SMALL_SEGMENT);
    free(json);
    uint64_t sealed_size = 0;
    uint8_t sealed[256], out[kPlain];
    EXPECT(dael_sealed_size(keys, kPlain, &sealed_size) == DAEL_OK && sealed_size < sizeof sealed);
    EXPECT(dael_sealed_seal(m->engine, keys, NULL, 0, m->plain, kPlain, sealed, sealed_size,
                            NULL) == DAEL_OK);
    memset(out, 7, sizeof out);
    EXPECT(dael_sealed_open(m->engine, keys, NULL, 0, sealed, sealed_size, out, kPlain - 1, NULL,
                            NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(out[0] == 7 && out[kPlain - 1] == 7); /* refused, and not wiped */
    EXPECT(dael_sealed_open(m->engine, keys, NULL, 0, sealed, sealed_size, out, kPlain, NULL,
                            NULL) == DAEL_OK);
    EXPECT(memcmp(out, m->plain, kPlain) == 0);
    dael_sealed_keys_free(keys);

    EXPECT(dael_sealed_keyset_enable(again, first) == DAEL_OK);
    EXPECT(dael_sealed_keyset_remove(again, first) == DAEL_OK);
    EXPECT(dael_sealed_keyset_count(again) == 1 && dael_sealed_keyset_count(keyset) == 2);
    EXPECT(dael_sealed_keyset_remove(again, first) == DAEL_INVALID_ARGUMENT);
    EXPECT(strstr(dael_last_error(), "has no key") != NULL);
    entry.struct_size = 3;
    EXPECT(dael_sealed_keyset_entry_at(again, 0, &entry) == DAEL_INVALID_ARGUMENT);
    entry.struct_size = offsetof(dael_sealed_keyset_entry, type);
    entry.type[0] = '?';
    EXPECT(dael_sealed_keyset_entry_at(again, 0, &entry) == DAEL_OK && entry.id == second);
    EXPECT(entry.type[0] == '?'); /* built with a shorter header */
    dael_sealed_keyset_free(keyset);
    dael_sealed_keyset_free(again);
    dael_sealed_keyset_free(NULL);
    EXPECT(dael_sealed_keyset_parse("{}", 2, &again) == DAEL_BAD_FORMAT && again == NULL);
    EXPECT(dael_sealed_keyset_create(NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keyset_add(NULL, NULL, &first) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keyset_count(NULL) == 0 && dael_sealed_keyset_json_size(NULL) == 0);
}

int main(void) {
    struct made m = {.engine = engine_on("openssl")};
    uint8_t key[32];
    for (int i = 0; i < kPlain; ++i) m.plain[i] = (uint8_t)i;
    m.size = from_hex(kSealed, m.sealed);
    EXPECT(dael_sealed_keys_import(key, from_hex(kBareKey, key), DAEL_SEALED_SMALL_SEGMENT,
                                   &m.bare) == DAEL_OK);
    EXPECT(dael_sealed_keys_parse(kKeyset, sizeof kKeyset - 1, &m.keys) == DAEL_OK);
    if (m.engine && m.bare && m.keys) {
        in_memory(&m);
        streams(&m);
        files(&m);
        chunks(&m);
        envelopes(&m);
        keysets(&m);
    }
    dael_sealed_keys_free(m.bare);
    dael_sealed_keys_free(m.keys);
    EXPECT(dael_sealed_keys_import(key, 17, 0, &m.keys) == DAEL_KEY_SIZE && m.keys == NULL);
    EXPECT(dael_sealed_keys_import(key, 16, 40, &m.keys) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keys_import(NULL, 16, 0, &m.keys) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_sealed_keys_import(key, 16, 0, &m.keys) == DAEL_OK);
    EXPECT(dael_sealed_keys_segment(m.keys) == DAEL_SEALED_LARGE_SEGMENT);
    dael_sealed_keys* alone = NULL;
    EXPECT(dael_sealed_keys_sealing(m.keys, &alone) == DAEL_OK && alone != NULL);
    dael_sealed_keys_free(m.keys);
    EXPECT(dael_sealed_keys_segment(alone) == DAEL_SEALED_LARGE_SEGMENT);
    dael_sealed_keys_free(alone);
    EXPECT(dael_sealed_keys_sealing(NULL, &alone) == DAEL_INVALID_ARGUMENT && alone == NULL);
    EXPECT(dael_sealed_keys_parse("{}", 2, &m.keys) == DAEL_BAD_FORMAT);
    EXPECT(dael_sealed_keys_parse(NULL, 2, &m.keys) == DAEL_INVALID_ARGUMENT);
    dael_sealed_keys_free(NULL);
    EXPECT(dael_sealed_keys_segment(NULL) == 0);
    dael_engine_close(m.engine);
    return failures != 0;
}
