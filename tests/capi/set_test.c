/* SPDX-License-Identifier: Apache-2.0
 * Key sets, and many messages in host memory. */
#include "capi.h"

static void sealing(dael_engine* engine, const dael_key_set* set) {
    uint8_t plain[GCM_SIZE], aad[20], out[4][GCM_SIZE], tags[4][16], nonce[12];
    dael_message messages[4];
    int32_t codes[4] = {-1, -1, -1, -1};
    from_hex(GCM_PLAIN, plain);
    from_hex(GCM_AAD, aad);
    from_hex(GCM_NONCE, nonce);
    for (uint32_t i = 0; i < 4; ++i) {
        messages[i] =
            (dael_message){plain, out[i], GCM_SIZE, aad, 20, tags[i], {0}, i, 0, {0}, {0}};
        EXPECT(dael_gcm_start(nonce, messages[i].start) == DAEL_OK);
    }
    messages[3].tag = NULL;
    messages[3].key = 0;
    messages[3].start[0] ^= 1;
    /* Keys 0 and 1 are the same AES-128 key, 2 there is not. */
    dael_ran ran;
    EXPECT(dael_run_batch(engine, &kSeal, set, messages, 4, codes, &ran) == DAEL_OK);
    EXPECT(codes[0] == DAEL_OK && codes[1] == DAEL_OK);
    EXPECT(codes[2] == DAEL_INVALID_ARGUMENT && codes[3] == DAEL_INVALID_ARGUMENT);
    EXPECT(equals_hex(tags[0], GCM_TAG) && equals_hex(tags[1], GCM_TAG));
    EXPECT(equals_hex(out[1], GCM_CIPHER));
    EXPECT(messages[2].in == plain && messages[2].key == 2); /* the list is only read */

    for (int i = 0; i < 4; ++i) messages[i].in = out[i];
    tags[1][15] ^= 1;
    EXPECT(dael_run_batch(engine, &kOpen, set, messages, 3, codes, NULL) == DAEL_OK);
    EXPECT(codes[0] == DAEL_OK && codes[1] == DAEL_AUTHENTICATION &&
           codes[2] == DAEL_INVALID_ARGUMENT);
    EXPECT(equals_hex(out[0], GCM_PLAIN) && equals_hex(out[1], GCM_CIPHER));

    /* A nonce that nobody set, twice under one key: nothing is touched. */
    for (int i = 0; i < 2; ++i) {
        memset(messages[i].start, 0, 16);
        messages[i].key = 0;
        messages[i].in = plain;
        memset(out[i], 0x55, GCM_SIZE);
    }
    EXPECT(dael_run_batch(engine, &kSeal, set, messages, 2, codes, NULL) == DAEL_LIMIT);
    EXPECT(out[0][0] == 0x55 && out[1][59] == 0x55);
}

static void plain_modes(dael_engine* engine, const dael_key_set* set) {
    uint8_t plain[64], out[2][64];
    int32_t codes[2];
    from_hex(PLAIN, plain);
    for (size_t i = 0; i < sizeof kKnown / sizeof *kKnown; ++i) {
        const dael_cipher cipher = {(uint8_t)kKnown[i].mode, DAEL_ENCRYPT, 0, 0, 0};
        dael_message messages[2] = {{.in = plain, .out = out[0], .size = 64},
                                    {.in = plain, .out = out[1], .size = 64}};
        for (int k = 0; k < 2 && kKnown[i].start; ++k) from_hex(kKnown[i].start, messages[k].start);
        messages[1].key = 1;
        messages[1].size = 63; /* of whole blocks only where the mode asks for them */
        EXPECT(dael_run_batch(engine, &cipher, set, messages, 2, codes, NULL) == DAEL_OK);
        const int ragged = kKnown[i].mode == DAEL_ECB || kKnown[i].mode == DAEL_CBC;
        EXPECT(codes[0] == DAEL_OK);
        EXPECT(codes[1] == (ragged ? DAEL_RAGGED_LENGTH : DAEL_OK));
        EXPECT(equals_hex(out[0], kKnown[i].cipher));
        memset(out[0], 0, 64); /* a list of one is a list too, on a device as well */
        EXPECT(dael_run_batch(engine, &cipher, set, messages, 1, codes, NULL) == DAEL_OK);
        EXPECT(codes[0] == DAEL_OK && equals_hex(out[0], kKnown[i].cipher));
    }
}

static void misuse(dael_engine* engine, const dael_key_set* set) {
    uint8_t data[16] = {0};
    dael_message message = {.in = data, .out = data, .size = 16};
    int32_t code = 0;
    EXPECT(dael_run_batch(engine, &kCtr, set, NULL, 0, NULL, NULL) == DAEL_OK);
    REFUSED(dael_run_batch(engine, &kCtr, set, NULL, 1, &code, NULL), DAEL_INVALID_ARGUMENT,
            "messages is null");
    REFUSED(dael_run_batch(engine, &kCtr, set, &message, 1, NULL, NULL), DAEL_INVALID_ARGUMENT,
            "codes is null");
    REFUSED(dael_run_batch(engine, &kCtr, NULL, &message, 1, &code, NULL), DAEL_INVALID_ARGUMENT,
            "keys is null");
    EXPECT(dael_run_batch(NULL, &kCtr, set, &message, 1, &code, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_run_batch(engine, NULL, set, &message, 1, &code, NULL) == DAEL_INVALID_ARGUMENT);
    const dael_cipher none = {9, 0, 0, 0, 0};
    EXPECT(dael_run_batch(engine, &none, set, &message, 1, &code, NULL) == DAEL_INVALID_ARGUMENT);
    const dael_cipher xts = {DAEL_XTS, DAEL_ENCRYPT, 0, 0, 16};
    EXPECT(dael_run_batch(engine, &xts, set, &message, 1, &code, NULL) == DAEL_INVALID_ARGUMENT);
}

static void replacing(dael_engine* engine, dael_key_set* set) {
    uint8_t plain[64], out[64], bytes[32] = {7};
    int32_t code = -1;
    dael_key *other = NULL, *back = key_of(KEY);
    from_hex(PLAIN, plain);
    dael_message message = {.in = plain, .out = out, .size = 64};
    from_hex(COUNTER, message.start);
    EXPECT(dael_key_import(bytes, 32, &other) == DAEL_OK);
    EXPECT(dael_key_set_replace(set, 0, other, NULL) == DAEL_OK);
    EXPECT(dael_key_set_bits(set, 0) == 256 && dael_key_set_bits(set, 1) == 128);
    EXPECT(dael_run_batch(engine, &kCtr, set, &message, 1, &code, NULL) == DAEL_OK);
    EXPECT(code == DAEL_OK && !equals_hex(out, kKnown[4].cipher));
    EXPECT(dael_key_set_replace(set, 0, back, NULL) == DAEL_OK);
    dael_key_free(back); /* it was copied */
    EXPECT(dael_run_batch(engine, &kCtr, set, &message, 1, &code, NULL) == DAEL_OK);
    EXPECT(equals_hex(out, kKnown[4].cipher));
    EXPECT(dael_key_set_replace(set, 2, other, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_key_set_replace(set, 0, NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_key_set_replace(NULL, 0, other, NULL) == DAEL_INVALID_ARGUMENT);
    dael_key_free(other);
}

void set_tests(dael_engine* engine) {
    dael_key *const gcm = key_of(GCM_KEY), *const key = key_of(KEY);
    const dael_key* const twice[2] = {gcm, gcm};
    const dael_key* const pair[2] = {key, gcm};
    const dael_key* const hole[2] = {gcm, NULL};
    dael_key_set* set = (dael_key_set*)(void*)&set;
    REFUSED(dael_key_set_make(engine, NULL, 2, &set), DAEL_INVALID_ARGUMENT, "keys is null");
    EXPECT(set == NULL);
    REFUSED(dael_key_set_make(engine, hole, 2, &set), DAEL_INVALID_ARGUMENT, "key 1 is null");
    EXPECT(dael_key_set_make(engine, twice, 0, &set) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_key_set_make(NULL, twice, 2, &set) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_key_set_make(engine, twice, 2, NULL) == DAEL_INVALID_ARGUMENT);

    EXPECT(dael_key_set_make(engine, twice, 2, &set) == DAEL_OK);
    EXPECT(dael_key_set_size(set) == 2 && dael_key_set_bits(set, 1) == 128);
    EXPECT(dael_key_set_bits(set, 2) == 0 && dael_key_set_bits(NULL, 0) == 0);
    EXPECT(dael_key_set_size(NULL) == 0);
    sealing(engine, set);
    misuse(engine, set);
    dael_key_set_free(set);

    EXPECT(dael_key_set_make(engine, pair, 2, &set) == DAEL_OK);
    plain_modes(engine, set);
    replacing(engine, set);
    dael_key_set_free(set);
    dael_key_set_free(NULL);
    dael_key_free(gcm);
    dael_key_free(key);
}
