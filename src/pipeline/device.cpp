// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/device.hpp>

#include "core/guard.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {

Result<DeviceAccess> device(Engine& engine, const void* memory) {
    return core::guarded([&]() -> Result<DeviceAccess> {
        DAEL_LET(lane, engine.state()->lane_of(memory));
        return DeviceAccess{lane->device.info(), lane->device.memory(), lane->device.order(),
                            lane->name()};
    });
}

}  // namespace dael
