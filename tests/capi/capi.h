/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the C interface share. */
#ifndef DAEL_TESTS_CAPI_H
#define DAEL_TESTS_CAPI_H

#include <daelstrom/daelstrom.h>
#include <stdio.h>
#include <string.h>

extern int failures;

#define EXPECT(condition)                                                          \
    do {                                                                           \
        if (!(condition)) {                                                        \
            printf("%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
                   dael_last_error());                                             \
            ++failures;                                                            \
        }                                                                          \
    } while (0)
/* That a call fails, and says why in words that name the thing. */
#define REFUSED(call, status, words)                        \
    do {                                                    \
        EXPECT((call) == (status));                         \
        EXPECT(strstr(dael_last_error(), (words)) != NULL); \
    } while (0)

/* Reads hexadecimal digits; returns how many bytes they are. */
size_t from_hex(const char* hex, uint8_t* bytes);
int equals_hex(const uint8_t* bytes, const char* hex);

/* SP 800-38A, appendix F: the key, the four blocks, and what each mode makes of them. */
#define KEY "2b7e151628aed2a6abf7158809cf4f3c"
#define IV "000102030405060708090a0b0c0d0e0f"
#define COUNTER "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
#define PLAIN                                                          \
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51" \
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
struct known {
    dael_mode mode;
    const char* start;
    const char* cipher;
};
extern const struct known kKnown[5];

/* McGrew and Viega's test cases 4 and 6: the same key, data and AAD under an IV of 12 and of 60
 * bytes. */
#define GCM_KEY "feffe9928665731c6d6a8f9467308308"
#define GCM_NONCE "cafebabefacedbaddecaf888"
#define GCM_IV                                                     \
    "9313225df88406e555909c5aff5269aa6a7a9538534f7da1e4c303d2a318" \
    "a728c3c0c95156809539fcf0e2429a6b525416aedbf5a0de6a57a637b39b"
#define GCM_AAD "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define GCM_PLAIN                                                  \
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a31" \
    "8a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define GCM_CIPHER                                                 \
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329ac" \
    "a12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
#define GCM_TAG "5bc94fbc3221a5db94fae95ae7121a47"
#define GCM_IV_TAG "619cc5aefffe0bfa462af43c1699d050"
#define GCM_SIZE 60

/* IEEE 1619, vector 17: XTS-AES-128 of bytes 0, 1, 2, ... with ciphertext stealing. */
#define XTS_KEY "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0bfbebdbcbbbab9b8b7b6b5b4b3b2b1b0"
#define XTS_NUMBER 0x123456789a
#define XTS_CIPHER "e5df1351c0544ba1350b3363cd8ef4beedbf9d"
#define XTS_SIZE 19

static const dael_cipher kSeal = {DAEL_GCM, DAEL_ENCRYPT, 16, 0, 0};
static const dael_cipher kOpen = {DAEL_GCM, DAEL_DECRYPT, 16, 0, 0};
static const dael_cipher kCtr = {DAEL_CTR, DAEL_ENCRYPT, 0, 0, 0};

/* A key of hexadecimal digits, and an engine on a backend; null where that failed, which counts. */
dael_key* key_of(const char* hex);
dael_engine* engine_on(const char* backend);

/* One file each. `engine` is on a host backend, and one after another on all that are here. */
void base_tests(void);
void engine_tests(dael_engine* engine);
void set_tests(dael_engine* engine);
void modes_tests(dael_engine* engine);
void pieces_tests(dael_engine* engine);
void plan_tests(dael_engine* engine);
void host_device_tests(dael_engine* engine);
void life_tests(const char* backend);
/* On a device, if there is one. */
void device_tests(const char* backend);
void opencl_tests(dael_engine* engine, dael_device* device);

#endif /* DAEL_TESTS_CAPI_H */
