/* SPDX-License-Identifier: Apache-2.0
 * From C: seals a message with AES-256-GCM under a nonce that never repeats, opens it again, and
 * refuses it once a bit of it was altered. */
#include <daelstrom/daelstrom.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what) {
    fprintf(stderr, "%s: %s\n", what, dael_last_error());
    return 1;
}

int main(void) {
    unsigned char bytes[32]; /* keys must come from a cryptographic source */
    FILE* random = fopen("/dev/urandom", "rb");
    if (!random || fread(bytes, 1, sizeof bytes, random) != sizeof bytes) return 1;
    fclose(random);

    dael_engine* engine = NULL;
    dael_key* key = NULL;
    dael_nonces* nonces = NULL;
    if (dael_engine_open(NULL, &engine) != DAEL_OK) return failed("engine");
    if (dael_key_import(bytes, sizeof bytes, &key) != DAEL_OK) return failed("key");
    dael_wipe(bytes, sizeof bytes);
    if (dael_nonces_make((const uint8_t*)"me01", 0, &nonces) != DAEL_OK) return failed("nonces");

    uint8_t data[64] = "a message", tag[DAEL_TAG_SIZE], header[] = {'v', '1'};
    dael_message message = {.in = data, .out = data, .size = sizeof data}; /* in place */
    message.aad = header; /* authenticated, not encrypted */
    message.aad_size = sizeof header;
    message.tag = tag;

    const dael_cipher seal = {.mode = DAEL_GCM, .direction = DAEL_ENCRYPT, .tag = sizeof tag};
    const dael_cipher open = {.mode = DAEL_GCM, .direction = DAEL_DECRYPT, .tag = sizeof tag};
    dael_ran ran;
    if (dael_nonces_number(nonces, &message, 1) != DAEL_OK) return failed("nonce");
    if (dael_run(engine, &seal, key, &message, &ran) != DAEL_OK) return failed("sealing");
    printf("sealed on %s\n", ran.backend);

    data[3] ^= 1; /* what an attacker, or a bad disk, might do */
    const int refused = dael_run(engine, &open, key, &message, NULL) == DAEL_AUTHENTICATION;
    if (refused) printf("altered: %s\n", dael_last_error());
    data[3] ^= 1; /* in place, what does not authenticate stays as it was */
    if (dael_run(engine, &open, key, &message, NULL) != DAEL_OK) return failed("opening");
    printf("opened: %s\n", (const char*)data);

    dael_engine_close(engine); /* in any order */
    dael_nonces_free(nonces);
    dael_key_free(key);
    return refused && strcmp((const char*)data, "a message") == 0 ? 0 : 1;
}
