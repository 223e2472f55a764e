// SPDX-License-Identifier: Apache-2.0
// OpenCL: for callers with a context, buffers and queues of their own. OpenCL names memory by
// handles and the engine by addresses, so a buffer is adopted: it gets an address, which stands for
// it in every call that takes a DeviceIn or DeviceOut, and to which offsets may be added. The
// address is the engine's own; reading it on the host is a fault.
//
// Limits: in-order queues only. An engine takes the buffers of one context, its own (native()) or
// the caller's (open()). One buffer under two addresses (a buffer and a sub-buffer of it, say) is
// two buffers to the engine, which tells work in place, and overlaps, by address.
//
// Any number of threads may call these at once. No header of OpenCL is needed here: cl_mem is
// another name of `_cl_mem*`, and so on.
#pragma once

#include <cstddef>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>

struct _cl_context;
struct _cl_device_id;
struct _cl_command_queue;
struct _cl_mem;

namespace dael::opencl {

// An engine on the caller's device and context, which it retains. `options.backend` is left empty
// or "opencl"; the others mean what they mean to Engine::open(). Errors: as there;
// invalid_argument for null handles, or a device that is not the context's; backend_absent for a
// build or a machine without OpenCL.
DAEL_API Result<Engine> open(_cl_context* context, _cl_device_id* device,
                             EngineOptions options = {});

// What an engine on one OpenCL device works with. Its own: valid as long as it is, to be retained
// by who keeps them longer.
struct Native {
    _cl_context* context = nullptr;  // buffers to be adopted are made in it
    _cl_device_id* device = nullptr;
    _cl_command_queue* queue = nullptr;  // in-order; what a Stream of null stands for
};
// Errors here and below: unsupported, for an engine that is not on one OpenCL device: one for "cpu"
// or "cuda", or one for "auto" that has other devices or none.
DAEL_API Result<Native> native(Engine& engine);

// All bytes of a buffer of the engine's context. The engine retains it until forget(), or its own
// end, and so does a batch that was prepared with it; what the caller does to its content is
// ordered by the queues, as between any two kernels. Errors: invalid_argument for a buffer of
// another context, one that is adopted already, or one over host memory (CL_MEM_USE_HOST_PTR) that
// does not begin at a multiple of 16; out_of_memory.
DAEL_API Result<DeviceOut> adopt(Engine& engine, _cl_mem* buffer);

// Shared virtual memory (clSVMAlloc) of `size` bytes, which keeps its address and stays the
// caller's to free, after forget(). Coarse-grained memory must not be mapped while the engine works
// on it. Errors: unsupported for a device without; invalid_argument for memory that does not begin
// at a multiple of 16, or overlaps what is known.
DAEL_API Result<DeviceOut> adopt_shared(Engine& engine, void* memory, std::size_t size);

// Ends an adoption; takes what adopt() or adopt_shared() gave. Work that has been launched is not
// disturbed in a buffer; wait for it before shared memory is freed. Errors: invalid_argument.
DAEL_API Result<> forget(Engine& engine, DeviceIn memory);

// The caller's queue, for calls that take a Stream. It is not retained by the Stream: it must
// outlive the calls. The engine itself keeps a queue on which it has worked, and up to some MiB of
// device memory for it. Errors: invalid_argument for a queue of another context or device, or one
// that is out of order.
DAEL_API Result<Stream> stream(Engine& engine, _cl_command_queue* queue);

}  // namespace dael::opencl
