/* SPDX-License-Identifier: Apache-2.0
 * Versions, statuses, layouts, options of other versions, memory. */
#include <stddef.h>
#include <stdlib.h>

#include "capi.h"

/* What callers in other languages rely on. */
_Static_assert(sizeof(dael_cipher) == 8, "");
_Static_assert(offsetof(dael_cipher, sector) == 4, "");
_Static_assert(sizeof(dael_message) == 96, "");
_Static_assert(offsetof(dael_message, aad) == 24, "");
_Static_assert(offsetof(dael_message, tag) == 40, "");
_Static_assert(offsetof(dael_message, start) == 48, "");
_Static_assert(offsetof(dael_message, key) == 64, "");
_Static_assert(offsetof(dael_message, skip) == 68, "");
_Static_assert(offsetof(dael_message, start_rest) == 80, "");
_Static_assert(sizeof(dael_device_nonces) == 16, "");
_Static_assert(sizeof(dael_ran) == 64, "");
/* What grows, by its size: nothing new may hide in what used to be a hole, where a caller of an
 * older library would find it "present". */
_Static_assert(sizeof(dael_engine_options) == 88, "");
_Static_assert(sizeof(dael_prepare_options) == 40, "");
_Static_assert(sizeof(dael_launch_options) == 24, "");
_Static_assert(sizeof(dael_job) == 48, "");
_Static_assert(sizeof(dael_backend) == 48, "");
_Static_assert(sizeof(dael_option) == 88, "");
_Static_assert(sizeof(dael_device_info) == 72, "");
#define ENDS_IN(type, member) \
    _Static_assert(offsetof(type, member) + sizeof(((type*)0)->member) == sizeof(type), #type)
ENDS_IN(dael_engine_options, copy_rate);
ENDS_IN(dael_prepare_options, longest);
ENDS_IN(dael_launch_options, unused);
ENDS_IN(dael_job, unused);
ENDS_IN(dael_backend, unused);
ENDS_IN(dael_option, members);
ENDS_IN(dael_device_info, unused);

/* As a program passes it that was built with a later header. */
struct later_options {
    dael_engine_options known;
    uint64_t new_one, another;
};

static void sizes_of_options(void) {
    dael_engine* engine = (dael_engine*)&engine;
    dael_engine_options options = {.struct_size = 0, .backend = "reference"};
    REFUSED(dael_engine_open(&options, &engine), DAEL_INVALID_ARGUMENT, "struct_size");
    EXPECT(engine == NULL);
    options.struct_size = 1 << 20;
    REFUSED(dael_engine_open(&options, &engine), DAEL_INVALID_ARGUMENT, "dael_engine_options");

    /* An older one, that knows the backend alone: what follows is not looked at. */
    options.struct_size = offsetof(dael_engine_options, form);
    options.form = "no such form";
    options.threads = -1;
    EXPECT(dael_engine_open(&options, &engine) == DAEL_OK);
    dael_engine_close(engine);
    options.struct_size = sizeof options;
    EXPECT(dael_engine_open(&options, &engine) != DAEL_OK);
    EXPECT(engine == NULL);

    /* A newer one is taken as long as it asks for nothing new. */
    struct later_options later = {.known = {.struct_size = sizeof later, .backend = "reference"}};
    EXPECT(dael_engine_open(&later.known, &engine) == DAEL_OK);
    dael_engine_close(engine);
    later.another = 1;
    REFUSED(dael_engine_open(&later.known, &engine), DAEL_UNSUPPORTED, "does not know");
    EXPECT(engine == NULL);

    /* None at all are all defaults. */
    EXPECT(dael_engine_open(NULL, &engine) == DAEL_OK);
    dael_engine_close(engine);
}

static void choices(void) {
    dael_engine* engine = NULL;
    dael_engine_options options = {.struct_size = sizeof options, .backend = "abacus"};
    REFUSED(dael_engine_open(&options, &engine), DAEL_UNKNOWN_BACKEND, "abacus");
    options.backend = "openssl";
    options.threads = -1;
    EXPECT(dael_engine_open(&options, &engine) == DAEL_INVALID_ARGUMENT);
    REFUSED(dael_engine_open(&options, NULL), DAEL_INVALID_ARGUMENT, "engine is null");
    options = (dael_engine_options){.struct_size = sizeof options,
                                    .backend = "auto",
                                    .threads = 2,
                                    .uncalibrated = 1,
                                    .chunk = 1 << 20};
    EXPECT(dael_engine_open(&options, &engine) == DAEL_OK);
    dael_engine_close(engine);
}

void base_tests(void) {
    EXPECT(dael_abi_version() == DAEL_ABI_VERSION);
    EXPECT(strchr(dael_version(), '.') != NULL);
    for (int status = DAEL_OK; status <= DAEL_AUTHENTICATION; ++status)
        EXPECT(dael_strerror(status)[0] != 0);
    EXPECT(strcmp(dael_strerror(99), "unknown status") == 0);
    EXPECT(strcmp(dael_strerror(-1), "unknown status") == 0);

    /* A message that does not fit is cut, and still ends. */
    char* const name = malloc(5000);
    if (!name) return;
    memset(name, 'x', 4999);
    name[4999] = 0;
    dael_engine* engine = NULL;
    const dael_engine_options options = {.struct_size = sizeof options, .backend = name};
    EXPECT(dael_engine_open(&options, &engine) == DAEL_UNKNOWN_BACKEND);
    EXPECT(strlen(dael_last_error()) <= 1000);
    free(name);

    uint8_t secret[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    dael_wipe(secret, 4);
    EXPECT(equals_hex(secret, "0000000005060708"));
    dael_wipe(NULL, 0);
    void* const memory = dael_pinned_alloc(100);
    EXPECT(memory != NULL);
    if (memory) memset(memory, 1, 100);
    dael_pinned_free(memory);
    dael_pinned_free(NULL);
    dael_engine_close(NULL);

    sizes_of_options();
    choices();
}
