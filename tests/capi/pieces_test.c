/* SPDX-License-Identifier: Apache-2.0
 * Messages in pieces. */
#include "capi.h"

/* Pieces of 1, 2, 3, ... bytes come to what the whole comes to. */
static void in_pieces(dael_pieces* pieces, const uint8_t* in, size_t size, uint8_t* out) {
    size_t from = 0, to = 0, written = 99;
    for (size_t step = 1; from < size; ++step) {
        const size_t count = step < size - from ? step : size - from;
        EXPECT(dael_pieces_update(pieces, in + from, count, out + to, 64 - to, &written) ==
               DAEL_OK);
        from += count;
        to += written;
        EXPECT(from - to == dael_pieces_held(pieces));
    }
    EXPECT(dael_pieces_finish(pieces, NULL, 0, &written) == DAEL_OK && written == 0);
    EXPECT(to == size);
}

static void modes_of_38a(dael_engine* engine, const dael_key* key) {
    uint8_t plain[64], secret[64], again[64], start[16];
    from_hex(PLAIN, plain);
    for (size_t i = 0; i < sizeof kKnown / sizeof *kKnown; ++i) {
        const struct known* const known = &kKnown[i];
        const uint8_t* const at = known->start ? start : NULL;
        const int blocks = known->mode == DAEL_ECB || known->mode == DAEL_CBC;
        dael_cipher cipher = {(uint8_t)known->mode, DAEL_ENCRYPT, 0, 0, 0};
        dael_pieces* pieces = NULL;
        if (at) from_hex(known->start, start);
        const dael_status begun = dael_begin(engine, &cipher, key, at, &pieces);
        if (begun == DAEL_UNSUPPORTED) continue; /* sequential, on a device by name */
        EXPECT(begun == DAEL_OK);
        if (!pieces) continue;
        EXPECT(dael_pieces_unit(pieces) == (blocks ? 16u : 1u));
        in_pieces(pieces, plain, 64, secret);
        EXPECT(equals_hex(secret, known->cipher));
        EXPECT(dael_pieces_update(pieces, plain, 16, again, 16, NULL) == DAEL_INVALID_ARGUMENT);
        EXPECT(dael_pieces_finish(pieces, NULL, 0, NULL) == DAEL_INVALID_ARGUMENT);
        EXPECT(dael_pieces_restart(pieces, at) == DAEL_OK);
        in_pieces(pieces, plain, 64, again);
        EXPECT(memcmp(again, secret, 64) == 0);
        if (at) EXPECT(dael_pieces_restart(pieces, NULL) == DAEL_INVALID_ARGUMENT);
        dael_pieces_free(pieces);

        cipher.direction = DAEL_DECRYPT;
        EXPECT(dael_begin(engine, &cipher, key, at, &pieces) == DAEL_OK);
        in_pieces(pieces, secret, 64, again);
        EXPECT(memcmp(again, plain, 64) == 0);
        dael_pieces_free(pieces);
        if (at)
            REFUSED(dael_begin(engine, &cipher, key, NULL, &pieces), DAEL_INVALID_ARGUMENT,
                    "start is null");
    }
}

static void ragged(dael_engine* engine, const dael_key* key) {
    uint8_t data[32] = {0}, start[16] = {0};
    size_t written = 99;
    const dael_cipher cbc = {DAEL_CBC, DAEL_DECRYPT, 0, 0, 0};
    dael_pieces* pieces = NULL;
    EXPECT(dael_begin(engine, &cbc, key, start, &pieces) == DAEL_OK);
    EXPECT(dael_pieces_update(pieces, data, 20, data, 15, &written) == DAEL_INVALID_ARGUMENT);
    EXPECT(written == 0);
    EXPECT(dael_pieces_update(pieces, data, 20, NULL, 16, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_update(pieces, NULL, 20, data, 32, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_update(pieces, data, 20, data, 16, &written) == DAEL_OK && written == 16);
    EXPECT(dael_pieces_held(pieces) == 4);
    EXPECT(dael_pieces_finish(pieces, data, 32, &written) == DAEL_RAGGED_LENGTH && written == 0);
    EXPECT(dael_pieces_aad(pieces, data, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_verify(pieces, data, 16) == DAEL_INVALID_ARGUMENT);
    dael_pieces_free(pieces);
}

static void xts(dael_engine* engine) {
    uint8_t bytes[32], plain[XTS_SIZE], out[32], start[16];
    size_t written = 0, more = 0;
    dael_key* key = NULL;
    dael_pieces* pieces = NULL;
    for (int i = 0; i < XTS_SIZE; ++i) plain[i] = (uint8_t)i;
    EXPECT(dael_key_import_xts(bytes, from_hex(XTS_KEY, bytes), &key) == DAEL_OK);
    EXPECT(dael_xts_start(XTS_NUMBER, 0, start) == DAEL_OK);
    const dael_cipher cipher = {DAEL_XTS, DAEL_ENCRYPT, 0, 0, 32};
    const dael_status begun = dael_begin(engine, &cipher, key, start, &pieces);
    dael_key_free(key);                    /* the pieces have what they need of it */
    if (begun == DAEL_UNSUPPORTED) return; /* not every backend has XTS */
    EXPECT(begun == DAEL_OK && dael_pieces_unit(pieces) == 32);
    EXPECT(dael_pieces_update(pieces, plain, XTS_SIZE, out, 32, &written) == DAEL_OK);
    EXPECT(written == 0);
    EXPECT(dael_pieces_finish(pieces, out, 32, &more) == DAEL_OK && more == XTS_SIZE);
    EXPECT(equals_hex(out, XTS_CIPHER));
    dael_pieces_free(pieces);
}

struct gcm {
    uint8_t plain[GCM_SIZE], aad[20], start[16], tag[16], secret[GCM_SIZE];
};

static void sealing(dael_engine* engine, const dael_key* key, struct gcm* gcm) {
    dael_pieces *pieces = NULL, *copy = NULL;
    uint8_t out[GCM_SIZE], tag[16];
    size_t written = 0;
    EXPECT(dael_begin(engine, &kSeal, key, gcm->start, &pieces) == DAEL_OK);
    EXPECT(dael_pieces_aad(pieces, gcm->aad, 7) == DAEL_OK);
    EXPECT(dael_pieces_aad(pieces, gcm->aad + 7, 13) == DAEL_OK);
    EXPECT(dael_pieces_aad(pieces, NULL, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_update(pieces, gcm->plain, 33, gcm->secret, 33, &written) == DAEL_OK);
    EXPECT(written == 33 && dael_pieces_held(pieces) == 0);
    EXPECT(dael_pieces_aad(pieces, gcm->aad, 1) == DAEL_INVALID_ARGUMENT); /* too late */
    EXPECT(dael_pieces_clone(pieces, &copy) == DAEL_OK);
    /* The two end the same message in two ways. */
    EXPECT(dael_pieces_update(pieces, gcm->plain + 33, 27, gcm->secret + 33, 27, NULL) == DAEL_OK);
    EXPECT(dael_pieces_finish(pieces, gcm->tag, 16, &written) == DAEL_OK && written == 16);
    EXPECT(equals_hex(gcm->secret, GCM_CIPHER) && equals_hex(gcm->tag, GCM_TAG));
    dael_pieces_free(pieces);
    EXPECT(dael_pieces_finish(copy, tag, 16, NULL) == DAEL_OK);
    EXPECT(memcmp(tag, gcm->tag, 16) != 0);
    /* Begun anew it is the same message again. */
    EXPECT(dael_pieces_restart(copy, gcm->start) == DAEL_OK);
    EXPECT(dael_pieces_aad(copy, gcm->aad, 20) == DAEL_OK);
    EXPECT(dael_pieces_update(copy, gcm->plain, 60, out, 60, NULL) == DAEL_OK);
    EXPECT(dael_pieces_finish(copy, tag, 12, NULL) == DAEL_OK);
    EXPECT(memcmp(tag, gcm->tag, 12) == 0);
    dael_pieces_free(copy);
}

static void opening(dael_engine* engine, const dael_key* key, struct gcm* gcm) {
    dael_pieces* pieces = NULL;
    uint8_t out[GCM_SIZE] = {0};
    EXPECT(dael_begin(engine, &kOpen, key, gcm->start, &pieces) == DAEL_OK);
    /* In two passes. */
    EXPECT(dael_pieces_aad(pieces, gcm->aad, 20) == DAEL_OK);
    EXPECT(dael_pieces_authenticate(pieces, gcm->secret, 50) == DAEL_OK);
    EXPECT(dael_pieces_authenticate(pieces, gcm->secret + 50, 10) == DAEL_OK);
    EXPECT(dael_pieces_update(pieces, gcm->secret, 60, out, 60, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_verify(pieces, gcm->tag, 16) == DAEL_OK);
    EXPECT(dael_pieces_update(pieces, gcm->secret, 60, out, 60, NULL) == DAEL_OK);
    EXPECT(dael_pieces_finish(pieces, NULL, 0, NULL) == DAEL_OK);
    EXPECT(equals_hex(out, GCM_PLAIN));
    /* The second pass is given other bytes. */
    EXPECT(dael_pieces_restart(pieces, gcm->start) == DAEL_OK);
    EXPECT(dael_pieces_aad(pieces, gcm->aad, 20) == DAEL_OK);
    EXPECT(dael_pieces_authenticate(pieces, gcm->secret, 60) == DAEL_OK);
    EXPECT(dael_pieces_verify(pieces, gcm->tag, 16) == DAEL_OK);
    EXPECT(dael_pieces_update(pieces, gcm->secret, 59, out, 59, NULL) == DAEL_OK);
    EXPECT(dael_pieces_finish(pieces, NULL, 0, NULL) == DAEL_AUTHENTICATION);
    /* In one pass, and a tag that is not its own. */
    for (int right = 1; right >= 0; --right) {
        gcm->tag[3] ^= (uint8_t)!right;
        EXPECT(dael_pieces_restart(pieces, gcm->start) == DAEL_OK);
        EXPECT(dael_pieces_aad(pieces, gcm->aad, 20) == DAEL_OK);
        EXPECT(dael_pieces_update_unverified(pieces, gcm->secret, out, 60) == DAEL_OK);
        EXPECT(dael_pieces_verify(pieces, gcm->tag, 16) == (right ? DAEL_OK : DAEL_AUTHENTICATION));
        EXPECT(dael_pieces_update_unverified(pieces, gcm->secret, out, 1) == DAEL_INVALID_ARGUMENT);
    }
    /* And where its end tells the tag, whose size is the caller's. */
    uint8_t tag[16] = {0};
    gcm->tag[3] ^= 1;
    EXPECT(dael_pieces_restart(pieces, gcm->start) == DAEL_OK);
    EXPECT(dael_pieces_aad(pieces, gcm->aad, 20) == DAEL_OK);
    EXPECT(dael_pieces_update_unverified(pieces, gcm->secret, out, 60) == DAEL_OK);
    EXPECT(dael_pieces_tag(pieces, tag) == DAEL_OK && memcmp(tag, gcm->tag, 16) == 0);
    EXPECT(dael_pieces_tag(pieces, tag) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_verify(pieces, gcm->tag, 16) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_restart(pieces, gcm->start) == DAEL_OK);
    EXPECT(dael_pieces_authenticate(pieces, gcm->secret, 60) == DAEL_OK);
    EXPECT(dael_pieces_tag(pieces, tag) == DAEL_INVALID_ARGUMENT); /* of two passes */
    EXPECT(dael_pieces_verify(pieces, NULL, 16) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_authenticate(pieces, NULL, 1) == DAEL_INVALID_ARGUMENT);
    dael_pieces_free(pieces);
}

static void misuse(dael_engine* engine, const dael_key* key) {
    uint8_t data[16] = {0};
    dael_pieces* pieces = (dael_pieces*)(void*)data;
    EXPECT(dael_begin(NULL, &kSeal, key, data, &pieces) == DAEL_INVALID_ARGUMENT);
    EXPECT(pieces == NULL);
    EXPECT(dael_begin(engine, NULL, key, data, &pieces) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_begin(engine, &kSeal, NULL, data, &pieces) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_begin(engine, &kSeal, key, data, NULL) == DAEL_INVALID_ARGUMENT);
    const dael_cipher none = {99, 0, 0, 0, 0};
    EXPECT(dael_begin(engine, &none, key, data, &pieces) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_aad(NULL, data, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_update(NULL, data, 1, data, 1, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_update_unverified(NULL, data, data, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_authenticate(NULL, data, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_verify(NULL, data, 16) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_tag(NULL, data) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_finish(NULL, data, 16, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_clone(NULL, &pieces) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_restart(NULL, data) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pieces_unit(NULL) == 0 && dael_pieces_held(NULL) == 0);
    dael_pieces_free(NULL);
}

void pieces_tests(dael_engine* engine) {
    dael_key *const key = key_of(KEY), *const gcm_key = key_of(GCM_KEY);
    struct gcm gcm;
    from_hex(GCM_PLAIN, gcm.plain);
    from_hex(GCM_AAD, gcm.aad);
    from_hex(GCM_NONCE "00000001", gcm.start);
    modes_of_38a(engine, key);
    ragged(engine, key);
    xts(engine);
    sealing(engine, gcm_key, &gcm);
    opening(engine, gcm_key, &gcm);
    misuse(engine, key);
    dael_key_free(key);
    dael_key_free(gcm_key);
}
