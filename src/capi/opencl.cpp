// SPDX-License-Identifier: Apache-2.0
// The caller's own OpenCL objects, for C.
#include <daelstrom/daelstrom_opencl.h>
#include <daelstrom/opencl.hpp>

#include <new>

#include "capi/shared.hpp"

using dael::Result;
using namespace dael::capi;

extern "C" {

dael_status dael_opencl_open(struct _cl_context* context, struct _cl_device_id* device,
                             const dael_engine_options* options, dael_engine** engine) {
    return hand_out(engine, "engine", [&]() -> Result<dael_engine*> {
        DAEL_LET(chosen, engine_options(options));
        DAEL_LET(opened, dael::opencl::open(context, device, std::move(chosen)));
        return new dael_engine{std::move(opened)};
    });
}

dael_status dael_opencl_native(dael_engine* engine, struct _cl_context** context,
                               struct _cl_device_id** device, struct _cl_command_queue** queue) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}}));
        DAEL_LET(native, dael::opencl::native(engine->engine));
        if (context) *context = native.context;
        if (device) *device = native.device;
        if (queue) *queue = native.queue;
        return {};
    });
}

dael_status dael_opencl_adopt(dael_engine* engine, struct _cl_mem* buffer, void** memory,
                              size_t* size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{memory, "memory"}}));
        *memory = nullptr;
        DAEL_TRY(given({{engine, "engine"}, {buffer, "buffer"}}));
        DAEL_LET(adopted, dael::opencl::adopt(engine->engine, buffer));
        *memory = adopted.data;
        if (size) *size = adopted.size;
        return {};
    });
}
dael_status dael_opencl_adopt_shared(dael_engine* engine, void* memory, size_t size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {memory, "memory"}}));
        DAEL_TRY(dael::opencl::adopt_shared(engine->engine, memory, size));
        return {};
    });
}
dael_status dael_opencl_forget(dael_engine* engine, const void* memory) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {memory, "memory"}}));
        return dael::opencl::forget(engine->engine, {memory, 0});
    });
}
dael_status dael_opencl_stream(dael_engine* engine, struct _cl_command_queue* queue,
                               void** stream) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{stream, "stream"}}));
        *stream = nullptr;
        DAEL_TRY(given({{engine, "engine"}, {queue, "queue"}}));
        DAEL_LET(adopted, dael::opencl::stream(engine->engine, queue));
        *stream = adopted.handle;
        return {};
    });
}

}  // extern "C"
