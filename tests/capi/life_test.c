/* SPDX-License-Identifier: Apache-2.0
 * Handles freed in any order, threads that share and are cancelled, fork(), and no memory. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capi.h"

/* Sanitizers need the address space that a test takes away. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef SANITIZED
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

struct objects {
    dael_engine* engine;
    dael_key* key;
    dael_key_set* set;
    dael_pieces* pieces;
};

/* The objects are freed one after another, in the order of the digits; each that is left works. */
static void free_in_order(const char* backend, const char* order) {
    uint8_t data[16] = {0}, start[16] = {0};
    struct objects o = {.engine = engine_on(backend), .key = key_of(KEY)};
    const dael_key* const keys[1] = {o.key};
    EXPECT(dael_key_set_make(o.engine, keys, 1, &o.set) == DAEL_OK);
    EXPECT(dael_begin(o.engine, &kCtr, o.key, start, &o.pieces) == DAEL_OK);
    for (; *order; ++order) {
        if (*order == '0') dael_engine_close(o.engine), o.engine = NULL;
        if (*order == '1') dael_key_free(o.key), o.key = NULL;
        if (*order == '2') dael_key_set_free(o.set), o.set = NULL;
        if (*order == '3') dael_pieces_free(o.pieces), o.pieces = NULL;
        if (o.key) EXPECT(dael_key_bits(o.key) == 128);
        if (o.set) EXPECT(dael_key_set_bits(o.set, 0) == 128);
        if (o.set && o.key) EXPECT(dael_key_set_replace(o.set, 0, o.key, NULL) == DAEL_OK);
        if (o.pieces) EXPECT(dael_pieces_update(o.pieces, data, 5, data, 16, NULL) == DAEL_OK);
    }
}

/* A set of an engine that was closed is not taken for one of another, wherever that may lie. */
static void set_of_another(const char* backend) {
    uint8_t data[16] = {0};
    int32_t code = 0;
    dael_message message = {.in = data, .out = data, .size = 16};
    dael_key* const key = key_of(KEY);
    const dael_key* const keys[1] = {key};
    dael_key_set* set = NULL;
    dael_engine* engine = engine_on(backend);
    EXPECT(dael_key_set_make(engine, keys, 1, &set) == DAEL_OK);
    dael_engine_close(engine);
    engine = engine_on(backend);
    EXPECT(dael_run_batch(engine, &kCtr, set, &message, 1, &code, NULL) == DAEL_INVALID_ARGUMENT);
    dael_engine_close(engine);
    dael_key_set_free(set);
    dael_key_free(key);
}

struct shared {
    dael_engine* engine;
    dael_key* key;
    int wrong;
};

static void* work(void* argument) {
    struct shared* const shared = argument;
    uint8_t plain[64], out[64];
    from_hex(PLAIN, plain);
    for (int i = 0; i < 500; ++i) {
        dael_message message = {.in = plain, .out = out, .size = 64};
        from_hex(COUNTER, message.start);
        if (dael_run(shared->engine, &kCtr, shared->key, &message, NULL) != DAEL_OK ||
            !equals_hex(out, kKnown[4].cipher))
            __atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED);
        message.size = 1u << 30; /* each thread has the words of its own errors */
        message.in = NULL;
        const dael_cipher ecb = {DAEL_ECB, DAEL_ENCRYPT, 0, 0, 0};
        if (dael_run(shared->engine, &ecb, shared->key, &message, NULL) == DAEL_OK ||
            !strstr(dael_last_error(), "null"))
            __atomic_fetch_add(&shared->wrong, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void threads(struct shared* shared) {
    pthread_t ids[4];
    for (int i = 0; i < 4; ++i) EXPECT(pthread_create(&ids[i], NULL, work, shared) == 0);
    for (int i = 0; i < 4; ++i) EXPECT(pthread_join(ids[i], NULL) == 0);
    EXPECT(shared->wrong == 0);
}

static void leave(void* context, const char* name) {
    (void)name;
    *(int*)context = 1;
    pthread_exit(context);
}
static void* leaves(void* argument) {
    struct shared* const shared = argument;
    static int left = 0;
    dael_engine_backends(shared->engine, leave, &left);
    return NULL; /* never */
}
static void* is_cancelled(void* argument) {
    struct shared* const shared = argument;
    for (;;) {
        dael_key* copy = NULL;
        if (dael_key_duplicate(shared->key, &copy) != DAEL_OK) return NULL;
        dael_key_free(copy);
        pthread_testcancel();
    }
}

/* A thread that leaves in a callback, or is cancelled, takes nothing with it. */
static void cancelled(struct shared* shared) {
    pthread_t id;
    void* result = NULL;
    EXPECT(pthread_create(&id, NULL, leaves, shared) == 0);
    EXPECT(pthread_join(id, &result) == 0 && result != NULL);
    EXPECT(pthread_create(&id, NULL, is_cancelled, shared) == 0);
    EXPECT(pthread_cancel(id) == 0);
    EXPECT(pthread_join(id, &result) == 0 && result == PTHREAD_CANCELED);
    shared->wrong = 0;
    work(shared);
    EXPECT(shared->wrong == 0);
}

/* The child of a fork() goes on with the engine, and frees it. */
static void forked(struct shared* shared) {
    const pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        shared->wrong = 0;
        work(shared);
        dael_engine_close(shared->engine);
        dael_key_free(shared->key);
        _exit(shared->wrong != 0);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* In a child, which gets no memory any more: an error that has its words. */
static void no_memory(struct shared* shared) {
    enum { kMany = 4000000 };
    const dael_key** const keys = malloc(kMany * sizeof *keys);
    if (SANITIZED || !keys) {
        free(keys);
        return;
    }
    for (int i = 0; i < kMany; ++i) keys[i] = shared->key;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {1, 1};
        dael_key_set* set = NULL;
        if (setrlimit(RLIMIT_AS, &none) != 0) _exit(1);
        if (dael_key_set_make(shared->engine, keys, kMany, &set) != DAEL_OUT_OF_MEMORY) _exit(2);
        if (set || dael_last_error()[0] == 0) _exit(3);
        _exit(0);
    }
    int status = 1;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
    EXPECT(WEXITSTATUS(status) == 0);
    free(keys);
}

void life_tests(const char* backend) {
    static const char* const orders[] = {"0123", "3210", "1032", "2301", "0321", "1230"};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; ++i) free_in_order(backend, orders[i]);
    set_of_another(backend);
    struct shared shared = {.engine = engine_on(backend), .key = key_of(KEY)};
    threads(&shared);
    cancelled(&shared);
    forked(&shared);
    no_memory(&shared);
    dael_engine_close(shared.engine);
    dael_key_free(shared.key);
}
