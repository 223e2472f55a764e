/* SPDX-License-Identifier: Apache-2.0
 * The C ABI, as a C program uses it: on every backend that this machine has. */
#include "capi.h"

struct present {
    char names[32][32];
    int count;
};
static void visit(void* context, const dael_backend* backend) {
    struct present* const present = context;
    EXPECT(backend->struct_size == sizeof *backend);
    EXPECT(backend->summary[0] != 0);
    EXPECT(backend->present ? backend->missing[0] == 0 : backend->missing[0] != 0);
    printf("%s: %s\n", backend->name, backend->present ? backend->description : backend->missing);
    if (!backend->present || present->count == 32 || strlen(backend->name) > 31) return;
    memcpy(present->names[present->count++], backend->name, strlen(backend->name) + 1);
}

static void host_tests(const char* name) {
    dael_engine* const engine = engine_on(name);
    if (!engine) return;
    engine_tests(engine);
    set_tests(engine);
    modes_tests(engine);
    pieces_tests(engine);
    if (strcmp(name, "auto") != 0) { /* which may have a device, and other backends */
        plan_tests(engine);
        host_device_tests(engine);
    }
    dael_engine_close(engine);
    life_tests(name);
    printf("%s: done, %d failures so far\n", name, failures);
}

int main(void) {
    struct present present = {.count = 0};
    EXPECT(dael_last_error()[0] == 0);
    base_tests();
    EXPECT(dael_list_backends(visit, &present) == DAEL_OK);
    EXPECT(present.count >= 2); /* reference and openssl are everywhere */
    for (int i = 0; i < present.count; ++i) {
        const char* const name = present.names[i];
        if (strncmp(name, "cuda", 4) == 0 || strncmp(name, "opencl", 6) == 0) {
            device_tests(name);
            continue;
        }
        host_tests(name);
    }
    host_tests("auto");
    return failures != 0;
}
