/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenCL from C: for callers with a context, buffers and queues of their own. OpenCL names memory
 * by handles and the engine by addresses, so a buffer is adopted: it gets an address, which stands
 * for it in every call that takes device memory, and to which offsets may be added. The address is
 * the engine's own; reading it on the host is a fault. Include daelstrom.h, which says what holds
 * for every call: errors, who owns what, threads, fork().
 *
 * Limits: in-order queues only. An engine takes the buffers of one context, its own or the
 * caller's. One buffer under two addresses (a buffer and a sub-buffer of it, say) is two buffers to
 * the engine, which tells work in place, and overlaps, by address. No header of OpenCL is needed:
 * cl_mem is another name of `struct _cl_mem*`, and so on.
 */
#ifndef DAELSTROM_DAELSTROM_OPENCL_H
#define DAELSTROM_DAELSTROM_OPENCL_H

#include <daelstrom/daelstrom.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _cl_context;
struct _cl_device_id;
struct _cl_command_queue;
struct _cl_mem;

/* An engine on the caller's device and context, which it retains. `options->backend` is null, "" or
 * "opencl". Errors: as dael_engine_open; DAEL_INVALID_ARGUMENT for a device that is not the
 * context's. */
DAEL_API dael_status dael_opencl_open(struct _cl_context* context, struct _cl_device_id* device,
                                      const dael_engine_options* options, dael_engine** engine);

/* What an engine on one OpenCL device works with: its own, valid as long as it is, to be retained
 * by who keeps them longer. Each may be null. Errors here and below: DAEL_UNSUPPORTED for an engine
 * that is not on one OpenCL device. */
DAEL_API dael_status dael_opencl_native(dael_engine* engine, struct _cl_context** context,
                                        struct _cl_device_id** device,
                                        struct _cl_command_queue** queue);

/* All bytes of a buffer of the engine's context. The engine retains it until dael_opencl_forget(),
 * or its own end, and so does a batch that was prepared with it. *size may be null. Errors:
 * DAEL_INVALID_ARGUMENT for a buffer of another context, or one that is adopted already. */
DAEL_API dael_status dael_opencl_adopt(dael_engine* engine, struct _cl_mem* buffer, void** memory,
                                       size_t* size);
/* Shared virtual memory (clSVMAlloc), which keeps its address and stays yours to free, after
 * dael_opencl_forget(). Errors: DAEL_UNSUPPORTED for a device without; DAEL_INVALID_ARGUMENT for
 * memory that does not begin at a multiple of 16, or overlaps what is known. */
DAEL_API dael_status dael_opencl_adopt_shared(dael_engine* engine, void* memory, size_t size);
/* Ends an adoption. Work that has been launched is not disturbed in a buffer; wait for it before
 * shared memory is freed. Errors: DAEL_INVALID_ARGUMENT. */
DAEL_API dael_status dael_opencl_forget(dael_engine* engine, const void* memory);
/* The caller's queue as a stream, which does not retain it: it must outlive the calls. Errors:
 * DAEL_INVALID_ARGUMENT for a queue of another context or device, or one that is out of order. */
DAEL_API dael_status dael_opencl_stream(dael_engine* engine, struct _cl_command_queue* queue,
                                        void** stream);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_OPENCL_H */
