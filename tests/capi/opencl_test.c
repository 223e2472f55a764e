/* SPDX-License-Identifier: Apache-2.0
 * OpenCL's own objects from C. The driver is loaded at run time, as the library does it. */
#include <daelstrom/daelstrom_opencl.h>
#include <dlfcn.h>

#include "capi.h"

typedef struct _cl_mem* create_buffer(struct _cl_context*, uint64_t flags, size_t size, void* host,
                                      int32_t* status);
typedef int32_t release_buffer(struct _cl_mem*);

static void misuse(dael_engine* engine) {
    void* memory = &memory;
    struct _cl_context* context = NULL;
    dael_engine* none = (dael_engine*)(void*)&none;
    EXPECT(dael_opencl_open(NULL, NULL, NULL, &none) != DAEL_OK);
    EXPECT(none == NULL);
    EXPECT(dael_opencl_native(NULL, NULL, NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_opencl_adopt(engine, NULL, &memory, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(memory == NULL);
    EXPECT(dael_opencl_adopt_shared(engine, NULL, 16) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_opencl_forget(engine, &memory) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_opencl_stream(engine, NULL, &memory) == DAEL_INVALID_ARGUMENT);
    dael_engine* const host = engine_on("openssl");
    EXPECT(dael_opencl_native(host, &context, NULL, NULL) == DAEL_UNSUPPORTED && !context);
    EXPECT(dael_opencl_forget(host, &memory) == DAEL_UNSUPPORTED);
    dael_engine_close(host);
}

/* A buffer of the caller's, in the order of a queue of the caller's. */
static void in_a_buffer(dael_engine* engine, dael_device* device, struct _cl_mem* buffer,
                        void* stream) {
    uint8_t plain[64], out[64] = {0};
    void *memory = NULL, *again = &again;
    size_t size = 0;
    dael_key* const key = key_of(KEY);
    from_hex(PLAIN, plain);
    EXPECT(dael_opencl_adopt(engine, buffer, &memory, &size) == DAEL_OK);
    EXPECT(size == 4096 && dael_device_owns(device, memory));
    EXPECT(dael_opencl_adopt(engine, buffer, &again, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(again == NULL);
    uint8_t* const at = (uint8_t*)memory + 64; /* any part of it can be named */
    dael_message message = {.in = at, .out = at, .size = 64};
    from_hex(COUNTER, message.start);
    EXPECT(dael_device_copy_in(device, at, plain, 64, stream) == DAEL_OK);
    EXPECT(dael_run_device(engine, &kCtr, key, &message, stream, NULL) == DAEL_OK);
    EXPECT(dael_device_copy_out(device, out, at, 64, stream) == DAEL_OK);
    EXPECT(dael_stream_wait(device, stream) == DAEL_OK);
    EXPECT(equals_hex(out, kKnown[4].cipher));
    EXPECT(dael_opencl_forget(engine, memory) == DAEL_OK);
    EXPECT(dael_opencl_forget(engine, memory) == DAEL_INVALID_ARGUMENT);
    dael_key_free(key);
}

void opencl_tests(dael_engine* engine, dael_device* device) {
    int32_t status = 0;
    void* stream = NULL;
    struct _cl_context* context = NULL;
    struct _cl_device_id* id = NULL;
    struct _cl_command_queue* queue = NULL;
    dael_engine* second = NULL;
    misuse(engine);
    EXPECT(dael_opencl_native(engine, NULL, NULL, NULL) == DAEL_OK);
    EXPECT(dael_opencl_native(engine, &context, &id, &queue) == DAEL_OK && context && id && queue);
    EXPECT(dael_opencl_open(context, id, NULL, &second) == DAEL_OK);
    dael_engine_close(second);
    EXPECT(dael_opencl_stream(engine, queue, &stream) == DAEL_OK);

    void* const driver = dlopen("libOpenCL.so.1", RTLD_NOW);
    create_buffer* create = NULL;
    release_buffer* release = NULL;
    EXPECT(driver != NULL);
    if (!driver) return;
    *(void**)&create = dlsym(driver, "clCreateBuffer");
    *(void**)&release = dlsym(driver, "clReleaseMemObject");
    struct _cl_mem* const buffer = create(context, 1 /* read and write */, 4096, NULL, &status);
    EXPECT(buffer && status == 0);
    if (buffer) in_a_buffer(engine, device, buffer, stream);
    if (buffer) release(buffer);
    dlclose(driver);
}
