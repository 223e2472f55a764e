// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/device.hpp>

#include "core/guard.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {

Result<DeviceAccess> device(Engine& engine, const void* memory) {
    return core::guarded([&]() -> Result<DeviceAccess> {
        DAEL_LET(path, engine.state()->path_of(memory));
        return DeviceAccess{path->device.info(), path->device.memory(), path->device.order(),
                            path->name()};
    });
}

}  // namespace dael
