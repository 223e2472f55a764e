/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is to compute with, and how a job would be done. Nothing here touches data or keys.
 * Include daelstrom.h, which says what holds for every call: errors, who owns what, threads,
 * fork().
 */
#ifndef DAELSTROM_DAELSTROM_PLAN_H
#define DAELSTROM_DAELSTROM_PLAN_H

#include <daelstrom/daelstrom_engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A backend that daelstrom knows, with what this machine has of it. */
typedef struct dael_backend {
    size_t struct_size;      /* as this library has it; nothing beyond is there */
    const char* name;        /* "cuda:0" */
    const char* description; /* what there is of it here; "" when absent */
    const char* summary;     /* one line on what the backend is */
    const char* missing;     /* what is missing when absent; "" when present */
    int32_t present;         /* 1 or 0 */
    int32_t unused;          /* 0 */
} dael_backend;
/* Calls `visit` for each, on the calling thread; `backend` and its strings are valid during that
 * call only. `context` is handed through. Asks drivers, so it may take a second. */
DAEL_API dael_status dael_list_backends(void (*visit)(void* context, const dael_backend* backend),
                                        void* context);

/* The backends that an engine has in use: the forced one; under "auto" the host's, and each device
 * once a job, or dael_explain(), has had a need of it. Starts nothing. `name` is valid during the
 * call only. */
DAEL_API dael_status dael_engine_backends(const dael_engine* engine,
                                          void (*visit)(void* context, const char* name),
                                          void* context);

typedef enum dael_from { DAEL_FROM_HOST = 0, DAEL_FROM_PINNED = 1, DAEL_FROM_DEVICE = 2 } dael_from;

/* A job in outline. */
typedef struct dael_job {
    size_t struct_size; /* sizeof(dael_job) */
    dael_cipher cipher;
    int32_t key_bits; /* 128, 192 or 256 */
    int32_t from;     /* dael_from: where the data lies */
    uint64_t size;    /* of one message */
    uint64_t messages;
} dael_job;

/* One way to do a job, with the planner's prediction. */
typedef struct dael_option {
    size_t struct_size;  /* as this library has it; nothing beyond is there */
    const char* backend; /* "cuda:0" */
    const char* why;     /* one sentence */
    int32_t threads;
    int32_t possible;            /* 0: `why` says what stands against it */
    int32_t measured;            /* 1: from this machine's calibration; 0: from built-in figures */
    int32_t unused;              /* 0 */
    uint64_t chunk;              /* bytes; 0 where nothing is cut */
    double gigabytes_per_second; /* predicted, payload counted once */
    double setup_seconds;        /* predicted fixed cost of the call */
    double seconds;              /* predicted in all */
} dael_option;

/* What an engine would do with a job and why, best first, the impossible last. The handle owns its
 * options and strings, needs no engine, and never changes. */
typedef struct dael_plan dael_plan;
/* `job` may go when it returns. Errors: DAEL_INVALID_ARGUMENT, DAEL_OUT_OF_MEMORY. */
DAEL_API dael_status dael_explain(const dael_engine* engine, const dael_job* job, dael_plan** plan);
/* In words, with the figures; valid as long as the plan. Null: "". */
DAEL_API const char* dael_plan_summary(const dael_plan* plan);
DAEL_API size_t dael_plan_count(const dael_plan* plan);
/* Valid as long as the plan; null where there is none. */
DAEL_API const dael_option* dael_plan_option(const dael_plan* plan, size_t index);
DAEL_API void dael_plan_free(dael_plan* plan);

/* Measures every backend here, some seconds, with a GPU up to 20, and stores the result for "auto"
 * and dael_explain of engines that are opened later. `progress`, which may be null, is called on
 * the calling thread with what is being measured (valid during that call) and how much is done, 0
 * to 1. Errors: DAEL_IO, DAEL_OUT_OF_MEMORY, and those of the host's backends; a device that fails
 * is left out. */
DAEL_API dael_status dael_calibrate(void (*progress)(void* context, const char* what, double done),
                                    void* context);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_PLAN_H */
