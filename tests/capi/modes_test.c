/* SPDX-License-Identifier: Apache-2.0
 * Starts, nonces, and GCM and CTR in one call. */
#include <pthread.h>

#include "capi.h"

static void starts(const dael_key* key) {
    uint8_t nonce[12], iv[60], start[16], again[16];
    from_hex(GCM_NONCE, nonce);
    EXPECT(dael_gcm_start(nonce, start) == DAEL_OK);
    EXPECT(equals_hex(start, GCM_NONCE "00000001"));
    EXPECT(dael_gcm_start_iv(key, nonce, 12, again) == DAEL_OK);
    EXPECT(memcmp(start, again, 16) == 0);
    from_hex(GCM_IV, iv);
    EXPECT(dael_gcm_start_iv(key, iv, 60, again) == DAEL_OK);
    EXPECT(equals_hex(again, "3bab75780a31c059f83d2a44752f9864"));
    EXPECT(dael_gcm_start_iv(key, iv, 0, again) == DAEL_IV_SIZE);
    EXPECT(dael_gcm_start_iv(key, NULL, 12, again) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_start_iv(NULL, iv, 12, again) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_start(NULL, start) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_start(nonce, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_xts_start(0x0102, 0x0304, start) == DAEL_OK);
    EXPECT(equals_hex(start, "02010000000000000403000000000000"));
    EXPECT(dael_xts_start(0, 0, NULL) == DAEL_INVALID_ARGUMENT);
}

static void gcm(dael_engine* engine, const dael_key* key) {
    uint8_t data[GCM_SIZE], tag[16] = {0}, aad[20], nonce[12], iv[60];
    dael_ran ran;
    from_hex(GCM_PLAIN, data);
    from_hex(GCM_AAD, aad);
    from_hex(GCM_NONCE, nonce);
    from_hex(GCM_IV, iv);
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, aad, 20, data, data, 60, tag, 16, &ran) ==
           DAEL_OK);
    EXPECT(ran.backend[0] != 0);
    EXPECT(equals_hex(data, GCM_CIPHER) && equals_hex(tag, GCM_TAG));
    EXPECT(dael_gcm_open(engine, key, nonce, 12, aad, 19, data, data, 60, tag, 16, NULL) ==
           DAEL_AUTHENTICATION);
    EXPECT(dael_gcm_open(engine, key, nonce, 12, aad, 20, data, data, 60, tag, 12, NULL) ==
           DAEL_OK);
    EXPECT(equals_hex(data, GCM_PLAIN));
    EXPECT(dael_gcm_seal(engine, key, iv, 60, aad, 20, data, data, 60, tag, 16, NULL) == DAEL_OK);
    EXPECT(equals_hex(tag, GCM_IV_TAG));
    EXPECT(dael_gcm_open(engine, key, iv, 60, aad, 20, data, data, 60, tag, 16, NULL) == DAEL_OK);
    EXPECT(equals_hex(data, GCM_PLAIN));

    /* GMAC, and nothing at all. */
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, aad, 20, NULL, NULL, 0, tag, 16, NULL) == DAEL_OK);
    EXPECT(dael_gcm_open(engine, key, nonce, 12, aad, 20, NULL, NULL, 0, tag, 16, NULL) == DAEL_OK);
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, NULL, 0, NULL, NULL, 0, tag, 4, NULL) == DAEL_OK);

    EXPECT(dael_gcm_seal(engine, key, nonce, 0, NULL, 0, NULL, NULL, 0, tag, 16, NULL) ==
           DAEL_IV_SIZE);
    EXPECT(dael_gcm_seal(engine, key, NULL, 12, NULL, 0, NULL, NULL, 0, tag, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, NULL, 1, NULL, NULL, 0, tag, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, NULL, 0, NULL, NULL, 0, tag, 7, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, NULL, 0, NULL, NULL, 0, tag, 272, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, NULL, 0, NULL, NULL, 0, NULL, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_seal(engine, key, nonce, 12, NULL, 0, NULL, data, 60, tag, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_open(NULL, key, nonce, 12, NULL, 0, NULL, NULL, 0, tag, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
}

static void ctr(dael_engine* engine) {
    uint8_t plain[64], out[64], counter[16];
    dael_key* const key = key_of(KEY);
    from_hex(PLAIN, plain);
    from_hex(COUNTER, counter);
    EXPECT(dael_ctr_crypt(engine, key, counter, 0, plain, out, 64, NULL) == DAEL_OK);
    EXPECT(equals_hex(out, kKnown[4].cipher));
    /* Any part of it by itself; then the keystream. */
    EXPECT(dael_ctr_crypt(engine, key, counter, 21, out + 21, out + 21, 30, NULL) == DAEL_OK);
    EXPECT(memcmp(out + 21, plain + 21, 30) == 0);
    EXPECT(dael_ctr_crypt(engine, key, counter, 33, NULL, out, 31, NULL) == DAEL_OK);
    for (int i = 0; i < 31; ++i) out[i] ^= plain[33 + i];
    EXPECT(equals_hex(out, kKnown[4].cipher + 66));
    EXPECT(dael_ctr_crypt(engine, key, counter, UINT64_MAX, plain, out, 64, NULL) == DAEL_LIMIT);
    EXPECT(dael_ctr_crypt(engine, key, NULL, 0, plain, out, 64, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_ctr_crypt(engine, key, counter, 0, plain, NULL, 64, NULL) == DAEL_INVALID_ARGUMENT);
    dael_key_free(key);
}

static void padding(void) {
    uint8_t last[16];
    size_t size = 99;
    EXPECT(dael_pad("abc", 3, last) == DAEL_OK);
    EXPECT(equals_hex(last, "6162630d0d0d0d0d0d0d0d0d0d0d0d0d"));
    EXPECT(dael_unpad(last, &size) == DAEL_OK && size == 3);
    EXPECT(dael_pad(NULL, 0, last) == DAEL_OK && last[0] == 16);
    EXPECT(dael_unpad(last, &size) == DAEL_OK && size == 0);
    last[3] ^= 1;
    EXPECT(dael_unpad(last, &size) == DAEL_BAD_PADDING && size == 0);
    REFUSED(dael_pad(last, 16, last), DAEL_INVALID_ARGUMENT, "16");
    EXPECT(dael_pad(NULL, 1, last) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_pad("abc", 3, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_unpad(NULL, &size) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_unpad(last, NULL) == DAEL_INVALID_ARGUMENT);
}

enum { kThreads = 4, kEach = 1000 };
struct taker {
    dael_nonces* nonces;
    uint8_t taken[kEach][12];
};
static void* take(void* argument) {
    struct taker* const taker = argument;
    for (int i = 0; i < kEach; ++i)
        if (dael_nonces_next(taker->nonces, taker->taken[i]) != DAEL_OK) return NULL;
    return argument;
}

/* Each number once, whoever asks. */
static void nonces_by_threads(void) {
    static struct taker takers[kThreads];
    static char seen[kThreads * kEach];
    pthread_t threads[kThreads];
    dael_nonces* nonces = NULL;
    memset(seen, 0, sizeof seen);
    EXPECT(dael_nonces_make((const uint8_t*)"abcd", 0, &nonces) == DAEL_OK);
    for (int t = 0; t < kThreads; ++t) {
        takers[t].nonces = nonces;
        EXPECT(pthread_create(&threads[t], NULL, take, &takers[t]) == 0);
    }
    for (int t = 0; t < kThreads; ++t) {
        void* done = NULL;
        EXPECT(pthread_join(threads[t], &done) == 0 && done != NULL);
        for (int i = 0; i < kEach; ++i) {
            const uint8_t* const nonce = takers[t].taken[i];
            const int number = nonce[10] << 8 | nonce[11];
            EXPECT(memcmp(nonce, "abcd", 4) == 0 && number < kThreads * kEach);
            if (number < kThreads * kEach) ++seen[number];
        }
    }
    for (int i = 0; i < kThreads * kEach; ++i) EXPECT(seen[i] == 1);
    EXPECT(dael_nonces_unused(nonces) == kThreads * kEach);
    dael_nonces_free(nonces);
}

static void nonces(void) {
    dael_nonces* nonces = NULL;
    dael_message messages[3];
    uint8_t nonce[12];
    memset(messages, 0, sizeof messages);
    EXPECT(dael_nonces_make((const uint8_t*)"abcd", UINT64_MAX - 3, &nonces) == DAEL_OK);
    EXPECT(dael_nonces_number(nonces, messages, 2) == DAEL_OK);
    EXPECT(equals_hex(messages[0].start, "61626364fffffffffffffffc00000001"));
    EXPECT(equals_hex(messages[1].start, "61626364fffffffffffffffd00000001"));
    EXPECT(dael_nonces_number(nonces, messages, 3) == DAEL_LIMIT); /* all or none */
    EXPECT(messages[2].start[0] == 0);
    EXPECT(dael_nonces_unused(nonces) == UINT64_MAX - 1);
    EXPECT(dael_nonces_next(nonces, nonce) == DAEL_OK);
    EXPECT(equals_hex(nonce, "61626364fffffffffffffffe"));
    EXPECT(dael_nonces_number(nonces, NULL, 0) == DAEL_OK);
    EXPECT(dael_nonces_number(nonces, NULL, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_nonces_number(NULL, messages, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_nonces_next(nonces, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_nonces_next(NULL, nonce) == DAEL_INVALID_ARGUMENT);
    dael_nonces_free(nonces);
    EXPECT(dael_nonces_make(NULL, 0, &nonces) == DAEL_INVALID_ARGUMENT && nonces == NULL);
    EXPECT(dael_nonces_unused(NULL) == 0);
    dael_nonces_free(NULL);
}

void modes_tests(dael_engine* engine) {
    dael_key* const key = key_of(GCM_KEY);
    starts(key);
    gcm(engine, key);
    ctr(engine);
    padding();
    nonces();
    nonces_by_threads();
    dael_key_free(key);
}
