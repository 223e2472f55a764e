/* SPDX-License-Identifier: Apache-2.0
 * A program that uses LibTomCrypt, with daelstrom below it: one call more than before. Seals a
 * message with AES-256-GCM, opens it, and compares the tag, which gcm_memory() of LibTomCrypt 1.18
 * leaves to its caller; and encrypts a stream in counter mode. */
#include <daelstrom_tomcrypt.h>
#include <stdio.h>
#include <string.h>
#include <tomcrypt.h>

static int failed(const char* what, int error) {
    fprintf(stderr, "%s: %s\n", what, error_to_string(error));
    return 1;
}

int main(void) {
    int aes = daelstrom_tomcrypt_register(); /* instead of register_cipher(&aes_desc) */
    if (aes < 0) return 1;

    unsigned char key[32], nonce[12], iv[16]; /* must come from a cryptographic source */
    if (rng_get_bytes(key, sizeof key, NULL) != sizeof key ||
        rng_get_bytes(nonce, sizeof nonce, NULL) != sizeof nonce ||
        rng_get_bytes(iv, sizeof iv, NULL) != sizeof iv)
        return 1;

    unsigned char packet[1024] = "a packet", header[8] = "header", tag[16], expected[16];
    unsigned long size = sizeof tag;
    int error = gcm_memory(aes, key, sizeof key, nonce, sizeof nonce, header, sizeof header, packet,
                           sizeof packet, packet, tag, &size, GCM_ENCRYPT);
    if (error != CRYPT_OK) return failed("sealing", error);

    size = sizeof expected;
    error = gcm_memory(aes, key, sizeof key, nonce, sizeof nonce, header, sizeof header, packet,
                       sizeof packet, packet, expected, &size, GCM_DECRYPT);
    if (error != CRYPT_OK) return failed("opening", error);
    if (mem_neq(tag, expected, sizeof tag) != 0) return 1; /* a forgery: do not use the packet */

    symmetric_CTR ctr;
    error = ctr_start(aes, iv, key, sizeof key, 0, CTR_COUNTER_BIG_ENDIAN, &ctr);
    if (error != CRYPT_OK) return failed("counter mode", error);
    ctr_encrypt(packet, packet, sizeof packet, &ctr);
    ctr_done(&ctr);

    printf("daelstrom served %llu calls of LibTomCrypt\n", daelstrom_tomcrypt_served());
    return daelstrom_tomcrypt_served() == 3 ? 0 : 1;
}
