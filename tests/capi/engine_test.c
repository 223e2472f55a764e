/* SPDX-License-Identifier: Apache-2.0
 * Keys, and one message in host memory in every mode. */
#include "capi.h"

static void modes_of_38a(dael_engine* engine, const dael_key* key) {
    uint8_t plain[64], out[64];
    from_hex(PLAIN, plain);
    for (size_t i = 0; i < sizeof kKnown / sizeof *kKnown; ++i) {
        const struct known* const known = &kKnown[i];
        dael_cipher cipher = {(uint8_t)known->mode, DAEL_ENCRYPT, 0, 0, 0};
        dael_message message = {.in = plain, .out = out, .size = sizeof plain};
        if (known->start) from_hex(known->start, message.start);
        dael_ran ran;
        memset(&ran, 0xff, sizeof ran);
        EXPECT(dael_run(engine, &cipher, key, &message, &ran) == DAEL_OK);
        EXPECT(equals_hex(out, known->cipher));
        EXPECT(ran.backend[0] != 0 && strlen(ran.backend) < sizeof ran.backend);
        EXPECT(ran.threads >= 1 && ran.chunks == 0 && ran.percent[0] == 0);
        cipher.direction = DAEL_DECRYPT;
        message.in = out; /* in place */
        EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_OK);
        EXPECT(memcmp(out, plain, sizeof plain) == 0);
    }
}

static void keystream(dael_engine* engine, const dael_key* key) {
    uint8_t plain[64], out[64];
    from_hex(PLAIN, plain);
    /* From the sixth byte on; then the keystream itself. */
    dael_message message = {.in = plain + 5, .out = out, .size = 11, .skip = 5};
    from_hex(COUNTER, message.start);
    EXPECT(dael_run(engine, &kCtr, key, &message, NULL) == DAEL_OK);
    EXPECT(equals_hex(out, "20e3261bef6864990db6ce"));
    message = (dael_message){.in = NULL, .out = out, .size = 64};
    from_hex(COUNTER, message.start);
    EXPECT(dael_run(engine, &kCtr, key, &message, NULL) == DAEL_OK);
    for (int i = 0; i < 64; ++i) out[i] ^= plain[i];
    EXPECT(equals_hex(out, kKnown[4].cipher));
    message = (dael_message){.in = NULL, .out = NULL, .size = 0};
    EXPECT(dael_run(engine, &kCtr, key, &message, NULL) == DAEL_OK);
}

static void gcm(dael_engine* engine) {
    uint8_t data[GCM_SIZE], aad[20], tag[16] = {0}, nonce[12];
    dael_key* const key = key_of(GCM_KEY);
    from_hex(GCM_PLAIN, data);
    from_hex(GCM_NONCE, nonce);
    dael_message message = {.in = data, .out = data, .size = GCM_SIZE, .aad = aad, .tag = tag};
    message.aad_size = from_hex(GCM_AAD, aad);
    EXPECT(dael_gcm_start(nonce, message.start) == DAEL_OK);
    EXPECT(dael_run(engine, &kSeal, key, &message, NULL) == DAEL_OK);
    EXPECT(equals_hex(data, GCM_CIPHER) && equals_hex(tag, GCM_TAG));
    tag[15] ^= 1;
    EXPECT(dael_run(engine, &kOpen, key, &message, NULL) == DAEL_AUTHENTICATION);
    EXPECT(equals_hex(data, GCM_CIPHER)); /* in place the ciphertext stays */
    tag[15] ^= 1;
    EXPECT(dael_run(engine, &kOpen, key, &message, NULL) == DAEL_OK);
    EXPECT(equals_hex(data, GCM_PLAIN));

    /* The counter mode alone: gcm's data begins one block further on. */
    const dael_cipher counter = {DAEL_GCM_CTR, DAEL_ENCRYPT, 0, 0, 0};
    uint8_t padded[16 + GCM_SIZE] = {0};
    memcpy(padded + 16, data, GCM_SIZE);
    message = (dael_message){.in = padded, .out = padded, .size = sizeof padded};
    EXPECT(dael_gcm_start(nonce, message.start) == DAEL_OK);
    EXPECT(dael_run(engine, &counter, key, &message, NULL) == DAEL_OK);
    EXPECT(equals_hex(padded + 16, GCM_CIPHER));

    message = (dael_message){.in = data, .out = data, .size = GCM_SIZE, .tag = data + 8};
    EXPECT(dael_run(engine, &kSeal, key, &message, NULL) == DAEL_OVERLAP);
    message.tag = NULL;
    EXPECT(dael_run(engine, &kSeal, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
    const dael_cipher seven = {DAEL_GCM, DAEL_ENCRYPT, 7, 0, 0};
    message.tag = tag;
    REFUSED(dael_run(engine, &seven, key, &message, NULL), DAEL_INVALID_ARGUMENT, "7");
    dael_key_free(key);
}

/* The other modes that authenticate: RFC 10032, appendix "Test Vectors"; C2SP's XAES-256-GCM; RFC
 * 8452, appendix C. With each tag that the mode has. */
static const struct sealed {
    int mode;
    const char *key, *nonce, *aad, *plain, *cipher, *tag, *tag32;
} kSealed[] = {
    {DAEL_AEGIS128L, "10010000000000000000000000000000", "10000200000000000000000000000000",
     "0001020304050607", "000102030405060708090a0b0c0d", "79d94593d8c2119d7e8fd9b8fc77",
     "5c04b3dba849b2701effbe32c7f0fab7",
     "86f1b80bfb463aba711d15405d094baf4a55a15dbfec81a76f35ed0b9c8b04ac"},
    {DAEL_AEGIS256, "1001000000000000000000000000000000000000000000000000000000000000",
     "1000020000000000000000000000000000000000000000000000000000000000", "0001020304050607",
     "000102030405060708090a0b0c0d", "f373079ed84b2709faee37358458",
     "c60b9c2d33ceb058f96e6dd03c215652",
     "8c1cc703c81281bee3f6d9966e14948b4a175b2efbdc31e61a98b4465235c2d9"},
    {DAEL_XAES256GCM, "0303030303030303030303030303030303030303030303030303030303030303",
     "4142434445464748494a4b4c4d4e4f505152535455565758",
     "633273702e6f72672f584145532d3235362d47434d", "584145532d3235362d47434d",
     "986ec1832593df5443a17943", "7fd083bf3fdb41abd740a21f71eb769d", ""},
    {DAEL_GCM_SIV, "01000000000000000000000000000000", "030000000000000000000000",
     "010000000000000000000000000000000200", "0300000000000000000000000000000004000000",
     "6bb0fecf5ded9b77f902c7d5da236a4391dd0297", "24afc9805e976f451e6d87f6fe106514", ""},
    {DAEL_GCM_SIV, "0100000000000000000000000000000000000000000000000000000000000000",
     "030000000000000000000000", "010000000000000000000000000000000200",
     "0300000000000000000000000000000004000000", "43dd0163cdb48f9fe3212bf61b201976067f342b",
     "b879ad976d8242acc188ab59cabfe307", ""},
};

static void sealed(dael_engine* engine, const struct sealed* known, int tag_size) {
    uint8_t data[32], aad[32], tag[32] = {0}, nonce[32] = {0};
    const char* const expected = tag_size == 32 ? known->tag32 : known->tag;
    dael_key* const key = key_of(known->key);
    dael_cipher cipher = {(uint8_t)known->mode, DAEL_ENCRYPT, (uint8_t)tag_size, 0, 0};
    dael_message message = {.in = data, .out = data, .aad = aad, .tag = tag};
    message.size = from_hex(known->plain, data);
    message.aad_size = from_hex(known->aad, aad);
    from_hex(known->nonce, nonce);
    memcpy(message.start, nonce, 16);
    memcpy(message.start_rest, nonce + 16, 16);
    const dael_status status = dael_run(engine, &cipher, key, &message, NULL);
    if (status != DAEL_UNSUPPORTED) { /* not every backend has each */
        EXPECT(status == DAEL_OK);
        EXPECT(equals_hex(data, known->cipher) && equals_hex(tag, expected));
        cipher.direction = DAEL_DECRYPT;
        tag[tag_size - 1] ^= 1;
        EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_AUTHENTICATION);
        EXPECT(equals_hex(data, known->cipher)); /* in place the ciphertext stays */
        tag[tag_size - 1] ^= 1;
        EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_OK);
        EXPECT(equals_hex(data, known->plain));
        message.tag = NULL;
        EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
        message.tag = data + 1;
        EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_OVERLAP);
        message.tag = tag;
        if (known->mode == DAEL_XAES256GCM) { /* bytes behind the nonce */
            message.start_rest[8] = 1;
            EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
        }
    }
    cipher.tag = 12;
    REFUSED(dael_run(engine, &cipher, key, &message, NULL), DAEL_INVALID_ARGUMENT, "12");
    dael_key_free(key);
    dael_key* const other = key_of("000102030405060708090a0b0c0d0e0f1011121314151617");
    cipher.tag = (uint8_t)tag_size;
    EXPECT(dael_run(engine, &cipher, other, &message, NULL) == DAEL_INVALID_ARGUMENT);
    dael_key_free(other);
}

static void all_sealed(dael_engine* engine) {
    for (size_t i = 0; i < sizeof kSealed / sizeof *kSealed; ++i) {
        sealed(engine, &kSealed[i], 16);
        if (kSealed[i].tag32[0]) sealed(engine, &kSealed[i], 32);
    }
}

static void xts(dael_engine* engine) {
    uint8_t bytes[32], plain[XTS_SIZE], out[XTS_SIZE];
    dael_key* key = NULL;
    for (int i = 0; i < XTS_SIZE; ++i) plain[i] = (uint8_t)i;
    EXPECT(dael_key_import_xts(bytes, from_hex(XTS_KEY, bytes), &key) == DAEL_OK);
    EXPECT(dael_key_is_xts(key) && dael_key_bits(key) == 128);
    dael_cipher cipher = {DAEL_XTS, DAEL_ENCRYPT, 0, 0, 512};
    dael_message message = {.in = plain, .out = out, .size = XTS_SIZE};
    EXPECT(dael_xts_start(XTS_NUMBER, 0, message.start) == DAEL_OK);
    dael_status status = dael_run(engine, &cipher, key, &message, NULL);
    if (status != DAEL_UNSUPPORTED) { /* not every backend has XTS */
        EXPECT(status == DAEL_OK);
        EXPECT(equals_hex(out, XTS_CIPHER));
        cipher.direction = DAEL_DECRYPT;
        message.in = out;
        EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_OK);
        EXPECT(memcmp(out, plain, XTS_SIZE) == 0);
        message.size = 7;
        EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_RAGGED_LENGTH);
    }
    EXPECT(dael_run(engine, &kCtr, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
    dael_key_free(key);
    EXPECT(dael_key_import_xts(bytes, 24, &key) == DAEL_KEY_SIZE);
    memset(bytes, 1, sizeof bytes);
    EXPECT(dael_key_import_xts(bytes, 32, &key) == DAEL_INVALID_ARGUMENT); /* equal halves */
    EXPECT(key == NULL);
    REFUSED(dael_key_import_xts(NULL, 32, &key), DAEL_INVALID_ARGUMENT, "null");
}

static void keys(void) {
    uint8_t bytes[32] = {1};
    dael_key *key = (dael_key*)(void*)bytes, *copy = NULL;
    EXPECT(dael_key_import(bytes, 15, &key) == DAEL_KEY_SIZE);
    EXPECT(key == NULL);
    REFUSED(dael_key_import(NULL, 16, &key), DAEL_INVALID_ARGUMENT, "null");
    REFUSED(dael_key_import(bytes, 16, NULL), DAEL_INVALID_ARGUMENT, "key is null");
    EXPECT(dael_key_import(bytes, 24, &key) == DAEL_OK);
    EXPECT(dael_key_bits(key) == 192 && !dael_key_is_xts(key));
    EXPECT(dael_key_duplicate(key, &copy) == DAEL_OK);
    dael_key_free(key);
    EXPECT(dael_key_bits(copy) == 192);
    dael_key_free(copy);
    EXPECT(dael_key_duplicate(NULL, &copy) == DAEL_INVALID_ARGUMENT && copy == NULL);
    EXPECT(dael_key_bits(NULL) == 0 && dael_key_is_xts(NULL) == 0);
    dael_key_free(NULL);
}

static void misuse(dael_engine* engine, const dael_key* key) {
    uint8_t data[48] = {0};
    dael_cipher cipher = {DAEL_ECB, DAEL_ENCRYPT, 0, 0, 0};
    dael_message message = {.in = data, .out = data, .size = 15};
    REFUSED(dael_run(engine, &cipher, key, &message, NULL), DAEL_RAGGED_LENGTH, "15");
    message.size = 16;
    message.out = data + 8;
    EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_OVERLAP);
    message.out = NULL;
    EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
    message.out = data;
    message.in = NULL; /* ECB has no keystream */
    EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
    message.in = data;
    message.key = 1;
    EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
    message.key = 0;
    cipher.mode = 99;
    REFUSED(dael_run(engine, &cipher, key, &message, NULL), DAEL_INVALID_ARGUMENT, "99");
    cipher.mode = 255;
    EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
    cipher = (dael_cipher){DAEL_CTR, 2, 0, 0, 0};
    EXPECT(dael_run(engine, &cipher, key, &message, NULL) == DAEL_INVALID_ARGUMENT);
    REFUSED(dael_run(NULL, &kCtr, key, &message, NULL), DAEL_INVALID_ARGUMENT, "engine is null");
    REFUSED(dael_run(engine, NULL, key, &message, NULL), DAEL_INVALID_ARGUMENT, "cipher is null");
    REFUSED(dael_run(engine, &kCtr, NULL, &message, NULL), DAEL_INVALID_ARGUMENT, "key is null");
    REFUSED(dael_run(engine, &kCtr, key, NULL, NULL), DAEL_INVALID_ARGUMENT, "message is null");
}

void engine_tests(dael_engine* engine) {
    dael_key* const key = key_of(KEY);
    modes_of_38a(engine, key);
    keystream(engine, key);
    gcm(engine);
    all_sealed(engine);
    xts(engine);
    keys();
    misuse(engine, key);
    dael_key_free(key);
}
