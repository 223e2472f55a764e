/* SPDX-License-Identifier: Apache-2.0
 * A program that knows nothing of daelstrom: AES-128-GCM (SP 800-38D's test case 4, as LibTomCrypt
 * itself has it) and counter mode, on the AES that it registers, and forks while another thread
 * has a new key for each message. Says whether what did it has hooks.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <tomcrypt.h>
#include <unistd.h>

static void from_hex(const char* text, unsigned char* bytes) {
    for (unsigned byte; sscanf(text, "%2x", &byte) == 1; text += 2) *bytes++ = (unsigned char)byte;
}

static atomic_int forks_are_over;

static void* seal_under_new_keys(void* aes) {
    unsigned char key[16] = {0}, data[2048] = {0}, iv[12] = {0}, tag[16];
    for (unsigned number = 0; !forks_are_over; ++number) {
        unsigned long size = sizeof tag;
        memcpy(key, &number, sizeof number);
        if (gcm_memory(*(int*)aes, key, 16, iv, 12, NULL, 0, data, sizeof data, data, tag, &size,
                       GCM_ENCRYPT) != CRYPT_OK)
            return aes;
    }
    return NULL;
}

/* Neither waits for a lock that the other has. */
static int forks_beside_new_keys(int aes) {
    pthread_t thread;
    void* failed = NULL;
    if (pthread_create(&thread, NULL, seal_under_new_keys, &aes) != 0) return 0;
    for (int i = 0; i < 1000; ++i) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child) return 0;
    }
    forks_are_over = 1;
    pthread_join(thread, &failed);
    return !failed;
}

int main(void) {
    alarm(60);
    unsigned char key[16], iv[12], aad[20], data[60], sealed[60], tag[16], expected[16];
    from_hex("feffe9928665731c6d6a8f9467308308", key);
    from_hex("cafebabefacedbaddecaf888", iv);
    from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2", aad);
    from_hex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449"
        "a6"
        "b525b16aedf5aa0de657ba637b39",
        data);
    from_hex(
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac"
        "84"
        "aa051ba30b396a0aac973d58e091",
        sealed);
    from_hex("5bc94fbc3221a5db94fae95ae7121a47", expected);

    int aes = register_cipher(&aes_desc);
    unsigned long size = sizeof tag;
    if (aes < 0 || gcm_memory(aes, key, 16, iv, 12, aad, 20, data, 60, data, tag, &size,
                              GCM_ENCRYPT) != CRYPT_OK)
        return 1;
    if (memcmp(data, sealed, 60) != 0 || memcmp(tag, expected, 16) != 0) return 2;

    unsigned char stream[4096] = {0}, start[16] = {0}, pieces[4096] = {0};
    symmetric_CTR ctr;
    if (ctr_start(aes, start, key, 16, 0, CTR_COUNTER_BIG_ENDIAN, &ctr) != CRYPT_OK ||
        ctr_encrypt(stream, stream, sizeof stream, &ctr) != CRYPT_OK)
        return 3;
    /* The same, a byte at a time: those are LibTomCrypt's own. */
    if (ctr_setiv(start, 16, &ctr) != CRYPT_OK) return 4;
    for (unsigned i = 0; i < sizeof pieces; ++i) ctr_encrypt(pieces + i, pieces + i, 1, &ctr);
    if (memcmp(stream, pieces, sizeof stream) != 0) return 5;
    if (!forks_beside_new_keys(aes)) return 6;
    puts(cipher_descriptor[aes].accel_gcm_memory ? "right, with hooks" : "right, without hooks");
    return 0;
}
