// SPDX-License-Identifier: Apache-2.0
// The public calls for OpenCL's own handles: each finds the engine's device and hands on.
#include <daelstrom/opencl.hpp>

#include "core/guard.hpp"
#include "pipeline/engine_state.hpp"

namespace dael::opencl {
namespace {

Result<core::Adoption*> adoption_of(Engine& engine) {
    const auto path = engine.state()->path_of(nullptr);
    if (path && (*path)->device.adoption()) return (*path)->device.adoption();
    return Error{Code::unsupported,
                 "this engine is not on one OpenCL device; open it with the backend 'opencl', or "
                 "by dael::opencl::open()"};
}

}  // namespace

Result<Engine> open(_cl_context* context, _cl_device_id* device, EngineOptions options) {
    return core::guarded([&]() -> Result<Engine> {
        if (options.backend.empty()) options.backend = "opencl";
        if (options.backend != "opencl")
            return Error{Code::invalid_argument, "backend '" + options.backend +
                                                     "' takes no context of OpenCL; leave it "
                                                     "empty, or name 'opencl'"};
        if (!context || !device)
            return Error{Code::invalid_argument,
                         "opencl: the context or the device is null; give both"};
        return pipeline::open_engine(std::move(options), {context, device, nullptr});
    });
}

Result<Native> native(Engine& engine) {
    return core::guarded([&]() -> Result<Native> {
        const auto adoption = adoption_of(engine);
        if (!adoption) return adoption.error();
        const core::NativeHandles handles = (*adoption)->native();
        return Native{static_cast<_cl_context*>(handles.context),
                      static_cast<_cl_device_id*>(handles.device),
                      static_cast<_cl_command_queue*>(handles.queue)};
    });
}

Result<DeviceOut> adopt(Engine& engine, _cl_mem* buffer) {
    return core::guarded([&]() -> Result<DeviceOut> {
        const auto adoption = adoption_of(engine);
        if (!adoption) return adoption.error();
        return (*adoption)->adopt(buffer);
    });
}

Result<DeviceOut> adopt_shared(Engine& engine, void* memory, std::size_t size) {
    return core::guarded([&]() -> Result<DeviceOut> {
        const auto adoption = adoption_of(engine);
        if (!adoption) return adoption.error();
        DAEL_TRY((*adoption)->adopt_shared(memory, size));
        return DeviceOut{memory, size};
    });
}

Result<> forget(Engine& engine, DeviceIn memory) {
    return core::guarded([&]() -> Result<> {
        const auto adoption = adoption_of(engine);
        if (!adoption) return adoption.error();
        return (*adoption)->forget(memory.data);
    });
}

Result<Stream> stream(Engine& engine, _cl_command_queue* queue) {
    return core::guarded([&]() -> Result<Stream> {
        const auto adoption = adoption_of(engine);
        if (!adoption) return adoption.error();
        return (*adoption)->adopt_queue(queue);
    });
}

}  // namespace dael::opencl
