/* SPDX-License-Identifier: Apache-2.0
 * The C ABI, as a C program uses it. */
#include <daelstrom/daelstrom.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                          \
    do {                                                                           \
        if (!(condition)) {                                                        \
            printf("%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
                   dael_last_error());                                             \
            ++failures;                                                            \
        }                                                                          \
    } while (0)

/* SP 800-38A, F.5.1: CTR-AES128. */
static const uint8_t kKey[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6,
                                 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const uint8_t kCounter[16] = {0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7,
                                     0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff};
static const uint8_t kPlain[16] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96,
                                   0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a};
static const uint8_t kCipher[16] = {0x87, 0x4d, 0x61, 0x91, 0xb6, 0x20, 0xe3, 0x26,
                                    0x1b, 0xef, 0x68, 0x64, 0x99, 0x0d, 0xb6, 0xce};

static void visit(void* context, const dael_backend* backend) {
    int* found = context;
    if (strcmp(backend->name, "openssl") == 0 && backend->present) *found = 1;
    EXPECT(backend->present ? backend->missing[0] == 0 : backend->missing[0] != 0);
}

static void known_answers(dael_engine* engine, dael_key* key) {
    uint8_t out[16];
    dael_ran ran;
    EXPECT(dael_crypt(engine, key, DAEL_CTR, DAEL_ENCRYPT, kCounter, 0, kPlain, out, 16, &ran) ==
           DAEL_OK);
    EXPECT(memcmp(out, kCipher, 16) == 0);
    EXPECT(strcmp(ran.backend, "openssl") == 0);
    EXPECT(ran.threads == 1 && ran.chunks == 0);
    /* From the fifth byte of the keystream on. */
    EXPECT(dael_crypt(engine, key, DAEL_CTR, DAEL_DECRYPT, kCounter, 5, kCipher + 5, out, 11,
                      NULL) == DAEL_OK);
    EXPECT(memcmp(out, kPlain + 5, 11) == 0);
    EXPECT(dael_crypt(engine, key, DAEL_CTR, DAEL_ENCRYPT, kCounter, 0, NULL, NULL, 0, NULL) ==
           DAEL_OK);

    uint8_t first[16], second[16];
    dael_message messages[2] = {{kPlain, first, 16, {0}, 0}, {kPlain, second, 16, {0}, 0}};
    memcpy(messages[0].iv, kCounter, 16);
    memcpy(messages[1].iv, kCounter, 16);
    EXPECT(dael_crypt_batch(engine, key, DAEL_CTR, DAEL_ENCRYPT, messages, 2, &ran) == DAEL_OK);
    EXPECT(memcmp(first, kCipher, 16) == 0 && memcmp(second, kCipher, 16) == 0);
}

/* IEEE 1619, vector 17: XTS-AES-128 with ciphertext stealing. */
static const uint8_t kXtsKey[32] = {
    0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8, 0xf7, 0xf6, 0xf5, 0xf4, 0xf3, 0xf2, 0xf1, 0xf0,
    0xbf, 0xbe, 0xbd, 0xbc, 0xbb, 0xba, 0xb9, 0xb8, 0xb7, 0xb6, 0xb5, 0xb4, 0xb3, 0xb2, 0xb1, 0xb0};
static const uint8_t kXtsCipher[19] = {0xe5, 0xdf, 0x13, 0x51, 0xc0, 0x54, 0x4b, 0xa1, 0x35, 0x0b,
                                       0x33, 0x63, 0xcd, 0x8e, 0xf4, 0xbe, 0xed, 0xbf, 0x9d};

static void xts_calls(dael_engine* engine) {
    uint8_t plain[19], out[19], two[64], again[64];
    dael_xts_key* key = NULL;
    dael_ran ran;
    dael_xts_sectors sectors = {0x123456789a, 0, 512};
    for (int i = 0; i < 19; ++i) plain[i] = (uint8_t)i;
    EXPECT(dael_xts_key_import(kXtsKey, 32, &key) == DAEL_OK);
    if (!key) return;
    EXPECT(dael_xts(engine, key, DAEL_ENCRYPT, &sectors, plain, out, 19, &ran) == DAEL_OK);
    EXPECT(memcmp(out, kXtsCipher, 19) == 0);
    EXPECT(strcmp(ran.backend, "openssl") == 0);
    EXPECT(dael_xts(engine, key, DAEL_DECRYPT, &sectors, out, out, 19, NULL) == DAEL_OK);
    EXPECT(memcmp(out, plain, 19) == 0);

    /* Two sectors in one call are two calls, and the number's upper half counts. */
    memset(two, 7, sizeof two);
    sectors.size = 32;
    EXPECT(dael_xts(engine, key, DAEL_ENCRYPT, &sectors, two, again, 64, NULL) == DAEL_OK);
    ++sectors.first;
    EXPECT(dael_xts(engine, key, DAEL_ENCRYPT, &sectors, two + 32, two + 32, 32, NULL) == DAEL_OK);
    EXPECT(memcmp(again + 32, two + 32, 32) == 0 && memcmp(again, two + 32, 32) != 0);
    sectors.first_high = 1;
    EXPECT(dael_xts(engine, key, DAEL_DECRYPT, &sectors, two + 32, two + 32, 32, NULL) == DAEL_OK);
    EXPECT(two[32] != 7 || two[33] != 7 || two[34] != 7);

    EXPECT(dael_xts(engine, key, 2, &sectors, two, two, 32, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_xts(engine, key, DAEL_ENCRYPT, NULL, two, two, 32, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_xts(engine, NULL, DAEL_ENCRYPT, &sectors, two, two, 32, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_xts(engine, key, DAEL_ENCRYPT, &sectors, two, two, 40, NULL) == DAEL_RAGGED_LENGTH);
    EXPECT(dael_xts(engine, key, DAEL_ENCRYPT, &sectors, two, two + 8, 32, NULL) == DAEL_OVERLAP);
    EXPECT(dael_xts_device(engine, key, DAEL_ENCRYPT, &sectors, two, two, 32, NULL, NULL) ==
           DAEL_UNSUPPORTED);
    dael_xts_key_free(key);

    key = (dael_xts_key*)(void*)out;
    EXPECT(dael_xts_key_import(kXtsKey, 24, &key) == DAEL_KEY_SIZE);
    EXPECT(key == NULL);
    memset(two, 1, sizeof two);
    EXPECT(dael_xts_key_import(two, 32, &key) == DAEL_INVALID_ARGUMENT); /* equal halves */
    EXPECT(dael_xts_key_import(NULL, 32, &key) == DAEL_INVALID_ARGUMENT);
    dael_xts_key_free(NULL);
}

/* The GCM paper's test case 4: McGrew and Viega, appendix B. */
static const uint8_t kGcmKey[16] = {0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c,
                                    0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08};
static const uint8_t kGcmIv[12] = {0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce,
                                   0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88};
static const uint8_t kGcmAad[20] = {0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed,
                                    0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xab, 0xad, 0xda, 0xd2};
static const uint8_t kGcmPlain[60] = {
    0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf, 0xf5, 0x26,
    0x9a, 0x86, 0xa7, 0xa9, 0x53, 0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c, 0x30, 0x3d, 0x8a, 0x31,
    0x8a, 0x72, 0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09, 0x53, 0x2f, 0xcf, 0x0e, 0x24, 0x49,
    0xa6, 0xb5, 0x25, 0xb1, 0x6a, 0xed, 0xf5, 0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39};
static const uint8_t kGcmTag[16] = {0x5b, 0xc9, 0x4f, 0xbc, 0x32, 0x21, 0xa5, 0xdb,
                                    0x94, 0xfa, 0xe9, 0x5a, 0xe7, 0x12, 0x1a, 0x47};

static void gcm_one(dael_engine* engine, dael_key* key) {
    uint8_t data[60], tag[16] = {0};
    dael_ran ran;
    memcpy(data, kGcmPlain, sizeof data);
    EXPECT(dael_gcm_seal(engine, key, kGcmIv, 12, kGcmAad, 20, data, data, 60, tag, 16, &ran) ==
           DAEL_OK);
    EXPECT(strcmp(ran.backend, "openssl") == 0);
    EXPECT(memcmp(tag, kGcmTag, 16) == 0);
    EXPECT(data[0] == 0x42 && data[1] == 0x83 && data[59] == 0x91);
    EXPECT(dael_gcm_open(engine, key, kGcmIv, 12, kGcmAad, 20, data, data, 60, kGcmTag, 16, NULL) ==
           DAEL_OK);
    EXPECT(memcmp(data, kGcmPlain, 60) == 0);
    EXPECT(dael_gcm_open(engine, key, kGcmIv, 12, kGcmAad, 19, data, data, 60, kGcmTag, 16, NULL) ==
           DAEL_AUTHENTICATION);
    EXPECT(dael_gcm_seal(engine, key, kGcmIv, 0, NULL, 0, NULL, NULL, 0, tag, 16, NULL) ==
           DAEL_IV_SIZE);
    EXPECT(dael_gcm_seal(engine, key, kGcmIv, 12, NULL, 0, NULL, NULL, 0, tag, 7, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_seal(engine, key, kGcmIv, 12, NULL, 0, NULL, data, 60, tag, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_gcm_open(NULL, key, kGcmIv, 12, NULL, 0, NULL, NULL, 0, tag, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
}

static void gcm_batch(dael_engine* engine, dael_key* key) {
    const dael_key* keys[2];
    uint8_t out[3][60], tags[3][16];
    dael_gcm_message messages[3];
    int results[3] = {-1, -1, -1};
    dael_keyset* set = (dael_keyset*)(void*)out;
    keys[0] = keys[1] = key;
    EXPECT(dael_keyset_prepare(engine, NULL, 2, &set) == DAEL_INVALID_ARGUMENT);
    EXPECT(set == NULL);
    EXPECT(dael_keyset_prepare(engine, keys, 0, &set) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_keyset_prepare(engine, keys, 2, &set) == DAEL_OK);
    if (!set) return;
    for (int i = 0; i < 3; ++i) {
        dael_gcm_message message = {kGcmPlain, out[i], 60, kGcmAad, 20, tags[i], {0}, 0};
        memcpy(message.nonce, kGcmIv, 12);
        messages[i] = message;
    }
    messages[1].key = 1;
    messages[2].key = 2; /* there is none */
    EXPECT(dael_seal_batch(engine, set, messages, 3, results, 16, NULL) == DAEL_OK);
    EXPECT(results[0] == DAEL_OK && results[1] == DAEL_OK && results[2] == DAEL_INVALID_ARGUMENT);
    EXPECT(memcmp(tags[0], kGcmTag, 16) == 0 && memcmp(tags[1], kGcmTag, 16) == 0);
    for (int i = 0; i < 3; ++i) messages[i].in = out[i];
    tags[1][15] ^= 1;
    EXPECT(dael_open_batch(engine, set, messages, 3, results, 16, NULL) == DAEL_OK);
    EXPECT(results[0] == DAEL_OK && results[1] == DAEL_AUTHENTICATION &&
           results[2] == DAEL_INVALID_ARGUMENT);
    EXPECT(memcmp(out[0], kGcmPlain, 60) == 0);
    EXPECT(memcmp(out[1], kGcmPlain, 8) != 0);
    EXPECT(dael_open_batch(engine, set, NULL, 0, NULL, 16, NULL) == DAEL_OK);
    EXPECT(dael_open_batch(engine, set, messages, 3, NULL, 16, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_seal_batch(engine, set, NULL, 3, results, 16, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_seal_batch(engine, NULL, messages, 3, results, 16, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_seal_batch(engine, set, messages, 3, results, 5, NULL) == DAEL_INVALID_ARGUMENT);
    dael_keyset_free(set);
    dael_keyset_free(NULL);
}

static void gcm(dael_engine* engine) {
    dael_key* key = NULL;
    EXPECT(dael_key_import(kGcmKey, sizeof kGcmKey, &key) == DAEL_OK);
    if (!key) return;
    gcm_one(engine, key);
    gcm_batch(engine, key);
    dael_key_free(key);
}

static void bad_calls(dael_engine* engine, dael_key* key) {
    uint8_t out[32];
    dael_engine* no_engine = (dael_engine*)(void*)out;
    dael_key* no_key = (dael_key*)(void*)out;
    EXPECT(dael_engine_open("abacus", 0, &no_engine) == DAEL_UNKNOWN_BACKEND);
    EXPECT(no_engine == NULL);
    EXPECT(strstr(dael_last_error(), "abacus") != NULL);
    EXPECT(dael_engine_open("openssl", -1, &no_engine) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_engine_open("openssl", 1, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_key_import(kKey, 15, &no_key) == DAEL_KEY_SIZE);
    EXPECT(no_key == NULL);
    EXPECT(dael_key_import(NULL, 16, &no_key) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_crypt(engine, key, DAEL_ECB, DAEL_ENCRYPT, NULL, 0, kPlain, out, 15, NULL) ==
           DAEL_RAGGED_LENGTH);
    EXPECT(dael_crypt(engine, key, DAEL_CBC, DAEL_ENCRYPT, NULL, 0, kPlain, out, 16, NULL) ==
           DAEL_IV_SIZE);
    EXPECT(dael_crypt(engine, key, (dael_mode)9, DAEL_ENCRYPT, kCounter, 0, kPlain, out, 16,
                      NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_crypt(engine, key, DAEL_CTR, (dael_direction)2, kCounter, 0, kPlain, out, 16,
                      NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_crypt(engine, key, DAEL_CTR, DAEL_ENCRYPT, kCounter, 0, NULL, out, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_crypt(NULL, key, DAEL_CTR, DAEL_ENCRYPT, kCounter, 0, kPlain, out, 16, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_crypt(engine, key, DAEL_CTR, DAEL_ENCRYPT, kCounter, 0, out, out + 8, 16, NULL) ==
           DAEL_OVERLAP);
    EXPECT(dael_crypt_device(engine, key, DAEL_CTR, DAEL_ENCRYPT, kCounter, 0, kPlain, out, 16,
                             NULL, NULL) == DAEL_UNSUPPORTED);
    EXPECT(dael_crypt_batch(engine, key, DAEL_CTR, DAEL_ENCRYPT, NULL, 1, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_list_backends(NULL, NULL) == DAEL_INVALID_ARGUMENT);
}

int main(void) {
    dael_engine* engine = NULL;
    dael_key* key = NULL;
    int found = 0;
    EXPECT(dael_last_error()[0] == 0);
    EXPECT(dael_engine_open("openssl", 1, &engine) == DAEL_OK);
    EXPECT(dael_key_import(kKey, sizeof kKey, &key) == DAEL_OK);
    if (engine && key) {
        known_answers(engine, key);
        bad_calls(engine, key);
        xts_calls(engine);
        gcm(engine);
    }
    EXPECT(dael_list_backends(visit, &found) == DAEL_OK);
    EXPECT(found);
    for (int status = DAEL_OK; status <= DAEL_AUTHENTICATION; ++status)
        EXPECT(dael_strerror((dael_status)status)[0] != 0);
    EXPECT(strcmp(dael_strerror((dael_status)99), "unknown status") == 0);
    void* memory = dael_pinned_alloc(100);
    EXPECT(memory != NULL);
    if (memory) memset(memory, 1, 100);
    dael_pinned_free(memory);
    dael_pinned_free(NULL);
    dael_key_free(key);
    dael_key_free(NULL);
    dael_engine_close(engine);
    dael_engine_close(NULL);
    return failures != 0;
}
