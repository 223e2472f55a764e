/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of an engine's device and the order of work there, the same for every kind of device:
 * for programs that have no framework of their own to allocate and copy with. Include daelstrom.h,
 * which says what holds for every call: errors, who owns what, threads, fork().
 *
 * Everything but allocation and the waits is asynchronous and ordered by streams. Memory, streams
 * and events are the caller's to give back, to the device that they came from and before its handle
 * goes; after the work that uses them. Errors name the driver call that failed (DAEL_DEVICE), or
 * DAEL_OUT_OF_MEMORY; a failed call leaves the process and other devices usable. In a child of
 * fork() nothing here works; the handle may be freed.
 */
#ifndef DAELSTROM_DAELSTROM_DEVICE_H
#define DAELSTROM_DAELSTROM_DEVICE_H

#include <daelstrom/daelstrom_engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dael_device dael_device;

/* The device of an engine that was opened on one, or the one, of an engine for "auto", that holds
 * `memory` (null: its first). Keeps the engine alive. Errors: DAEL_UNSUPPORTED for an engine on a
 * host backend; DAEL_BACKEND_ABSENT; DAEL_INVALID_ARGUMENT for memory of no device. */
DAEL_API dael_status dael_device_of(dael_engine* engine, const void* memory, dael_device** device);
DAEL_API void dael_device_free(dael_device* device);

typedef struct dael_device_info {
    size_t struct_size;       /* as this library has it; nothing beyond is there */
    const char* backend;      /* "cuda:0" */
    const char* name;         /* "NVIDIA H200" */
    const char* architecture; /* "sm_90" */
    const char* driver;       /* driver and runtime: "580.82, CUDA 13.0" */
    const char* layout;       /* of the tables that kernels use: "128 KiB" */
    uint64_t memory;          /* bytes in all */
    int32_t multiprocessors;
    int32_t shared_memory; /* 1: memory of the host can be adopted (OpenCL's SVM) */
    int32_t reads_lists;   /* 1: lists of messages may lie in device memory */
    int32_t unused;        /* 0 */
} dael_device_info;
/* Valid as long as the handle, with its strings. Null: null. */
DAEL_API const dael_device_info* dael_device_describe(const dael_device* device);

/* Device memory. What held secrets is wiped by you before it is released. */
DAEL_API dael_status dael_device_allocate(dael_device* device, size_t size, void** memory);
DAEL_API void dael_device_release(dael_device* device, void* memory);
/* Page-locked memory of the host, for copies at full speed. */
DAEL_API dael_status dael_device_allocate_pinned(dael_device* device, size_t size, void** memory);
DAEL_API void dael_device_release_pinned(dael_device* device, void* memory);
DAEL_API dael_status dael_device_free_memory(dael_device* device, uint64_t* bytes);
/* Whether the device can copy from all of this host memory at full speed; whether it is memory of
 * this device: 1 or 0. */
DAEL_API int dael_device_is_pinned(dael_device* device, const void* host_memory, size_t size);
DAEL_API int dael_device_owns(dael_device* device, const void* device_memory);

/* Asynchronous where the host memory is page-locked, which then must stay as it is until the stream
 * has come to the end of it. */
DAEL_API dael_status dael_device_copy_in(dael_device* device, void* device_memory,
                                         const void* host_memory, size_t size, void* stream);
DAEL_API dael_status dael_device_copy_out(dael_device* device, void* host_memory,
                                          const void* device_memory, size_t size, void* stream);
DAEL_API dael_status dael_device_copy_within(dael_device* device, void* to, const void* from,
                                             size_t size, void* stream);
DAEL_API dael_status dael_device_fill(dael_device* device, void* device_memory, uint8_t value,
                                      size_t size, void* stream);

/* `timed`: 1 for one whose events dael_event_elapsed_ms takes; with some drivers it is slower. */
DAEL_API dael_status dael_stream_create(dael_device* device, int timed, void** stream);
DAEL_API void dael_stream_destroy(dael_device* device, void* stream);
/* The calling thread waits for all that the stream has; errors of that work return here. */
DAEL_API dael_status dael_stream_wait(dael_device* device, void* stream);

/* An event marks a point of a stream. */
DAEL_API dael_status dael_event_create(dael_device* device, void** event);
DAEL_API void dael_event_destroy(dael_device* device, void* event);
DAEL_API dael_status dael_event_record(dael_device* device, void* event, void* stream);
/* Later work of the stream comes after the event; the calling thread waits for it. */
DAEL_API dael_status dael_stream_wait_event(dael_device* device, void* stream, void* event);
DAEL_API dael_status dael_event_wait(dael_device* device, void* event);
/* Both recorded and done. */
DAEL_API dael_status dael_event_elapsed_ms(dael_device* device, void* from, void* to,
                                           float* milliseconds);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_DEVICE_H */
