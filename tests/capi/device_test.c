/* SPDX-License-Identifier: Apache-2.0
 * Device memory: one message, batches, copies and streams; and engines that have no device. */
#include "capi.h"

void host_device_tests(dael_engine* engine) {
    uint8_t data[16] = {0}, tag[16];
    dael_key* const key = key_of(KEY);
    const dael_key* const keys[1] = {key};
    dael_message message = {.in = data, .out = data, .size = 16};
    dael_key_set* set = NULL;
    dael_batch* batch = (dael_batch*)(void*)data;
    dael_device* device = (dael_device*)(void*)data;
    EXPECT(dael_key_set_make(engine, keys, 1, &set) == DAEL_OK);
    EXPECT(dael_run_device(engine, &kCtr, key, &message, NULL, NULL) == DAEL_UNSUPPORTED);
    EXPECT(dael_ctr_crypt_device(engine, key, data, 0, data, data, 16, NULL, NULL) ==
           DAEL_UNSUPPORTED);
    EXPECT(dael_prepare(engine, &kCtr, set, &message, 1, NULL, &batch) == DAEL_UNSUPPORTED);
    EXPECT(batch == NULL);
    EXPECT(dael_device_of(engine, NULL, &device) == DAEL_UNSUPPORTED);
    EXPECT(device == NULL);

    EXPECT(dael_run_device(engine, &kCtr, key, NULL, NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_run_device(NULL, &kCtr, key, &message, NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_prepare(engine, &kCtr, NULL, &message, 1, NULL, &batch) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_prepare(engine, &kCtr, set, NULL, 1, NULL, &batch) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_prepare(engine, &kCtr, set, &message, 1, NULL, NULL) == DAEL_INVALID_ARGUMENT);
    dael_prepare_options options = {.struct_size = sizeof options, .place = 2};
    REFUSED(dael_prepare(engine, &kCtr, set, &message, 1, &options, &batch), DAEL_INVALID_ARGUMENT,
            "place");
    options.place = DAEL_PLACE_HOST;
    options.longest = 5;
    REFUSED(dael_prepare(engine, &kCtr, set, &message, 1, &options, &batch), DAEL_INVALID_ARGUMENT,
            "in device memory");
    options.struct_size = 3;
    REFUSED(dael_prepare(engine, &kCtr, set, &message, 1, &options, &batch), DAEL_INVALID_ARGUMENT,
            "dael_prepare_options");
    EXPECT(dael_launch(engine, NULL, NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_launch_messages(engine, &kSeal, set, &message, 1, NULL, NULL, NULL) ==
           DAEL_INVALID_ARGUMENT); /* it has no tag */
    message.tag = tag;
    EXPECT(dael_launch_messages(engine, &kSeal, set, &message, 1, NULL, NULL, NULL) ==
           DAEL_UNSUPPORTED);
    EXPECT(dael_launch_messages(engine, &kSeal, NULL, &message, 1, NULL, NULL, NULL) ==
           DAEL_INVALID_ARGUMENT);
    EXPECT(dael_launch_messages(engine, &kSeal, set, NULL, 1, NULL, NULL, NULL) ==
           DAEL_INVALID_ARGUMENT);
    options = (dael_prepare_options){.struct_size = sizeof options, .unused = 1};
    REFUSED(dael_prepare(engine, &kSeal, set, &message, 1, &options, &batch), DAEL_UNSUPPORTED,
            "unused");
    dael_launch_options launch_options = {.struct_size = sizeof launch_options, .unused = 1};
    REFUSED(dael_launch_messages(engine, &kSeal, set, &message, 1, NULL, &launch_options, NULL),
            DAEL_UNSUPPORTED, "unused");
    launch_options = (dael_launch_options){.struct_size = 3};
    REFUSED(dael_launch_messages(engine, &kSeal, set, &message, 1, NULL, &launch_options, NULL),
            DAEL_INVALID_ARGUMENT, "dael_launch_options");
    EXPECT(dael_results(NULL, NULL, NULL, 0) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_batch_codes(NULL) == NULL);
    dael_batch_free(NULL);

    void* memory = data;
    EXPECT(dael_device_of(NULL, NULL, &device) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_device_describe(NULL) == NULL);
    EXPECT(dael_device_allocate(NULL, 16, &memory) == DAEL_INVALID_ARGUMENT && memory == NULL);
    EXPECT(dael_stream_create(NULL, 0, &memory) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_event_create(NULL, &memory) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_device_copy_in(NULL, data, data, 1, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_stream_wait(NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(!dael_device_owns(NULL, data) && !dael_device_is_pinned(NULL, data, 16));
    dael_device_release(NULL, NULL);
    dael_device_release_pinned(NULL, NULL);
    dael_stream_destroy(NULL, NULL);
    dael_event_destroy(NULL, NULL);
    dael_device_free(NULL);
    dael_key_set_free(set);
    dael_key_free(key);
}

struct place {
    dael_engine* engine;
    dael_device* device;
    void *stream, *memory; /* a page of the device's */
};

static void copies(struct place* p) {
    uint8_t out[64] = {0};
    void *event = NULL, *later = NULL, *pinned = NULL, *timed = NULL;
    float milliseconds = -1;
    uint64_t bytes = 0;
    const dael_device_info* const info = dael_device_describe(p->device);
    EXPECT(info && info->struct_size == sizeof *info && info->name[0] && info->memory != 0);
    EXPECT(strncmp(info->backend, "cuda:", 5) == 0 || strncmp(info->backend, "opencl:", 7) == 0);
    printf("%s, %s, driver %s\n", info->name, info->architecture, info->driver);
    EXPECT(dael_device_free_memory(p->device, &bytes) == DAEL_OK && bytes != 0);
    EXPECT(dael_device_owns(p->device, p->memory) && !dael_device_owns(p->device, out));
    EXPECT(dael_device_allocate_pinned(p->device, 64, &pinned) == DAEL_OK);
    EXPECT(dael_device_is_pinned(p->device, pinned, 64));
    if (pinned) memset(pinned, 7, 64);

    uint8_t* const at = p->memory;
    EXPECT(dael_device_copy_in(p->device, at, pinned, 64, p->stream) == DAEL_OK);
    EXPECT(dael_device_fill(p->device, at + 8, 9, 8, p->stream) == DAEL_OK);
    EXPECT(dael_device_copy_within(p->device, at + 64, at, 64, p->stream) == DAEL_OK);
    EXPECT(dael_device_copy_out(p->device, out, at + 64, 64, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    EXPECT(out[7] == 7 && out[8] == 9 && out[15] == 9 && out[16] == 7);
    EXPECT(dael_device_copy_in(p->device, NULL, out, 1, p->stream) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_device_copy_in(p->device, NULL, NULL, 0, p->stream) == DAEL_OK);

    EXPECT(dael_stream_create(p->device, 1, &timed) == DAEL_OK);
    EXPECT(dael_event_create(p->device, &event) == DAEL_OK);
    EXPECT(dael_event_create(p->device, &later) == DAEL_OK);
    EXPECT(dael_event_record(p->device, event, timed) == DAEL_OK);
    EXPECT(dael_stream_wait_event(p->device, p->stream, event) == DAEL_OK);
    EXPECT(dael_device_fill(p->device, at, 1, 4096, timed) == DAEL_OK);
    EXPECT(dael_event_record(p->device, later, timed) == DAEL_OK);
    EXPECT(dael_event_wait(p->device, later) == DAEL_OK);
    EXPECT(dael_event_elapsed_ms(p->device, event, later, &milliseconds) == DAEL_OK);
    EXPECT(milliseconds >= 0);
    EXPECT(dael_event_record(p->device, NULL, timed) == DAEL_INVALID_ARGUMENT);
    dael_event_destroy(p->device, event);
    dael_event_destroy(p->device, later);
    dael_stream_destroy(p->device, timed);
    dael_device_release_pinned(p->device, pinned);
}

static void one_message(struct place* p, const dael_key* key) {
    uint8_t plain[64], out[64];
    dael_ran ran;
    from_hex(PLAIN, plain);
    dael_message message = {.in = p->memory, .out = p->memory, .size = 64};
    from_hex(COUNTER, message.start);
    EXPECT(dael_device_copy_in(p->device, p->memory, plain, 64, p->stream) == DAEL_OK);
    EXPECT(dael_run_device(p->engine, &kCtr, key, &message, p->stream, &ran) == DAEL_OK);
    EXPECT(ran.backend[0] != 0);
    EXPECT(dael_device_copy_out(p->device, out, p->memory, 64, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    EXPECT(equals_hex(out, kKnown[4].cipher));
    EXPECT(dael_ctr_crypt_device(p->engine, key, message.start, 0, p->memory, p->memory, 64,
                                 p->stream, NULL) == DAEL_OK);
    EXPECT(dael_device_copy_out(p->device, out, p->memory, 64, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    EXPECT(memcmp(out, plain, 64) == 0);
    EXPECT(dael_run_device(p->engine, &kSeal, key, &message, p->stream, NULL) != DAEL_OK);
}

/* Data at 0, AAD at 256, tags at 512, nonces at 1024, the list at 2048. */
enum { kAad = 256, kTags = 512, kNonces = 1024, kNumber = 1280, kList = 2048 };

static void batches(struct place* p) {
    uint8_t bytes[4096] = {0}, nonce[12];
    uint8_t* const at = p->memory;
    int32_t codes[2] = {-1, -1};
    dael_key* const key = key_of(GCM_KEY);
    const dael_key* const keys[1] = {key};
    dael_key_set* set = NULL;
    dael_batch *seal = NULL, *open = NULL, *counted = NULL;
    dael_message messages[2];
    from_hex(GCM_PLAIN, bytes);
    from_hex(GCM_AAD, bytes + kAad);
    from_hex(GCM_NONCE, nonce);
    EXPECT(dael_key_set_make(p->engine, keys, 1, &set) == DAEL_OK);
    for (int i = 0; i < 2; ++i) {
        messages[i] = (dael_message){.in = at,
                                     .out = at + 64 * (i + 1),
                                     .size = GCM_SIZE,
                                     .aad = at + kAad,
                                     .aad_size = 20,
                                     .tag = at + kTags + 16 * i};
        EXPECT(dael_gcm_start(nonce, messages[i].start) == DAEL_OK);
        nonce[0] ^= 1;
    }
    EXPECT(dael_device_copy_in(p->device, at, bytes, sizeof bytes, p->stream) == DAEL_OK);
    EXPECT(dael_prepare(p->engine, &kSeal, set, messages, 2, NULL, &seal) == DAEL_OK);
    EXPECT(dael_launch(p->engine, seal, p->stream, NULL) == DAEL_OK);
    EXPECT(dael_launch(p->engine, seal, p->stream, NULL) == DAEL_LIMIT); /* nonces again */
    EXPECT(dael_results(seal, p->stream, codes, 1) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_results(seal, p->stream, codes, 2) == DAEL_OK);
    EXPECT(codes[0] == DAEL_OK && codes[1] == DAEL_OK);
    EXPECT(dael_device_copy_out(p->device, bytes, at, sizeof bytes, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    EXPECT(equals_hex(bytes + 64, GCM_CIPHER) && equals_hex(bytes + kTags, GCM_TAG));

    /* Opened in place, the second one forged; the set and the engine's handle may go before. */
    for (int i = 0; i < 2; ++i) messages[i].in = messages[i].out;
    EXPECT(dael_prepare(p->engine, &kOpen, set, messages, 2, NULL, &open) == DAEL_OK);
    dael_key_set_free(set);
    dael_key_free(key);
    EXPECT(dael_device_fill(p->device, at + kTags + 16, 0, 1, p->stream) == DAEL_OK);
    EXPECT(dael_launch(p->engine, open, p->stream, NULL) == DAEL_OK);
    EXPECT(dael_batch_codes(open) != NULL);
    EXPECT(dael_results(open, p->stream, codes, 2) == DAEL_OK);
    EXPECT(codes[0] == DAEL_OK && codes[1] == DAEL_AUTHENTICATION);
    EXPECT(dael_device_copy_out(p->device, bytes, at, sizeof bytes, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    EXPECT(equals_hex(bytes + 64, GCM_PLAIN));
    dael_batch_free(seal);
    dael_batch_free(open);

    /* A list in device memory, of at most two messages, whose number and nonces lie there too. */
    if (!dael_device_describe(p->device)->reads_lists) return;
    dael_key* const other = key_of(GCM_KEY);
    const dael_key* const others[1] = {other};
    EXPECT(dael_key_set_make(p->engine, others, 1, &set) == DAEL_OK);
    const dael_device_nonces nonces = {.fixed = {1, 2, 3, 4}, .next = 5};
    const uint32_t number = 1;
    messages[0].in = at;
    memcpy(bytes + kNonces, &nonces, sizeof nonces);
    memcpy(bytes + kNumber, &number, sizeof number);
    memcpy(bytes + kList, messages, sizeof messages);
    EXPECT(dael_device_copy_in(p->device, at, bytes, sizeof bytes, p->stream) == DAEL_OK);
    const dael_prepare_options options = {.struct_size = sizeof options,
                                          .place = DAEL_PLACE_DEVICE,
                                          .number = (const uint32_t*)(const void*)(at + kNumber),
                                          .nonces = (dael_device_nonces*)(void*)(at + kNonces)};
    const dael_message* const list = (const dael_message*)(const void*)(at + kList);
    EXPECT(dael_prepare(p->engine, &kSeal, set, list, 2, &options, &counted) == DAEL_OK);
    EXPECT(dael_launch(p->engine, counted, p->stream, NULL) == DAEL_OK);
    EXPECT(dael_launch(p->engine, counted, p->stream, NULL) == DAEL_OK); /* other nonces */
    EXPECT(dael_results(counted, p->stream, codes, 2) == DAEL_OK && codes[0] == DAEL_OK);
    EXPECT(dael_device_copy_out(p->device, bytes, at, sizeof bytes, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    memcpy(messages, bytes + kList, sizeof messages);
    EXPECT(equals_hex(messages[0].start, "01020304000000000000000600000001"));
    dael_batch_free(counted);
    dael_key_set_free(set);
    dael_key_free(other);
}

/* A message that is known only now: its AAD comes from the host, its code goes there. */
static void launches(struct place* p) {
    uint8_t bytes[1024] = {0}, aad[20], nonce[12];
    uint8_t* const at = p->memory;
    void* pinned = NULL;
    dael_key* const key = key_of(GCM_KEY);
    const dael_key* const keys[1] = {key};
    dael_key_set* set = NULL;
    from_hex(GCM_PLAIN, bytes);
    from_hex(GCM_AAD, aad);
    from_hex(GCM_NONCE, nonce);
    dael_message message = {.in = at,
                            .out = at + 64,
                            .size = GCM_SIZE,
                            .aad = aad,
                            .aad_size = sizeof aad,
                            .tag = at + kTags};
    dael_launch_options options = {.struct_size = sizeof options, .host_aad = 1};
    EXPECT(dael_gcm_start(nonce, message.start) == DAEL_OK);
    EXPECT(dael_key_set_make(p->engine, keys, 1, &set) == DAEL_OK);
    EXPECT(dael_device_copy_in(p->device, at, bytes, sizeof bytes, p->stream) == DAEL_OK);
    if (!dael_device_describe(p->device)->reads_lists) {
        message.aad_size = 0;
        REFUSED(dael_launch_messages(p->engine, &kSeal, set, &message, 1, p->stream, NULL, NULL),
                DAEL_UNSUPPORTED, "prepare()");
        dael_key_set_free(set);
        dael_key_free(key);
        return;
    }
    EXPECT(dael_launch_messages(p->engine, &kSeal, set, &message, 1, p->stream, &options, NULL) ==
           DAEL_OK);
    EXPECT(dael_device_copy_out(p->device, bytes, at, sizeof bytes, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    EXPECT(equals_hex(bytes + 64, GCM_CIPHER) && equals_hex(bytes + kTags, GCM_TAG));

    message.in = message.out;
    REFUSED(dael_launch_messages(p->engine, &kOpen, set, &message, 1, p->stream, &options, NULL),
            DAEL_INVALID_ARGUMENT, "codes");
    EXPECT(dael_device_allocate_pinned(p->device, 4, &pinned) == DAEL_OK);
    uint32_t* const code = options.codes = pinned;
    for (int forged = 1; forged >= 0; --forged) {
        aad[7] ^= (uint8_t)forged;
        *code = DAEL_INTERNAL;
        EXPECT(dael_launch_messages(p->engine, &kOpen, set, &message, 1, p->stream, &options,
                                    NULL) == DAEL_OK);
        EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
        EXPECT(*code == (forged ? DAEL_AUTHENTICATION : DAEL_OK));
        EXPECT(dael_device_copy_out(p->device, bytes, at, sizeof bytes, p->stream) == DAEL_OK);
        EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
        EXPECT(equals_hex(bytes + 64, forged ? GCM_CIPHER : GCM_PLAIN));
        aad[7] ^= (uint8_t)forged;
    }
    dael_device_release_pinned(p->device, pinned);
    dael_key_set_free(set);
    dael_key_free(key);
}

/* A message in two parts, as if they lay on two devices: one tag. */
static void shards(struct place* p) {
    uint8_t bytes[256] = {0}, aad[20], nonce[12], tag[16];
    uint8_t* const at = p->memory;
    dael_key* const key = key_of(GCM_KEY);
    const dael_key* const keys[1] = {key};
    dael_key_set* set = NULL;
    dael_ran ran;
    from_hex(GCM_PLAIN, bytes);
    from_hex(GCM_AAD, aad);
    from_hex(GCM_NONCE, nonce);
    dael_message message = {.aad = aad, .aad_size = sizeof aad, .tag = tag};
    const dael_shard parts[2] = {{at, at + 128, 32, p->stream},
                                 {at + 32, at + 160, GCM_SIZE - 32, p->stream}};
    EXPECT(dael_gcm_start(nonce, message.start) == DAEL_OK);
    EXPECT(dael_key_set_make(p->engine, keys, 1, &set) == DAEL_OK);
    EXPECT(dael_device_copy_in(p->device, at, bytes, sizeof bytes, p->stream) == DAEL_OK);
    EXPECT(dael_run_shards(p->engine, &kSeal, set, &message, parts, 2, &ran) == DAEL_OK);
    EXPECT(ran.backend[0] != 0 && equals_hex(tag, GCM_TAG));
    EXPECT(dael_device_copy_out(p->device, bytes, at, sizeof bytes, p->stream) == DAEL_OK);
    EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
    EXPECT(equals_hex(bytes + 128, GCM_CIPHER));

    const dael_shard back[2] = {{at + 128, at + 128, 32, p->stream},
                                {at + 160, at + 160, GCM_SIZE - 32, p->stream}};
    for (int forged = 1; forged >= 0; --forged) {
        tag[3] ^= (uint8_t)forged;
        EXPECT(dael_run_shards(p->engine, &kOpen, set, &message, back, 2, NULL) ==
               (forged ? DAEL_AUTHENTICATION : DAEL_OK));
        EXPECT(dael_device_copy_out(p->device, bytes, at, sizeof bytes, p->stream) == DAEL_OK);
        EXPECT(dael_stream_wait(p->device, p->stream) == DAEL_OK);
        EXPECT(equals_hex(bytes + 128, forged ? GCM_CIPHER : GCM_PLAIN));
        tag[3] ^= (uint8_t)forged;
    }
    REFUSED(dael_run_shards(p->engine, &kSeal, set, &message, NULL, 2, NULL), DAEL_INVALID_ARGUMENT,
            "shards");
    message.size = 1;
    REFUSED(dael_run_shards(p->engine, &kSeal, set, &message, parts, 2, NULL),
            DAEL_INVALID_ARGUMENT, "no data of its own");
    EXPECT(dael_run_shards(NULL, &kSeal, set, &message, parts, 2, NULL) == DAEL_INVALID_ARGUMENT);
    dael_key_set_free(set);
    dael_key_free(key);
}

void device_tests(const char* backend) {
    const dael_engine_options options = {.struct_size = sizeof options, .backend = backend};
    struct place p = {NULL, NULL, NULL, NULL};
    dael_key* const key = key_of(KEY);
    if (dael_engine_open(&options, &p.engine) != DAEL_OK) { /* listed, but not for such as us */
        printf("%s: left out: %s\n", backend, dael_last_error());
        dael_key_free(key);
        return;
    }
    EXPECT(dael_device_of(p.engine, NULL, &p.device) == DAEL_OK);
    EXPECT(dael_device_allocate(p.device, 4096, &p.memory) == DAEL_OK);
    EXPECT(dael_stream_create(p.device, 0, &p.stream) == DAEL_OK);
    if (p.memory) {
        copies(&p);
        one_message(&p, key);
        batches(&p);
        launches(&p);
        shards(&p);
    }
    if (strncmp(backend, "opencl", 6) == 0) opencl_tests(p.engine, p.device);
    set_tests(p.engine);
    modes_tests(p.engine);
    pieces_tests(p.engine);
    /* What is sequential in a message is refused when it begins, not in its midst. */
    const dael_cipher cbc = {DAEL_CBC, DAEL_ENCRYPT, 0, 0, 0};
    const uint8_t start[16] = {0};
    dael_pieces* pieces = NULL;
    REFUSED(dael_begin(p.engine, &cbc, key, start, &pieces), DAEL_UNSUPPORTED, "sequential");
    dael_stream_destroy(p.device, p.stream);
    dael_device_release(p.device, p.memory);
    dael_engine_close(p.engine); /* the device's handle keeps it */
    EXPECT(dael_device_describe(p.device)->name[0] != 0);
    dael_device_free(p.device);
    dael_key_free(key);
    printf("%s: done, %d failures so far\n", backend, failures);
}
